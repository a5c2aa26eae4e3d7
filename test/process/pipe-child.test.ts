import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../src/cli/system-deps.ts';
import type { Clock } from '../../src/deps.ts';
import { BridgeError } from '../../src/errors.ts';
import { type Child, type ChildSpec, describeExit } from '../../src/process/child.ts';
import { createPipeStarter } from '../../src/process/pipe-child.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { assertGone, isAlive } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { fixtureSpec, scriptSpec } from './child-spec.ts';
import { createTestDeps } from './collected-log.ts';
import { RecordingListener } from './recording-listener.ts';

/** Starts a child that is killed with the test if nothing else ended it. */
function start(t: ExecutionContext, spec: ChildSpec, clock: Clock = systemClock) {
  const { deps, entries } = createTestDeps();
  const listener = new RecordingListener();
  const child = createPipeStarter({ ...deps, clock })(spec, listener);
  t.teardown(async () => {
    child.killNow();
    await child.gone;
  });
  return { child, listener, entries };
}

const INITIALIZE = '{"jsonrpc":"2.0","id":1,"method":"initialize"}\n';

const GRACE_MS = 5000;
/** Half of it is the time that even a busy machine needs to let a process end that has been told to. */
const AMPLE_GRACE_MS = 10_000;

/** Resolves with the result of `initialize`, at which point all handlers of a fixture are in place. */
async function initialize(child: Child, listener: RecordingListener): Promise<{ grandchildPid?: number }> {
  child.stdin.write(INITIALIZE);
  await waitFor(() => listener.text.includes('\n'), { message: 'the answer to initialize' });
  return JSON.parse(listener.text.slice(0, listener.text.indexOf('\n'))).result._meta;
}

test('carries bytes both ways and tells the exit after the last of them', async (t) => {
  const { child, listener } = start(t, scriptSpec('process.stdin.pipe(process.stdout)'));
  child.stdin.write('one ');
  child.stdin.end(Buffer.alloc(3_000_000, 'x'));
  const exit = await listener.whenEnded();
  t.is(listener.byteLength, 3_000_004);
  t.like(exit, { code: 0, signal: null, terminated: false });
  t.is(listener.ends, 1);
});

test('gives the child its environment and nothing else', async (t) => {
  const { listener } = start(t, scriptSpec('console.log(JSON.stringify(process.env))', { env: { ONLY: 'this' } }));
  await listener.whenEnded();
  const env = JSON.parse(listener.text);
  // macOS adds this to every process.
  delete env.__CF_USER_TEXT_ENCODING;
  t.deepEqual(env, { ONLY: 'this' });
});

test('starts the child in its working folder', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'portage-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const { listener } = start(
    t,
    scriptSpec('console.log(require("fs").existsSync("marker"), require("fs").realpathSync("."))', { cwd: folder }),
  );
  await writeFile(join(folder, 'marker'), '');
  await listener.whenEnded();
  t.true(listener.text.includes(folder));
});

test('passes arguments as they are, without a shell', async (t) => {
  const args = ['$HOME', '`id`', 'a b', "it's", '"quoted"', '*', '&& exit 1', ''];
  const { listener } = start(t, {
    ...scriptSpec(''),
    args: ['-e', 'console.log(JSON.stringify(process.argv.slice(1)))', '--', ...args],
  });
  await listener.whenEnded();
  t.deepEqual(JSON.parse(listener.text), args);
});

test('describes the exit and keeps the last words on stderr, printable', async (t) => {
  const { listener, entries } = start(t, fixtureSpec('exits-before-initialize', ['7']));
  const exit = await listener.whenEnded();
  t.regex(describeExit(exit), /^exited with code 7 after \d+ m?s$/);
  t.deepEqual(exit.stderrTail, ['SOME_KEY is not set', 'cannot go on without it']);
  t.true(
    entries.some(
      ({ msg, child, level }) => msg === 'SOME_KEY is not set' && child === 'exits-before-initialize' && level === 30,
    ),
  );
});

test('describes an exit by signal', async (t) => {
  const { listener } = start(t, scriptSpec('process.kill(process.pid, "SIGKILL")'));
  const exit = await listener.whenEnded();
  t.regex(describeExit(exit), /^was ended by SIGKILL after \d+ m?s$/);
});

test('describes long lives in seconds', (t) => {
  const exit = { code: 1, signal: null, ranMs: 3_600_000, stderrTail: [], namedOnStderr: [], terminated: true };
  t.is(describeExit(exit), 'exited with code 1 when told to after 3600 s');
});

test('is not stopped by a flood on stderr', async (t) => {
  const { child, listener, entries } = start(t, fixtureSpec('floods-stderr', ['5000']));
  await initialize(child, listener);
  await waitFor(() => entries.filter(({ stream }) => stream === 'stderr').length === 5000);
  child.stdin.end();
  t.like(await listener.whenEnded(), { code: 0 });
});

test('survives writes to a child that has closed its stdin, and tells that it did', async (t) => {
  const { child, listener } = start(
    t,
    scriptSpec('require("fs").closeSync(0); setInterval(() => {}, 60000); console.log("closed")'),
  );
  await waitFor(() => listener.text.includes('closed'));
  await waitFor(() => {
    child.stdin.write('x'.repeat(1000));
    return listener.closedStreams.includes('stdin');
  });
  t.is(listener.ends, 0);
});

test('survives writes to a child that has exited', async (t) => {
  const { child, listener } = start(t, scriptSpec('process.exit(2)'));
  while (listener.ends === 0) {
    child.stdin.write('x'.repeat(100_000));
    await waitFor(() => true);
    await new Promise(setImmediate);
  }
  child.stdin.write('too late');
  t.is(listener.exit?.code, 2);
});

test('tells that a child closed its stdout while it runs on', async (t) => {
  const { listener } = start(t, scriptSpec('require("fs").closeSync(1); setInterval(() => {}, 60000)'));
  await waitFor(() => listener.closedStreams.includes('stdout'));
  t.is(listener.ends, 0);
});

test('reads no further while paused, and delivers everything once resumed although the child has exited', async (t) => {
  // What is paused fits into the pipe, so the child can exit.
  const { child, listener } = start(
    t,
    scriptSpec('process.stdin.once("data", () => { process.stdout.write("y".repeat(20000), () => process.exit(0)) })'),
  );
  child.pauseOutput();
  child.stdin.write('go');
  await assertGone([child.pid ?? 0]);
  // Time enough for more to come, if it did.
  await start(t, scriptSpec('')).listener.whenEnded();
  t.is(listener.byteLength, 0);
  t.is(listener.ends, 0);
  child.resumeOutput();
  await listener.whenEnded();
  t.is(listener.byteLength, 20_000);
});

test('ends a polite child by closing its stdin, after what was written to it', async (t) => {
  // By a clock that stands still: however long it takes, it is not hurried.
  const { child, listener } = start(t, scriptSpec('process.stdin.pipe(process.stdout)'), new FakeClock());
  child.stdin.write('last words');
  await child.terminate();
  const exit = await listener.whenEnded();
  t.like(exit, { code: 0, signal: null, terminated: true });
  t.is(listener.text, 'last words');
});

test('ends a child that ignores the end of its input with SIGTERM', async (t) => {
  const clock = new FakeClock();
  const { child, listener } = start(t, fixtureSpec('ignores-stdin-close', [], { graceMs: GRACE_MS }), clock);
  await initialize(child, listener);
  const terminated = child.terminate();
  clock.advance(GRACE_MS / 2);
  await terminated;
  t.like(await listener.whenEnded(), { signal: 'SIGTERM', terminated: true });
  t.false(isAlive(child.pid ?? 0));
});

test('ends a child that ignores SIGTERM with SIGKILL', async (t) => {
  const { child, listener } = start(t, fixtureSpec('ignores-sigterm', [], { graceMs: 100 }));
  await initialize(child, listener);
  await Promise.all([child.terminate(), child.terminate()]);
  t.like(await listener.whenEnded(), { signal: 'SIGKILL' });
  t.false(isAlive(child.pid ?? 0));
});

test('ends a child that was stopped, which only SIGKILL reaches', async (t) => {
  const { child, listener } = start(t, fixtureSpec('ignores-stdin-close', [], { graceMs: 100 }));
  await initialize(child, listener);
  process.kill(child.pid ?? 0, 'SIGSTOP');
  await child.terminate();
  t.like(await listener.whenEnded(), { signal: 'SIGKILL' });
  t.false(isAlive(child.pid ?? 0));
});

for (const stream of ['stdout', 'stderr']) {
  test(`knows when something came from a child last: on ${stream}, if only a byte`, async (t) => {
    const { child } = start(t, scriptSpec(`process.stdin.on('data', () => process.${stream}.write('.'))`));
    const startedMs = child.lastHeardMs;
    t.true(startedMs > 0 && startedMs <= performance.now(), 'its start counts');
    child.stdin.write('go');
    await waitFor(() => child.lastHeardMs > startedMs, { message: 'the byte to be noticed' });
  });
}

for (const kind of ['willing', 'stubborn']) {
  test(`ends a ${kind} grandchild after the child has exited`, async (t) => {
    const { child, listener } = start(t, fixtureSpec('spawns-grandchild', [kind], { graceMs: AMPLE_GRACE_MS }));
    const { grandchildPid = 0 } = await initialize(child, listener);
    t.true(isAlive(grandchildPid));
    await child.terminate();
    t.like(await listener.whenEnded(), { code: 0 });
    t.false(isAlive(grandchildPid));
  });
}

test('tells the exit of a child whose pipes a process in another group still holds', async (t) => {
  const script = `
    const { spawn } = require('child_process');
    const holder = spawn(process.execPath, ['-e', 'setInterval(() => {}, 60000)'], { stdio: 'inherit', detached: true });
    process.stdout.write(String(holder.pid), () => process.exit(0));`;
  const { listener } = start(t, scriptSpec(script));
  const exit = await listener.whenEnded();
  process.kill(Number(listener.text), 'SIGKILL');
  t.is(exit.code, 0);
});

test('kills the whole group at once as a last resort', async (t) => {
  const { child, listener } = start(t, fixtureSpec('spawns-grandchild', ['stubborn']));
  const { grandchildPid = 0 } = await initialize(child, listener);
  child.killNow();
  await child.gone;
  t.like(await listener.whenEnded(), { signal: 'SIGKILL' });
  await assertGone([grandchildPid]);
});

test('reports a command that does not exist through the listener, once', async (t) => {
  const { child, listener } = start(t, { ...scriptSpec(''), command: 'no-such-program' });
  const error = await waitFor(() => listener.error);
  t.is(error.code, 'ERR_UPSTREAM_SPAWN');
  t.regex(error.message, /"no-such-program" is in none of the \d+ folders/);
  t.is(child.pid, undefined);
  child.stdin.write('into the void');
  await child.terminate();
  t.is(listener.ends, 1);
});

test('tells a missing interpreter from a missing file', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'portage-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const command = join(folder, 'server');
  await writeFile(command, '#!/no/such/interpreter\n');
  await chmod(command, 0o755);
  const { listener } = start(t, { ...scriptSpec(''), command, args: [] });
  const error = await waitFor(() => listener.error);
  t.regex(error.message, /interpreter named in its first line/);
});

test('turns what spawn throws into the same error', (t) => {
  const spec = scriptSpec('', { env: { TOO_LARGE: 'x'.repeat(8_000_000) } });
  const error = t.throws(() => start(t, spec), { instanceOf: BridgeError });
  t.is(error?.code, 'ERR_UPSTREAM_SPAWN');
  t.regex(error?.message ?? '', /too large together \(E2BIG\)/);
  t.truthy(error?.cause);
});
