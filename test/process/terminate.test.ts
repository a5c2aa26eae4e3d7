import test from 'ava';
import type { ProcessGroup } from '../../src/process/process-group.ts';
import { followLadder, Termination, terminationLadder } from '../../src/process/terminate.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { collectLog } from './collected-log.ts';

const GRACE_MS = 4000;

class FakeGroup implements ProcessGroup {
  readonly signals: string[] = [];
  members = 1;

  signal(signal: string): void {
    this.signals.push(signal);
  }

  killNow(): void {
    this.signals.push('SIGKILL now');
  }

  hasMembers(): boolean {
    return this.members > 0;
  }
}

function createTermination(carrier: 'pipe' | 'pty' = 'pipe') {
  const clock = new FakeClock();
  const group = new FakeGroup();
  const { log, entries } = collectLog();
  const closeStdin = () => void group.signals.push('close-stdin');
  const termination = new Termination({ carrier, graceMs: GRACE_MS, group, closeStdin, clock, log });
  return { termination, clock, group, entries };
}

test('closes the input of a child on pipes first and divides the grace period between that and SIGTERM', (t) => {
  t.deepEqual(terminationLadder('pipe', GRACE_MS), [
    { action: 'close-stdin', waitMs: 2000 },
    { action: 'SIGTERM', waitMs: 2000 },
    { action: 'SIGKILL', waitMs: 1000 },
  ]);
});

test('gives a child that is replaced half a second after the end of its input', (t) => {
  const waits = (graceMs: number) => terminationLadder('pipe', graceMs, 'replaced').map(({ waitMs }) => waitMs);
  t.deepEqual(waits(GRACE_MS), [500, 2000, 1000]);
  t.deepEqual(waits(200), [100, 100, 1000]);
});

test('does not wait for a child that hangs to see the end of its input', (t) => {
  const { termination, clock, group } = createTermination();
  void termination.begin('hung');
  clock.advance(0);
  t.deepEqual(group.signals, ['close-stdin', 'SIGTERM']);
  clock.advance(GRACE_MS / 2 - 1);
  t.deepEqual(group.signals, ['close-stdin', 'SIGTERM']);
  clock.advance(1);
  t.deepEqual(group.signals, ['close-stdin', 'SIGTERM', 'SIGKILL']);
});

test('sends SIGTERM at once where it is urgent, whether the child has been asked before or not', (t) => {
  for (const before of ['idle', 'asked']) {
    const { termination, clock, group } = createTermination();
    if (before === 'asked') void termination.begin();
    void termination.begin('urgent');
    void termination.begin('urgent');
    clock.advance(0);
    t.deepEqual(group.signals, ['close-stdin', 'SIGTERM'], before);
    clock.advance(GRACE_MS / 2);
    void termination.begin('urgent');
    t.deepEqual(group.signals, ['close-stdin', 'SIGTERM', 'SIGKILL'], before);
  }
});

test('sends nothing to a child that is gone, however urgent', (t) => {
  const { termination, clock, group } = createTermination();
  void termination.begin();
  group.members = 0;
  termination.leaderExited();
  void termination.begin('urgent');
  clock.advance(60_000);
  t.deepEqual(group.signals, ['close-stdin']);
});

test('hangs up on a child on a terminal first, where there is no end of input', (t) => {
  t.deepEqual(
    terminationLadder('pty', 200).map(({ action }) => action),
    ['SIGHUP', 'SIGTERM', 'SIGKILL'],
  );
});

test('gives those who outlive their leader a second, or the grace period if that is shorter', (t) => {
  t.deepEqual(followLadder(5000)[0], { action: 'SIGTERM', waitMs: 1000 });
  t.deepEqual(followLadder(300)[0], { action: 'SIGTERM', waitMs: 300 });
});

test('goes down the ladder step by step while the child stays', (t) => {
  const { termination, clock, group } = createTermination();
  void termination.begin();
  t.deepEqual(group.signals, ['close-stdin']);
  clock.advance(1999);
  t.deepEqual(group.signals, ['close-stdin']);
  clock.advance(1);
  t.deepEqual(group.signals, ['close-stdin', 'SIGTERM']);
  clock.advance(1999);
  t.deepEqual(group.signals, ['close-stdin', 'SIGTERM']);
  clock.advance(1);
  t.deepEqual(group.signals, ['close-stdin', 'SIGTERM', 'SIGKILL']);
});

test('stops on the ladder when the child exits, and leaves no timer', async (t) => {
  const { termination, clock, group } = createTermination();
  const done = termination.begin();
  group.members = 0;
  termination.leaderExited();
  await done;
  clock.advance(60_000);
  t.deepEqual(group.signals, ['close-stdin']);
  t.is(clock.pendingTimers, 0);
});

test('is the same end for everyone who asks for it', (t) => {
  const { termination, group } = createTermination();
  t.is(termination.begin(), termination.begin());
  t.deepEqual(group.signals, ['close-stdin']);
});

test('ends the rest of the group of a child that exited by itself', async (t) => {
  const { termination, clock, group } = createTermination();
  termination.leaderExited();
  t.deepEqual(group.signals, ['SIGTERM']);
  clock.advance(999);
  t.deepEqual(group.signals, ['SIGTERM']);
  clock.advance(1);
  t.deepEqual(group.signals, ['SIGTERM', 'SIGKILL']);
  group.members = 0;
  clock.advance(40);
  await termination.gone;
  t.is(clock.pendingTimers, 0);
});

test('gives up on what even SIGKILL does not end, and says so', async (t) => {
  const { termination, clock, group, entries } = createTermination();
  const done = termination.begin();
  clock.advance(GRACE_MS + 1000);
  await done;
  t.is(group.signals.at(-1), 'SIGKILL');
  t.true(entries.some(({ level, msg }) => level === 40 && msg.includes('after SIGKILL')));
  const sent = group.signals.length;
  termination.leaderExited();
  clock.advance(60_000);
  t.is(group.signals.length, sent, 'the pid may belong to another program by now');
  t.is(clock.pendingTimers, 0);
});

test('goes on looking for the end of a group that is killed while it follows its leader', async (t) => {
  const { termination, clock, group } = createTermination();
  termination.leaderExited();
  termination.killNow();
  t.deepEqual(group.signals, ['SIGTERM', 'SIGKILL now']);
  group.members = 0;
  clock.advance(40);
  await termination.gone;
  t.is(clock.pendingTimers, 0);
});

test('waits for the news of an end that has come, whatever the time', async (t) => {
  const { termination, clock, group, entries } = createTermination();
  const done = termination.begin();
  clock.advance(GRACE_MS);
  group.members = 0;
  clock.advance(60_000);
  termination.leaderExited();
  await done;
  t.deepEqual(
    entries.filter(({ level }) => level >= 40),
    [],
    'it has not outlived SIGKILL',
  );
});

test('kills at once when asked to, from any step, but nobody once all are gone', (t) => {
  const { termination, group } = createTermination();
  termination.killNow();
  void termination.begin();
  termination.killNow();
  t.deepEqual(group.signals, ['SIGKILL now', 'SIGKILL now']);
  group.members = 0;
  termination.leaderExited();
  termination.killNow();
  t.is(group.signals.length, 2);
});

test('logs each step at debug', (t) => {
  const { termination, clock, entries } = createTermination('pty');
  void termination.begin();
  clock.advance(GRACE_MS);
  t.deepEqual(
    entries.map(({ level, step, msg }) => [level, step, msg]),
    [
      [20, 'SIGHUP', 'ending the child: SIGHUP'],
      [20, 'SIGTERM', 'ending the child: SIGTERM'],
      [20, 'SIGKILL', 'ending the child: SIGKILL'],
    ],
  );
});
