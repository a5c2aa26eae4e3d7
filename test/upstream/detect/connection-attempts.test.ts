/**
 * Detection over stdio, with real processes. Those servers that turn out modern are not talked to any further: that is
 * the part of the transport for the modern era.
 */
import test, { type ExecutionContext } from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import type { Connector } from '../../../src/upstream/connection.ts';
import {
  ConnectionAttempts,
  initializeAs,
  OF_REQUEST,
  PROBE_TIMEOUT_MS,
} from '../../../src/upstream/detect/connection-attempts.ts';
import { type Detection, type DetectOptions, detect } from '../../../src/upstream/detect/detection.ts';
import type { Attempt } from '../../../src/upstream/detect/detection-errors.ts';
import { Prober } from '../../../src/upstream/detect/prober.ts';
import { createStdioConnector } from '../../../src/upstream/stdio/connector.ts';
import { fixture } from '../../process/child-spec.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { loneDialer } from '../../support/dialers.ts';
import { FakeConnector } from '../../support/fake-connections.ts';
import { remainsOf } from '../../support/fake-peers.ts';
import { serverFrame } from '../../support/frames.ts';
import { waitFor } from '../../support/wait-for.ts';
import { RecordingConnector } from './recording-connector.ts';

type Run = Partial<DetectOptions> & { readonly probeTimeoutMs?: number; readonly handshakeTimeoutMs?: number };
type Found = Detection & { readonly connection: Prober };

interface Setup {
  readonly dialer: RecordingConnector;
  /** Asks a process for a session, in both eras. */
  detect(run?: Run): Promise<Found>;
}

const CLIENT_INFO = { name: 'test', version: '1' };

/** Everything that is started ends with the test. */
function setUp(t: ExecutionContext, name: string, args: readonly string[] = []): Setup {
  const { deps } = createTestDeps();
  const dialer = new RecordingConnector(
    createStdioConnector({
      ...loneDialer(),
      target: { kind: 'command', command: process.execPath, args: [fixture(name), ...args] },
      child: { cwd: undefined, env: { PATH: process.env.PATH ?? '' }, withheldEnv: [], pty: false },
      maxMessageBytes: 1024 * 1024,
      shutdownGraceMs: 2000,
      deps,
    }),
  );
  t.teardown(() => dialer.close());
  return { dialer, detect: (run) => detectAt(dialer, run) };
}

/** Many servers start at once here, so the probe waits long unless it is told otherwise. */
async function detectAt(
  dialer: Connector,
  { probeTimeoutMs = 6 * PROBE_TIMEOUT_MS, handshakeTimeoutMs = 60_000, ...run }: Run = {},
) {
  const { deps } = createTestDeps();
  const { clock, log } = deps;
  const { signal } = new AbortController();
  const initialize = initializeAs(CLIENT_INFO, {}, handshakeTimeoutMs);
  const connectAnew = (): Prober => new Prober(dialer, clock);
  const { name } = dialer;
  const attempts = new ConnectionAttempts(
    { name, transport: 'stdio', clientInfo: CLIENT_INFO, probeTimeoutMs, initialize, connectAnew, signal },
    connectAnew(),
  );
  try {
    const detection = await detect({ attempts, order: OF_REQUEST, goal: 'session', clock, log, signal, ...run });
    return { ...detection, connection: attempts.prober };
  } catch (thrown) {
    await attempts.close();
    throw thrown;
  }
}

/** Of a server that reads nothing before the probe has timed out: what follows it waits by then. */
const SLOW = ['initialize'];

test('a modern-only server is recognized by one discover, and sees no initialize', async (t) => {
  const { dialer, detect } = setUp(t, 'modern-only');
  const found = await detect();
  if (found.kind !== 'modern') return t.fail(found.kind);
  t.is(found.revision, '2026-07-28');
  t.like(found.answer.outcome, { kind: 'result', result: { supportedVersions: ['2026-07-28'] } });
  t.deepEqual(dialer.sent, [['server/discover']]);
});

test('a server of both eras is recognized as modern when asked like this', async (t) => {
  const { dialer, detect } = setUp(t, 'both-eras');
  t.is((await detect()).kind, 'modern');
  t.deepEqual(dialer.sent, [['server/discover']]);
});

for (const code of [-32601, -32602, 0, -32000]) {
  test(`a server that answers ${code} to discover gets initialize in the same process`, async (t) => {
    const { dialer, detect } = setUp(t, 'refuses-before-initialize', [String(code)]);
    const found = await detect();
    if (found.kind !== 'legacy') return t.fail(found.kind);
    t.like(found.answer.outcome, { result: { protocolVersion: '2025-11-25', serverInfo: { name: 'stub' } } });
    t.deepEqual(dialer.sent, [['server/discover', 'initialize']]);
    const listed = await found.connection.request('tools/list', {}, 60_000);
    t.like(listed.outcome, { kind: 'result', result: { tools: [{ name: 'echo' }] } });
  });
}

test('a server that is silent before initialize is legacy once the probe has timed out', async (t) => {
  const { dialer, detect } = setUp(t, 'silent-before-initialize');
  const noted: string[] = [];
  const note = ({ request, saw }: Attempt) => void noted.push(`${request}: ${saw}`);
  t.is((await detect({ probeTimeoutMs: 300, note })).kind, 'legacy');
  t.deepEqual(dialer.sent, [['server/discover', 'initialize']]);
  t.deepEqual(noted, ['server/discover: no answer within 300 ms', 'initialize: answered']);
});

test('a server that exits at the probe is started once more, without one', async (t) => {
  const { dialer, detect } = setUp(t, 'exits-at-unknown-request');
  t.is((await detect()).kind, 'legacy');
  t.deepEqual(dialer.sent, [['server/discover'], ['initialize']]);
});

test('a server that exits at the probe after it has timed out is started once more, too', async (t) => {
  const { dialer, detect } = setUp(t, 'exits-at-unknown-request', SLOW);
  t.is((await detect({ probeTimeoutMs: 1 })).kind, 'legacy');
  t.deepEqual(dialer.sent, [['server/discover', 'initialize'], ['initialize']]);
});

test('a server of both eras that took initialize stays legacy; its late discovery is dropped', async (t) => {
  const { dialer, detect } = setUp(t, 'both-eras-late');
  const found = await detect({ probeTimeoutMs: 300 });
  t.is(found.kind, 'legacy');
  const listed = await found.connection.request('tools/list', {}, 60_000);
  t.like(listed.outcome, { kind: 'result', result: { tools: [{ name: 'echo' }] } });
  t.is(dialer.connections[0]?.received.length, 3, 'the late answer came before this one');
});

test('a modern-only server that starts slower than the probe waits is modern all the same', async (t) => {
  const { dialer, detect } = setUp(t, 'modern-only', SLOW);
  const found = await detect({ probeTimeoutMs: 100 });
  t.is(found.kind, 'modern');
  t.deepEqual(dialer.sent[0]?.slice(0, 2), ['server/discover', 'initialize']);
  t.is(dialer.sent.length, 1);
});

test('noise on stdout before and between messages does not disturb detection', async (t) => {
  const { dialer, detect } = setUp(t, 'prints-garbage');
  const found = await detect();
  t.is(found.kind, 'legacy');
  t.deepEqual(dialer.sent, [['server/discover', 'initialize']]);
  const listed = await found.connection.request('tools/list', {}, 60_000);
  t.is(listed.outcome.kind, 'result');
});

test('a server that offers another revision is asked once more with that one', async (t) => {
  const { dialer, detect } = setUp(t, 'modern-only');
  const found = await detect({ revision: '2027-01-01' });
  if (found.kind !== 'modern') return t.fail(found.kind);
  t.is(found.revision, '2026-07-28');
  t.deepEqual(dialer.sent, [['server/discover', 'server/discover']]);
});

test('a server that refuses the revision it offers is not asked for ever, and gets no initialize', async (t) => {
  const { dialer, detect } = setUp(t, 'refuses-its-own-revision', ['2026-07-28']);
  const error = await t.throwsAsync<BridgeError>(detect());
  t.is(error?.code, 'ERR_UPSTREAM_REVISION');
  t.regex(error?.message ?? '', /offers 2026-07-28 and refuses it/);
  t.deepEqual(dialer.sent, [['server/discover', 'server/discover']]);
  t.true(dialer.connections.every((connection) => connection.isClosed));
});

test('a server that speaks only revisions to come is named with them', async (t) => {
  const { detect } = setUp(t, 'refuses-its-own-revision', ['2031-01-01']);
  const error = await t.throwsAsync<BridgeError>(detect());
  t.is(error?.code, 'ERR_UPSTREAM_REVISION');
  t.deepEqual(error?.data, { supported: ['2031-01-01'] });
});

test('a server that refuses both is reported with both of its answers', async (t) => {
  const { detect } = setUp(t, 'refuses-its-own-revision', []);
  t.like(await detect(), { kind: 'refused', error: { code: -32022 } });
  const error = await t.throwsAsync<BridgeError>(detect({ goal: 'era', order: ['initialize', 'discover'] }));
  t.is(error?.code, 'ERR_UPSTREAM_DETECT');
  t.regex(
    error?.message ?? '',
    /Tried: initialize: error -32022 "Unsupported protocol version"; server\/discover: error -32022 /,
  );
});

test('a server that exits whatever it is asked is reported with its last words', async (t) => {
  const { dialer, detect } = setUp(t, 'exits-before-initialize');
  const error = await t.throwsAsync<BridgeError>(detect());
  t.is(error?.code, 'ERR_UPSTREAM_EXITED');
  t.regex(error?.message ?? '', /SOME_KEY is not set/);
  t.is(dialer.connections.length, 2);
});

test('for a server that answers nothing at all, waiting for Content-Length headers is named as a possible reason', async (t) => {
  const { detect } = setUp(t, 'frames-by-length', ['frames']);
  const error = await t.throwsAsync<BridgeError>(detect({ probeTimeoutMs: 300, handshakeTimeoutMs: 300 }));
  t.is(error?.code, 'ERR_UPSTREAM_DETECT');
  t.regex(error?.message ?? '', /initialize: no answer within 300 ms.*may also wait for a Content-Length header/);
});

/** Everything that can go on has. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A server that has exited at the probe, and left something behind. */
function leaveSomething() {
  const dialer = new FakeConnector();
  const detection = detectAt(dialer);
  const { end } = remainsOf(dialer.latest.link);
  dialer.latest.listener.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', 'it has exited'));
  return { dialer, detection, end };
}

test('a server that exits at the probe is started once more when nothing is left of it', async (t) => {
  const { dialer, detection, end } = leaveSomething();
  await settled();
  t.is(dialer.dialed.length, 1);
  await end();
  await waitFor(() => dialer.dialed.length === 2);
  const { link, listener } = dialer.latest;
  listener.fromServer(serverFrame({ id: link.sent[0]?.frame.id, result: { protocolVersion: '2025-11-25' } }));
  t.is((await detection).kind, 'legacy');
});

test('who is told that a server cannot be used can start it again: nothing is left of it', async (t) => {
  const { dialer, detection, end } = leaveSomething();
  await end();
  await waitFor(() => dialer.dialed.length === 2);
  const { end: endAgain } = remainsOf(dialer.latest.link);
  let isOver = false;
  void detection.catch(() => {
    isOver = true;
  });
  dialer.latest.listener.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', 'it has exited again'));
  await settled();
  t.false(isOver);
  await endAgain();
  await t.throwsAsync(detection, { message: 'it has exited again' });
});

for (const [name, taken, probeTimeoutMs] of [
  ['refuses-before-initialize', 'discover', 60_000],
  ['silent-before-initialize', 'initialize', 300],
  ['exits-at-unknown-request', 'initialize', 60_000],
] as const) {
  test(`whether ${name} is modern is asked until it is certain, and no longer`, async (t) => {
    const { detect } = setUp(t, name);
    t.like(await detect({ goal: 'era', probeTimeoutMs }), { kind: 'legacy', by: taken });
  });
}
