import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import type { Clock } from '../../../src/deps.ts';
import { BridgeError } from '../../../src/errors.ts';
import type { Implementation } from '../../../src/mcp/vocabulary/meta.ts';
import { loadOpenPty } from '../../../src/process/pty-child.ts';
import type { ServerObserver } from '../../../src/relay/observer.ts';
import type { Connection, Connector } from '../../../src/upstream/connection.ts';
import { ChildLimit } from '../../../src/upstream/stdio/child-limit.ts';
import { createStdioConnector } from '../../../src/upstream/stdio/connector.ts';
import { notificationFrame, requestFrame, resultFrame } from '../../../src/wire/write-message.ts';
import { fixture } from '../../process/child-spec.ts';
import { createTestDeps, type LogEntry } from '../../process/collected-log.ts';
import { loneDialer } from '../../support/dialers.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { assertGone, isAlive } from '../../support/processes.ts';
import { TYPESCRIPT } from '../../support/typescript.ts';
import { waitFor } from '../../support/wait-for.ts';
import { RecordingServerListener } from '../recording-server-listener.ts';

const MIB = 1024 * 1024;
const reason = new BridgeError('ERR_SESSION_CLOSED', 'the session ended');

interface DialerSettings {
  readonly maxMessageBytes?: number;
  readonly shutdownGraceMs?: number;
  readonly withheldEnv?: readonly string[];
  readonly command?: string;
  readonly cwd?: string;
  readonly pty?: boolean;
  readonly children?: ChildLimit;
  readonly trialClient?: Implementation;
  /** In the place of the fixture. */
  readonly script?: string;
  /** Default: the time of the system. */
  readonly clock?: Clock;
  readonly observer?: ServerObserver;
}

interface TestDialer {
  readonly dialer: Connector;
  readonly entries: readonly LogEntry[];
  dial(): { link: Connection; listener: RecordingServerListener };
}

/** A dialer for a fixture; its children are ended with the test, and it fails if one stays behind. */
function createDialer(
  t: ExecutionContext,
  name: string,
  args: readonly string[],
  settings: DialerSettings = {},
): TestDialer {
  const { deps, entries } = createTestDeps();
  const {
    maxMessageBytes = 16 * MIB,
    shutdownGraceMs = 2000,
    withheldEnv = [],
    command = process.execPath,
    cwd,
    pty = false,
    children = new ChildLimit(),
    trialClient,
    script = fixture(name),
    clock = deps.clock,
    observer,
  } = settings;
  const dialer = createStdioConnector({
    ...loneDialer(),
    target: { kind: 'command', command, args: [script, ...args] },
    child: { cwd, env: { PATH: process.env.PATH ?? '' }, withheldEnv, pty },
    maxMessageBytes,
    shutdownGraceMs,
    deps: { ...deps, clock },
    children,
    trialClient,
    observer,
  });
  t.teardown(async () => {
    const pids = pidsIn(entries);
    await dialer.close();
    await assertGone(pids);
  });
  const dial = () => {
    const listener = new RecordingServerListener();
    const link = dialer.connect();
    link.listener = listener;
    return { link, listener };
  };
  return { dialer, entries, dial };
}

function hasPty(): boolean {
  try {
    loadOpenPty();
    return true;
  } catch {
    return false;
  }
}

const pidsIn = (entries: readonly LogEntry[]): number[] => [
  ...new Set(entries.flatMap(({ childPid }) => (typeof childPid === 'number' ? [childPid] : []))),
];

interface Conversation extends TestDialer {
  readonly link: Connection;
  readonly listener: RecordingServerListener;
  readonly pid: number;
  readonly grandchildPid: number;
}

/** Dials and shakes hands. */
async function converse(
  t: ExecutionContext,
  name: string,
  args: readonly string[] = [],
  settings: DialerSettings = {},
): Promise<Conversation> {
  const dialer = createDialer(t, name, args, settings);
  const { link, listener } = dialer.dial();
  link.send(requestFrame('init', 'initialize', { protocolVersion: '2025-11-25' }));
  const { result } = (await listener.answerTo('init')) as {
    result: { _meta: { pid: number; grandchildPid?: number } };
  };
  link.send(notificationFrame('notifications/initialized'));
  const { pid, grandchildPid = 0 } = result._meta;
  return { ...dialer, link, listener, pid, grandchildPid };
}

const call = (id: number, text: string) => requestFrame(id, 'tools/call', { name: 'echo', arguments: { text } });

const textOf = (answer: Record<string, unknown>): string =>
  (answer as { result: { content: { text: string }[] } }).result.content.map(({ text }) => text).join('');

test('carries calls and answers', async (t) => {
  const { link, listener } = await converse(t, 'echo');
  for (let id = 0; id < 200; id++) link.send(call(id, `hello ${id} 漢字`));
  for (let id = 0; id < 200; id++) t.is(textOf(await listener.answerTo(id)), `hello ${id} 漢字`);
  t.is(listener.faults.length, 0);
});

for (const name of ['prints-garbage', 'splits-utf8', 'crlf-and-bom', 'answers-in-batches', 'floods-stderr']) {
  test(`understands a server that ${name.replaceAll('-', ' ')}`, async (t) => {
    const { link, listener } = await converse(t, name);
    link.send(call(1, 'naïve → 漢字 🚀'));
    t.is(textOf(await listener.answerTo(1)), 'naïve → 漢字 🚀');
    t.is(listener.faults.length, 0);
    t.is(listener.closings.length, 0);
  });
}

// Skipped where node-pty has no build, and on Windows; see test/process/pty-child.test.ts.
(hasPty() ? test : test.skip)('speaks over a pseudo-terminal as over pipes', async (t) => {
  const { link, listener, pid } = await converse(t, 'echo', [], { pty: true });
  const text = `${'x'.repeat(MIB)}漢字`;
  for (let id = 0; id < 5; id++) link.send(call(id, text));
  for (let id = 0; id < 5; id++) t.is(textOf(await listener.answerTo(id)), text);
  t.is(listener.frames.length, 6);
  link.close(reason);
  await assertGone([pid]);
});

test('starts a process of its own for each link', async (t) => {
  const { dial, pid } = await converse(t, 'echo');
  const second = dial();
  second.link.send(requestFrame('init', 'initialize'));
  const { result } = (await second.listener.answerTo('init')) as { result: { _meta: { pid: number } } };
  t.not(result._meta.pid, pid);
});

for (const size of [MIB, 16 * MIB + 1]) {
  test(`carries a message of ${size} bytes both ways, byte for byte`, async (t) => {
    const { link, listener } = await converse(t, 'echo', [], { maxMessageBytes: 17 * MIB });
    const text = `${'x'.repeat(size - 1)}漢`;
    link.send(call(1, text));
    t.is(textOf(await listener.answerTo(1)), text);
  });
}

for (const order of ['id-first', 'id-last']) {
  test(`reports an answer over the limit with its ${order} and carries the next one`, async (t) => {
    const { link, listener } = await converse(t, 'writes-huge-line', [String(16 * MIB + 1), order]);
    link.send(call(7, ''));
    await waitFor(() => listener.faults.length > 0);
    t.like(listener.faults[0], { id: 7, kind: 'result' });
    t.is(listener.faults[0]?.error.code, 'ERR_UPSTREAM_TOO_LARGE');
    link.send(requestFrame(8, 'ping'));
    t.deepEqual((await listener.answerTo(8)).result, {});
  });
}

test('is full while the server reads nothing, takes what comes all the same, and tells when there is capacity', async (t) => {
  const { link, listener, pid } = await converse(t, 'stops-reading');
  const note = notificationFrame('notifications/note', { text: 'n'.repeat(100_000) });
  await waitFor(() => !link.send(note), { message: 'the link to be full' });
  t.false(link.send(requestFrame(1, 'ping')));
  t.is(listener.drains, 0);
  await waitFor(() => {
    process.kill(pid, 'SIGUSR2');
    return listener.drains > 0;
  });
  await listener.answerTo(1);
  t.is(listener.drains, 1);
  t.true(link.send(requestFrame(2, 'ping')));
  await listener.answerTo(2);
});

test('keeps so many answers for a server that asks and reads nothing, and says so', async (t) => {
  const { link, listener, pid, entries } = await converse(t, 'stops-reading');
  const answers = 20_000;
  const length = resultFrame(1, {}).bytes.length + 1;
  for (let sent = 0; sent < answers; sent++) link.send(resultFrame(1, {}));
  t.is(entries.filter(({ msg }) => msg.includes('does not read the answers')).length, 1);
  link.send(requestFrame('p', 'ping'));
  process.kill(pid, 'SIGUSR2');
  const { result } = (await listener.answerTo('p')) as { result: { bytes: number } };
  t.true(result.bytes < answers * length * 0.8, `${result.bytes} bytes came`);
});

test('reads nothing while the relay pauses, not even the end, and everything afterward', async (t) => {
  const { dial, link, listener, pid } = await converse(t, 'exits-mid-call');
  link.pause();
  link.send(call(1, ''));
  await assertGone([pid]);
  // Time enough for more to come, if it did: another server starts and answers.
  const other = dial();
  other.link.send(requestFrame('init', 'initialize'));
  await other.listener.answerTo('init');
  t.is(listener.frames.length, 1);
  t.is(listener.closings.length, 0);
  link.resume();
  await listener.whenClosed();
  t.is(listener.frames.length, 2);
});

test('delivers at most what one read brought after the relay has paused', async (t) => {
  const { link, listener } = await converse(t, 'writes-huge-line', [String(MIB)]);
  listener.onFrame = () => link.pause();
  for (let id = 0; id < 20; id++) link.send(call(id, ''));
  for (let frames = 2; frames <= 21; frames++) {
    await waitFor(() => listener.frames.length >= frames);
    t.is(listener.frames.length, frames);
    link.resume();
  }
});

test('tells how a server ended before it answered, with its last words, and says nothing of variables that it has not named', async (t) => {
  const { dial } = createDialer(t, 'exits-before-initialize', ['3'], { withheldEnv: ['THE_KEY', 'OTHER'] });
  const { listener, link } = dial();
  link.send(requestFrame(1, 'initialize'));
  const error = await listener.whenClosed();
  t.is(error.code, 'ERR_UPSTREAM_EXITED');
  t.regex(
    error.message,
    /^Server "node exits-before-initialize\.js" exited with code 3 after \d+ m?s, before it answered anything\. Its last words on stderr: SOME_KEY is not set \| cannot go on without it$/,
  );
  t.true((error.retryAfterMs ?? 0) > 0);
});

test('names the withheld variable that a server named before it ended, and the option for it, in the error and the log', async (t) => {
  const { dial, entries } = createDialer(t, 'exits-for-a-variable', ['GITHUB_TOKEN', 'deep'], {
    withheldEnv: ['GITHUB_TOKEN', 'OTHER', 'not'],
  });
  const { listener, link } = dial();
  link.send(requestFrame(1, 'initialize'));
  const hint = ' (GITHUB_TOKEN is set here, but was withheld from the server; pass it on with --env GITHUB_TOKEN.)';
  const { message } = await listener.whenClosed();
  t.true(message.endsWith(hint), message);
  t.true(
    entries.some(({ level, msg }) => level === 40 && msg.endsWith(hint)),
    'the log says so, too',
  );
});

/** Writes down what an observer is told. */
function createWitness() {
  const told: string[] = [];
  const observer: ServerObserver = {
    started: () => void told.push('started'),
    wrote: (line) => void told.push(`wrote ${line}`),
    failed: (reason) => void told.push(`failed ${reason}`),
    listedTools: () => undefined,
  };
  return { told, observer };
}

for (const pty of hasPty() ? [false, true] : [false]) {
  test(`the observer is told of the start, of stderr and of the failure, ${pty ? 'on a terminal' : 'on pipes'}`, async (t) => {
    const { told, observer } = createWitness();
    const { dial } = createDialer(t, 'exits-before-initialize', ['3'], { observer, pty });
    const { listener, link } = dial();
    link.send(requestFrame(1, 'initialize'));
    await listener.whenClosed();
    t.deepEqual(told.slice(0, -1), ['started', 'wrote SOME_KEY is not set', 'wrote cannot go on without it']);
    t.regex(told.at(-1) ?? '', /^failed Server "node exits-before-initialize\.js" exited with code 3 after/);
  });
}

test('a process that hangs has failed, and one that its client leaves has not', async (t) => {
  const { told, observer } = createWitness();
  const { dial, entries } = createDialer(t, 'echo', [], { observer });
  dial().link.close(new BridgeError('ERR_SESSION_CLOSED', 'The client has left.'));
  dial().link.close(new BridgeError('ERR_UPSTREAM_HUNG', 'It does not respond.'));
  await assertGone(pidsIn(entries));
  t.deepEqual(told, ['started', 'started', 'failed It does not respond.']);
});

test('tells how a server ended after the handshake', async (t) => {
  const { listener } = await converse(t, 'exits-after-initialize', ['4'], { withheldEnv: ['SOME_KEY'] });
  const error = await listener.whenClosed();
  t.regex(error.message, /exited with code 4 after \d+ m?s\.$/);
});

test('delivers what a server said last before it tells of the end', async (t) => {
  const { link, listener } = await converse(t, 'exits-mid-call');
  link.send(call(1, ''));
  const error = await listener.whenClosed();
  t.regex(error.message, /exited with code 5/);
  t.is(listener.frames.at(-1)?.method, 'notifications/progress');
  t.is(listener.closings.length, 1);
});

test('ends a server that closed its stdout but went on running', async (t) => {
  const { link, listener, pid } = await converse(t, 'closes-stdout');
  link.send(call(1, ''));
  const error = await listener.whenClosed();
  t.is(error.code, 'ERR_UPSTREAM_EXITED');
  t.regex(error.message, /closed its stdout but went on running; it was ended\.$/);
  await assertGone([pid]);
});

test('is not kept waiting by a grandchild that holds stdout, and ends it', async (t) => {
  const { link, listener, pid, grandchildPid } = await converse(t, 'spawns-grandchild', ['willing']);
  t.true(isAlive(grandchildPid));
  link.send(notificationFrame('notifications/exit'));
  const error = await listener.whenClosed();
  t.regex(error.message, /exited with code 0/);
  await assertGone([pid, grandchildPid]);
});

for (const name of ['echo', 'ignores-stdin-close', 'ignores-sigterm', 'spawns-grandchild', 'stops-reading']) {
  test(`leaves nothing behind when a link to "${name}" is closed, and says nothing more`, async (t) => {
    const { link, listener, pid, grandchildPid } = await converse(t, name, ['stubborn'], { shutdownGraceMs: 200 });
    const frames = listener.frames.length;
    link.send(requestFrame(1, 'ping'));
    link.close(reason);
    link.close(reason);
    await assertGone([pid, grandchildPid]);
    t.is(listener.frames.length, frames);
    t.is(listener.closings.length, 0);
    t.true(link.send(requestFrame(2, 'ping')));
  });
}

test('does not wait for a server that hangs to see the end of its input', async (t) => {
  // Longer than the test may take.
  const { link, pid } = await converse(t, 'ignores-stdin-close', [], { shutdownGraceMs: 600_000 });
  link.close(new BridgeError('ERR_UPSTREAM_HUNG', 'it hangs'));
  await link.process?.gone;
  t.false(isAlive(pid));
});

test('still delivers what was sent right before the link is closed', async (t) => {
  // The time that a busy machine may need to start it, too.
  const settings = { shutdownGraceMs: 30_000 };
  const { dial, entries } = createDialer(t, 'exits-after-initialize', ['6'], settings);
  const { link } = dial();
  link.send(requestFrame('init', 'initialize'));
  link.send(notificationFrame('notifications/initialized'));
  link.close(reason);
  // It exits with this code only when it got the second message.
  await waitFor(() => entries.some(({ exitCode }) => exitCode === 6));
  t.pass();
});

test('resolves close when all children are gone, and starts no more', async (t) => {
  const { dialer, dial, pid } = await converse(t, 'ignores-sigterm', [], { shutdownGraceMs: 100 });
  const other = dial();
  other.link.send(requestFrame('init', 'initialize'));
  const { result } = (await other.listener.answerTo('init')) as { result: { _meta: { pid: number } } };
  await Promise.all([dialer.close(), dialer.close()]);
  t.false(isAlive(pid));
  t.false(isAlive(result._meta.pid));
  t.like(await other.listener.whenClosed(), { code: 'ERR_UPSTREAM_EXITED' });
  const error = t.throws(() => dial(), { instanceOf: BridgeError });
  t.is(error?.code, 'ERR_SESSION_CLOSED');
});

test('kills everything at once as a last resort', async (t) => {
  const { dialer, pid, grandchildPid } = await converse(t, 'spawns-grandchild', ['stubborn']);
  dialer.killNow();
  await assertGone([pid, grandchildPid]);
  t.notThrows(() => dialer.killNow());
});

test('refuses to start a server that keeps failing, until the wait is over', async (t) => {
  const clock = new FakeClock();
  const { dialer, dial } = createDialer(t, 'exits-before-initialize', [], { clock });
  t.is(dialer.readiness().state, 'ready', 'what never ran is ready');
  for (let attempt = 0; attempt < 5; attempt++) {
    await dial().listener.whenClosed();
    t.is(dialer.readiness().state, attempt < 4 ? 'failing' : 'stopped');
  }
  const error = t.throws(() => dial(), { instanceOf: BridgeError });
  t.is(error?.code, 'ERR_UPSTREAM_CRASH_LOOP');
  t.true((error?.retryAfterMs ?? 0) > 0);
  t.regex(
    error?.message ?? '',
    /"node exits-before-initialize\.js" failed 5 times in a row .*Last failure: .*exited with code 3/,
  );
  clock.advance(error?.retryAfterMs ?? 0);
  t.like(dialer.readiness(), { error: { code: 'ERR_UPSTREAM_EXITED' } });
  await dial().listener.whenClosed();
  t.is(dialer.readiness().state, 'stopped');
});

test('is starting until the server answers for the first time, and clients may come meanwhile', async (t) => {
  const clock = new FakeClock();
  const { dialer, dial } = createDialer(t, 'echo', [], { clock });
  clock.advance(5000);
  const { link, listener } = dial();
  clock.advance(12_000);
  t.like(dialer.readiness(), { state: 'starting', sinceMs: 5000, dialing: 'allowed' });
  link.send(requestFrame('init', 'initialize'));
  await waitFor(() => listener.frames.length > 0);
  t.is(dialer.readiness().state, 'ready');
  dial();
  t.is(dialer.readiness().state, 'ready', 'another process of a server that is known to work');
});

test('does not hold it against a server that clients leave before it answers', async (t) => {
  const { dialer, dial } = createDialer(t, 'never-answers', []);
  for (let attempt = 0; attempt < 6; attempt++) dial().link.close(reason);
  await dialer.close();
  t.is(dialer.readiness().state, 'ready');
});

test('a server that was given up because it never answered is not ready, and can be started at once', async (t) => {
  const { dialer, dial } = createDialer(t, 'never-answers', []);
  const silent = new BridgeError('ERR_UPSTREAM_TIMEOUT', 'it did not answer initialize');
  dial().link.close(silent);
  t.is(dialer.readiness().state, 'ready', 'nobody has asked it anything');
  for (let attempt = 0; attempt < 6; attempt++) {
    const { link } = dial();
    link.send(requestFrame('init', 'initialize'));
    link.close(silent);
    t.like(dialer.readiness(), { state: 'failing', error: silent, dialing: 'allowed' });
  }
});

test('is tried again without a client where readiness decides whether any comes, and ready when it answers', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-trial-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const script = join(folder, 'server.mjs');
  writeFileSync(script, 'process.exit(3);');
  const clock = new FakeClock();
  const trialClient = { name: 'trial', version: '1' };
  const { dialer, dial, entries } = createDialer(t, 'echo', [], { clock, script, trialClient });
  await dial().listener.whenClosed();
  t.is(dialer.readiness().state, 'failing');
  writeFileSync(script, `import(${JSON.stringify(fixture('echo'))});`);
  clock.advance(10_000);
  await waitFor(() => dialer.readiness().state === 'ready');
  await assertGone(pidsIn(entries));
});

test('does not hold a clean exit after serving against a server', async (t) => {
  const { dialer, dial } = createDialer(t, 'exits-after-initialize', ['0']);
  for (let attempt = 0; attempt < 6; attempt++) {
    const { link, listener } = dial();
    link.send(requestFrame('init', 'initialize'));
    await listener.answerTo('init');
    link.send(notificationFrame('notifications/initialized'));
    const error = await listener.whenClosed();
    t.is(error.retryAfterMs, undefined);
  }
  t.is(dialer.readiness().state, 'ready');
});

test('fails at once when there is no such command', (t) => {
  const error = t.throws(() => createDialer(t, 'echo', [], { command: 'no-such-program' }), {
    instanceOf: BridgeError,
  });
  t.is(error?.code, 'ERR_UPSTREAM_SPAWN');
  t.is(error?.audiences.exit, 69);
});

test('says in the log, too, that a process could not be started', (t) => {
  const { dial, entries } = createDialer(t, 'echo', ['x'.repeat(4 * MIB)]);
  const error = t.throws(dial, { instanceOf: BridgeError });
  t.is(error?.code, 'ERR_UPSTREAM_SPAWN');
  t.like(
    entries.find(({ level }) => level === 40),
    { code: 'ERR_UPSTREAM_SPAWN', msg: error?.message },
  );
});

test('fails at once when the working folder is missing', (t) => {
  const error = t.throws(() => createDialer(t, 'echo', [], { cwd: '/no/such/folder' }), { instanceOf: BridgeError });
  t.regex(error?.message ?? '', /--cwd/);
});

test('leaves no server behind that honors the end of its input, even if the bridge itself is killed', async (t) => {
  const script = fileURLToPath(new URL('../dialing-parent.ts', import.meta.url));
  const parent = spawn(process.execPath, [TYPESCRIPT, script, fixture('echo')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => parent.kill('SIGKILL'));
  const [line] = await once(createInterface({ input: parent.stdout }), 'line');
  const pid = Number(line);
  t.true(isAlive(pid));
  parent.kill('SIGKILL');
  await assertGone([pid]);
});

test('starts no more processes than it is told', async (t) => {
  const { dial } = await converse(t, 'echo', [], { children: new ChildLimit(1) });
  t.like(
    t.throws(() => dial()),
    { code: 'ERR_SESSION_LIMIT' },
  );
});

test('starts the next process when the one that is ending is gone, with what was said meanwhile', async (t) => {
  const { dial, link, pid } = await converse(t, 'ignores-stdin-close', [], { children: new ChildLimit(1) });
  link.close(reason);
  const next = dial();
  t.is(next.link.process, undefined, 'nothing runs yet');
  t.like(
    t.throws(() => dial()),
    { code: 'ERR_SESSION_LIMIT' },
    'there is one slot for one that waits',
  );
  next.link.send(requestFrame(1, 'tools/list', {}));
  t.true(isAlive(pid));
  await waitFor(() => next.listener.frames.length > 0);
  t.false(isAlive(pid));
  t.truthy(next.link.process);
});

test('starts nothing for who has left while it waited', async (t) => {
  const { dial, link, pid } = await converse(t, 'ignores-stdin-close', [], { children: new ChildLimit(1) });
  link.close(reason);
  const next = dial();
  next.link.send(requestFrame(1, 'tools/list', {}));
  next.link.close(reason);
  t.notThrows(() => dial().link.close(reason), 'the slot is free for another one');
  await assertGone([pid]);
  t.is(next.link.process, undefined);
});
