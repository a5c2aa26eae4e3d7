import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import test from 'ava';
import { RunningChild } from '../../src/process/running-child.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { isAlive } from '../support/processes.ts';
import { collectLog } from './collected-log.ts';
import { RecordingListener } from './recording-listener.ts';

/** A child of whose exit is heard when `exits` says so. */
function start(script: string) {
  const { pid = 0, stdin, stdout, stderr } = spawn(process.execPath, ['-e', script], { detached: true });
  const exits = new EventEmitter() as ChildProcess;
  const clock = new FakeClock();
  const listener = new RecordingListener();
  const { log } = collectLog();
  const carried = { carrier: 'pipe', stdin, stdout, stderr } as const;
  new RunningChild({
    name: 'test',
    process: exits,
    pid,
    ...carried,
    graceMs: 1000,
    withheldEnv: [],
    listener,
    clock,
    log,
  });
  return { pid, stdout, exits, clock, listener };
}

test('reads what a child has written before it gives up on its pipes, however late it gets to look at them', async (t) => {
  const written = 'x'.repeat(20_000);
  const { pid, exits, clock, listener } = start(
    `process.stderr.write('last words'); process.stdout.write('${written}', () => process.exit(0))`,
  );
  // Where timers run: what is due there comes before the next look at pipes.
  await new Promise((resolve) => setTimeout(resolve, 0));
  // The loop is held up until the child has exited. That it has is heard first, and the time of its pipes is over then.
  while (isAlive(pid));
  exits.emit('exit', 0, null);
  clock.advance(60_000);
  const { stderrTail } = await listener.whenEnded();
  t.is(listener.byteLength, written.length);
  t.deepEqual(stderrTail, ['last words']);
});

test('takes no child for one that lives without its streams because its exit is heard of late', async (t) => {
  const { stdout, exits, clock, listener } = start('process.exit(3)');
  await once(stdout, 'close');
  // The loop is held up; then its timers are due before it hears of the exit.
  clock.advance(60_000);
  exits.emit('exit', 3, null);
  clock.advance(60_000);
  t.is((await listener.whenEnded()).code, 3);
  t.deepEqual(listener.closedStreams, []);
});
