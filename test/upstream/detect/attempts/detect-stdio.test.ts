/**
 * Detection over stdio, with real processes. Those servers that turn out modern are not talked to any further: that is
 * the part of the transport for the modern era.
 */
import test, { type ExecutionContext } from 'ava';
import { BridgeError } from '../../../../src/errors.ts';
import type { Attempt } from '../../../../src/upstream/detect/attempts/detect-errors.ts';
import {
  type DetectStdioOptions,
  detectStdio,
  type StdioDetection,
} from '../../../../src/upstream/detect/attempts/detect-stdio.ts';
import { VerdictCache } from '../../../../src/upstream/detect/verdict-cache.ts';
import { createStdioDialer } from '../../../../src/upstream/stdio/dialer.ts';
import { fixture } from '../../../process/child-spec.ts';
import { createTestDeps } from '../../../process/collected-log.ts';
import { FakeDialer, remainsOf } from '../../../support/fake-peers.ts';
import { serverFrame } from '../../../support/frames.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { RecordingDialer } from '../recording-dialer.ts';

interface Setup {
  readonly dialer: RecordingDialer;
  readonly options: DetectStdioOptions;
  detect(overrides?: Partial<DetectStdioOptions>): Promise<StdioDetection>;
}

/** Everything that is started ends with the test. */
function setUp(t: ExecutionContext, name: string, args: readonly string[] = []): Setup {
  const { deps } = createTestDeps();
  const dialer = new RecordingDialer(
    createStdioDialer({
      target: { kind: 'command', command: process.execPath, args: [fixture(name), ...args] },
      child: { cwd: undefined, env: { PATH: process.env.PATH ?? '' }, withheldEnv: [], pty: false },
      maxMessageBytes: 1024 * 1024,
      shutdownGraceMs: 2000,
      deps,
    }),
  );
  t.teardown(() => dialer.close());
  const options: DetectStdioOptions = {
    dialer,
    clientInfo: { name: 'test', version: '1' },
    clock: deps.clock,
    // Many servers start at once here.
    probeTimeoutMs: 60_000,
    log: deps.log,
    verdicts: new VerdictCache(deps.clock),
    key: name,
  };
  return { dialer, options, detect: (overrides) => detectStdio({ ...options, ...overrides }) };
}

/** Of a server that reads nothing before the probe has timed out: what follows it waits by then. */
const SLOW = ['initialize'];

test('a modern-only server is recognised by one discover, and sees no initialize', async (t) => {
  const { dialer, detect } = setUp(t, 'modern-only');
  const found = await detect();
  if (found.era !== 'modern') return t.fail(found.era);
  t.is(found.revision, '2026-07-28');
  t.deepEqual(found.discovery?.serverInfo, { name: 'sdk-v2', version: '2.0.0' });
  t.deepEqual(dialer.sent, [['server/discover']]);
});

test('a server of both eras is recognised as modern when asked like this', async (t) => {
  const { dialer, detect } = setUp(t, 'both-eras');
  t.is((await detect()).era, 'modern');
  t.deepEqual(dialer.sent, [['server/discover']]);
});

for (const code of [-32601, -32602, 0, -32000]) {
  test(`a server that answers ${code} to discover gets initialize in the same process`, async (t) => {
    const { dialer, detect } = setUp(t, 'refuses-before-initialize', [String(code)]);
    const found = await detect();
    if (found.era !== 'legacy') return t.fail(found.era);
    t.like(found.handshake, { protocolVersion: '2025-11-25', serverInfo: { name: 'stub' } });
    t.deepEqual(dialer.sent, [['server/discover', 'initialize']]);
    const listed = await found.connection.request('tools/list', {}, 60_000);
    t.like(listed.outcome, { kind: 'result', result: { tools: [{ name: 'echo' }] } });
  });
}

test('a server that is silent before initialize is legacy once the probe has timed out', async (t) => {
  const { dialer, detect } = setUp(t, 'silent-before-initialize');
  const noted: string[] = [];
  const note = ({ request, saw }: Attempt) => void noted.push(`${request}: ${saw}`);
  t.is((await detect({ probeTimeoutMs: 300, note })).era, 'legacy');
  t.deepEqual(dialer.sent, [['server/discover', 'initialize']]);
  t.deepEqual(noted, ['server/discover: no answer within 300 ms', 'initialize: answered']);
});

test('a server that exits at the probe is started once more, without one, now and later', async (t) => {
  const { dialer, detect } = setUp(t, 'exits-at-unknown-request');
  t.is((await detect()).era, 'legacy');
  t.deepEqual(dialer.sent, [['server/discover'], ['initialize']]);
  t.is((await detect()).era, 'legacy');
  t.deepEqual(dialer.sent, [['server/discover'], ['initialize'], ['initialize']]);
});

test('a server that exits at the probe after it has timed out is started once more, too', async (t) => {
  const { dialer, detect } = setUp(t, 'exits-at-unknown-request', SLOW);
  t.is((await detect({ probeTimeoutMs: 1 })).era, 'legacy');
  t.deepEqual(dialer.sent, [['server/discover', 'initialize'], ['initialize']]);
});

test('a server of both eras that took initialize stays legacy; its late discovery is dropped', async (t) => {
  const { dialer, detect } = setUp(t, 'both-eras-late');
  const found = await detect({ probeTimeoutMs: 300 });
  t.is(found.era, 'legacy');
  const listed = await found.connection.request('tools/list', {}, 60_000);
  t.like(listed.outcome, { kind: 'result', result: { tools: [{ name: 'echo' }] } });
  t.is(dialer.connections[0]?.received.length, 3, 'the late answer came before this one');
});

test('a modern-only server that starts slower than the probe waits is modern all the same', async (t) => {
  const { dialer, detect } = setUp(t, 'modern-only', SLOW);
  const found = await detect({ probeTimeoutMs: 100 });
  t.is(found.era, 'modern');
  t.deepEqual(dialer.sent, [['server/discover', 'initialize']]);
});

test('noise on stdout before and between messages does not disturb detection', async (t) => {
  const { dialer, detect } = setUp(t, 'prints-garbage');
  const found = await detect();
  t.is(found.era, 'legacy');
  t.deepEqual(dialer.sent, [['server/discover', 'initialize']]);
  const listed = await found.connection.request('tools/list', {}, 60_000);
  t.is(listed.outcome.kind, 'result');
});

test('a server that offers another revision is asked once more with that one', async (t) => {
  const { dialer, detect } = setUp(t, 'modern-only');
  const found = await detect({ revision: '2027-01-01' });
  if (found.era !== 'modern') return t.fail(found.era);
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
  const error = await t.throwsAsync<BridgeError>(detect());
  t.is(error?.code, 'ERR_UPSTREAM_DETECT');
  t.regex(
    error?.message ?? '',
    /Tried: server\/discover: error -32022 "Unsupported protocol version"; initialize: error -32022 /,
  );
});

test('a server that exits whatever it is asked is reported with its last words', async (t) => {
  const { dialer, detect } = setUp(t, 'exits-before-initialize');
  const error = await t.throwsAsync<BridgeError>(detect());
  t.is(error?.code, 'ERR_UPSTREAM_EXITED');
  t.regex(error?.message ?? '', /SOME_KEY is not set/);
  t.is(dialer.connections.length, 2);
});

/** Everything that can go on has. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A server that has exited at the probe, and left something behind. */
function leaveSomething(t: ExecutionContext) {
  const dialer = new FakeDialer();
  const { options } = setUp(t, 'echo');
  const detection = detectStdio({ ...options, dialer });
  const { end } = remainsOf(dialer.latest.link);
  dialer.latest.listener.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', 'it has exited'));
  return { dialer, detection, end };
}

test('a server that exits at the probe is started once more when nothing is left of it', async (t) => {
  const { dialer, detection, end } = leaveSomething(t);
  await settled();
  t.is(dialer.dialled.length, 1);
  await end();
  await waitFor(() => dialer.dialled.length === 2);
  const { link, listener } = dialer.latest;
  listener.fromServer(serverFrame({ id: link.sent[0]?.frame.id, result: { protocolVersion: '2025-11-25' } }));
  t.is((await detection).era, 'legacy');
});

test('who is told that a server cannot be used can start it again: nothing is left of it', async (t) => {
  const { dialer, detection, end } = leaveSomething(t);
  await end();
  await waitFor(() => dialer.dialled.length === 2);
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
