import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { PassThrough } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
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
  const spec = { name: 'test', graceMs: 1000, withheldEnv: [] };
  new RunningChild({ spec, process: exits, pid, ...carried, listener, clock, log });
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

/** No process has it, so that signals to it reach nobody. */
const NOBODY = 2 ** 30;
/** As long as output is waited for after the exit. */
const LATE_OUTPUT_MS = 1000;
/** After so long without one of its streams a child is said to run on without it. */
const LINGER_MS = 250;

/** A child that does nothing but what the test does to its streams. */
function startFake() {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const process = new EventEmitter() as ChildProcess;
  const [clock, listener] = [new FakeClock(), new RecordingListener()];
  const { log, entries } = collectLog();
  const child = new RunningChild({
    spec: { name: 'test', graceMs: 1000, withheldEnv: ['SECRET'] },
    ...{ process, pid: NOBODY, carrier: 'pipe', stdin, stdout, stderr, listener, clock, log },
  });
  /** Lets time pass, and the streams be looked at. */
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await setImmediate();
    await setImmediate();
  };
  return { child, stdin, stdout, stderr, process, clock, listener, entries, pass };
}

test('tells of a child that runs on without its output, or its input, after a while and once', async (t) => {
  for (const [closed, other] of [
    ['stdin', 'stdout'],
    ['stdout', 'stdin'],
  ] as const) {
    const fake = startFake();
    fake[closed].destroy();
    await fake.pass(0);
    await fake.pass(LINGER_MS - 1);
    t.deepEqual(fake.listener.closedStreams, []);
    await fake.pass(1);
    t.deepEqual(fake.listener.closedStreams, [closed]);
    fake[other].destroy();
    await fake.pass(0);
    await fake.pass(10 * LINGER_MS);
    t.deepEqual(fake.listener.closedStreams, [closed]);
    t.is(fake.listener.ends, 0);
  }
});

test('a child that exits soon after its streams has not run on without them', async (t) => {
  const { stdin, process, listener, pass } = startFake();
  stdin.destroy();
  await pass(0);
  await pass(LINGER_MS - 1);
  process.emit('exit', 0, null);
  await pass(10 * LINGER_MS);
  t.deepEqual(listener.closedStreams, []);
});

test('a child that is ended may close its streams', async (t) => {
  const { child, stdout, listener, pass } = startFake();
  t.false(child.isEnding);
  void child.terminate();
  t.true(child.isEnding);
  stdout.destroy();
  await pass(0);
  await pass(LINGER_MS);
  t.deepEqual(listener.closedStreams, []);
});

test('a child has failed that exits by itself or hangs, and not one that was told to end', async (t) => {
  const [crashed, hung, ended] = [startFake(), startFake(), startFake()];
  void hung.child.terminate('hung');
  void ended.child.terminate();
  for (const { child, process } of [crashed, hung, ended]) {
    process.emit('exit', null, 'SIGKILL');
    await child.gone;
  }
  t.deepEqual(
    [crashed, hung, ended].map(({ child }) => child.hasFailed),
    [true, true, false],
  );
});

test('tells the exit when both of its outputs are read, with how long it ran and what it said last', async (t) => {
  const { child, stdout, stderr, process, listener, entries, pass } = startFake();
  t.is(entries[0]?.msg, 'server started');
  await pass(5);
  stdout.write('all');
  stderr.write('the SECRET is missing\n');
  await pass(2);
  process.emit('exit', 3, null);
  stderr.end();
  await pass(1);
  t.is(listener.ends, 0, 'there may be more');
  stdout.end();
  await pass(0);
  const { exit } = listener;
  t.like(exit, { code: 3, signal: null, ranMs: 7, terminated: false });
  t.deepEqual([exit?.stderrTail, exit?.namedOnStderr], [['the SECRET is missing'], ['SECRET']]);
  t.is(listener.text, 'all');
  await child.gone;
  await pass(10 * LATE_OUTPUT_MS);
  t.is(listener.ends, 1);
});

test('a child whose outputs have ended has ended with its exit', async (t) => {
  const { stdout, stderr, process, listener, pass, child } = startFake();
  for (const stream of [stdout, stderr]) stream.resume().end();
  await pass(0);
  t.is(listener.ends, 0);
  void child.terminate();
  process.emit('exit', null, 'SIGTERM');
  t.like(listener.exit, { code: null, signal: 'SIGTERM', terminated: true });
});

test('outputs that something else holds are waited for so long and no longer', async (t) => {
  const { process, listener, pass, stdout, stderr } = startFake();
  process.emit('exit', 0, null);
  await pass(LATE_OUTPUT_MS - 1);
  t.is(listener.ends, 0);
  await pass(1);
  await pass(0);
  t.is(listener.ends, 1);
  t.true(stdout.destroyed && stderr.destroyed);
});

test('while its reader has paused, the output of a child that has exited is waited for', async (t) => {
  for (const isPausedFirst of [true, false]) {
    const { child, process, listener, pass } = startFake();
    if (isPausedFirst) child.pauseOutput();
    process.emit('exit', 0, null);
    if (!isPausedFirst) child.pauseOutput();
    await pass(10 * LATE_OUTPUT_MS);
    t.is(listener.ends, 0);
    child.resumeOutput();
    await pass(LATE_OUTPUT_MS - 1);
    t.is(listener.ends, 0, 'the time begins anew');
    await pass(1);
    await pass(0);
    t.is(listener.ends, 1);
  }
});

test('nothing is read while its reader has paused, even where somebody resumes the stream', async (t) => {
  const { child, stdout, listener, pass } = startFake();
  child.resumeOutput();
  child.pauseOutput();
  stdout.write('later');
  stdout.resume();
  await pass(0);
  t.is(listener.text, '');
  child.resumeOutput();
  await pass(0);
  t.is(listener.text, 'later');
});

test('knows when something came last, and writes errors of its streams to the log', async (t) => {
  const { child, stdin, stdout, stderr, process, entries, pass } = startFake();
  t.is(child.lastHeardMs, 0);
  await pass(3);
  stdout.write('.');
  await pass(0);
  t.is(child.lastHeardMs, 3);
  await pass(4);
  stderr.write('.');
  await pass(0);
  t.is(child.lastHeardMs, 7);
  for (const [source, msg] of [
    [process, 'child process error'],
    [stdin, 'child stdin error'],
    [stdout, 'child stdout error'],
    [stderr, 'child stderr error'],
  ] as const) {
    source.emit('error', new Error('EPIPE'));
    t.like(entries.at(-1), { level: 20, msg, err: { message: 'EPIPE' } });
  }
});

test('a child that was told to end closes its input, and is gone when its group is', async (t) => {
  const { child, stdin, process, pass } = startFake();
  t.is(child.pid, NOBODY);
  t.is(child.name, 'test');
  const gone = child.terminate();
  t.true(stdin.writableEnded);
  process.emit('exit', 0, null);
  await gone;
  await child.gone;
  child.killNow();
  await pass(0);
});
