import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import type { Era } from '../../../src/mcp/vocabulary/revisions.ts';
import { asSessionDialer } from '../../../src/upstream/connection.ts';
import { askWhenHanging } from '../../../src/upstream/resilience/life-check.ts';
import type { Frame } from '../../../src/wire/frame.ts';
import { errorFrame, notificationFrame, requestFrame, resultFrame } from '../../../src/wire/write-message.ts';
import { FakeConnector } from '../../support/fake-connections.ts';
import { createFakeDeps, FakeServerListener } from '../../support/fake-peers.ts';

const REQUEST_TIMEOUT_MS = 10_000;
const HANG_TIMEOUT_MS = 3000;
const WHAT = { code: -32601, message: 'what?' };
const CLOSED = new BridgeError('ERR_SESSION_CLOSED', 'done');

/** A watched process that has just been started. */
function watch({ era = 'legacy' as Era, isProcess = true } = {}) {
  const deps = createFakeDeps();
  const { clock } = deps;
  const dialer = new FakeConnector();
  const listener = new FakeServerListener();
  const clientInfo = { name: 'bridge', version: '0' };
  const times = { requestTimeoutMs: REQUEST_TIMEOUT_MS, hangTimeoutMs: HANG_TIMEOUT_MS };
  dialer.createLifeCheck = askWhenHanging({ name: dialer.name, ...times, era, clientInfo, deps });
  const link = asSessionDialer(dialer).dial(listener);
  const server = dialer.latest;
  const saysBytes = (): void => {
    if (isProcess) server.link.heardAt(clock.now());
  };
  saysBytes();
  return {
    clock,
    link,
    listener,
    server,
    saysBytes,
    says(frame: Frame): void {
      saysBytes();
      server.listener.fromServer(frame);
    },
    call: (id: number): boolean => link.send(requestFrame(id, 'tools/call')),
    giveUp: (id: number): boolean => link.send(notificationFrame('notifications/cancelled', { requestId: id })),
    /** What the server was asked by the bridge itself since the last look. */
    questions: (): readonly Frame[] =>
      server.link
        .take()
        .map(({ frame }) => frame)
        .filter(({ method }) => method === 'ping' || method === 'server/discover'),
  };
}

/** A call has timed out, and nothing had come since it was sent. */
function timedOut(options: Parameters<typeof watch>[0] = {}) {
  const bench = watch(options);
  bench.call(1);
  bench.clock.advance(REQUEST_TIMEOUT_MS);
  bench.giveUp(1);
  return bench;
}

test('a process that was silent for as long as a call may be is asked whether it lives, when the call is given up', (t) => {
  const { clock, call, giveUp, questions } = watch();
  call(1);
  clock.advance(REQUEST_TIMEOUT_MS);
  t.deepEqual(questions(), []);
  giveUp(1);
  t.deepEqual(
    questions().map((frame) => frame.json()),
    [{ jsonrpc: '2.0', id: 'mcp-portage-alive-1', method: 'ping' }],
  );
});

test('a modern process is asked with server/discover, for that era has no ping', (t) => {
  const [question] = timedOut({ era: 'modern' }).questions();
  t.like(question?.json(), {
    method: 'server/discover',
    params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } },
  });
});

test('the question comes behind the withdrawal of the call', (t) => {
  const { server } = timedOut();
  t.deepEqual(
    server.link.take().map(({ frame }) => frame.method),
    ['tools/call', 'notifications/cancelled', 'ping'],
  );
});

test('a process of which nothing comes within the limit is gone for its clients, and ended', (t) => {
  const { clock, listener, server } = timedOut();
  clock.advance(HANG_TIMEOUT_MS - 1);
  t.deepEqual(listener.closedWith, []);
  clock.advance(1);
  const [reason, ...more] = listener.closedWith;
  t.is(reason?.code, 'ERR_UPSTREAM_HUNG');
  t.regex(reason?.message ?? '', /^Server "fake-server" hangs: for 13 s .*--request-timeout .*--hang-timeout 0/);
  t.deepEqual(more, []);
  t.deepEqual(server.link.closedWith, [reason]);
  t.is(clock.pendingTimers, 0);
});

const LIFE: readonly (readonly [what: string, frame: (question: Frame) => Frame, reachesTheClients: boolean])[] = [
  ['the answer', ({ id }) => resultFrame(id ?? '', {}), false],
  ['an error as the answer', ({ id }) => errorFrame(id, WHAT), false],
  ['an error without id', () => errorFrame(undefined, WHAT), false],
  ['the late answer to a call', () => resultFrame(1, {}), true],
  ['a notification', () => notificationFrame('notifications/message'), true],
  ['a question of its own', () => requestFrame('q', 'ping'), true],
];

for (const [what, frame, reachesTheClients] of LIFE) {
  test(`${what} shows that the process lives${reachesTheClients ? ', and passes' : ''}`, (t) => {
    const { clock, listener, server, says, questions } = timedOut();
    const [question] = questions();
    clock.advance(HANG_TIMEOUT_MS - 1);
    const said = frame(question as Frame);
    says(said);
    t.is(clock.pendingTimers, 0);
    clock.advance(10 * HANG_TIMEOUT_MS);
    t.deepEqual([listener.closedWith, server.link.closedWith], [[], []]);
    t.deepEqual(
      listener.received.map(({ frame: passed }) => passed),
      reachesTheClients ? [said] : [],
    );
  });
}

test('a single byte shows it, too; an answer that comes after the limit is still kept to itself', (t) => {
  const { clock, listener, saysBytes, says, questions } = timedOut();
  const [question] = questions();
  clock.advance(HANG_TIMEOUT_MS - 1);
  saysBytes();
  clock.advance(10 * HANG_TIMEOUT_MS);
  says(resultFrame(question?.id ?? '', {}));
  t.deepEqual([listener.closedWith, listener.received], [[], []]);
  t.is(clock.pendingTimers, 0);
});

test('what came before the question shows nothing', (t) => {
  const { clock, listener, call, giveUp, saysBytes } = watch();
  call(1);
  saysBytes();
  clock.advance(REQUEST_TIMEOUT_MS);
  giveUp(1);
  clock.advance(HANG_TIMEOUT_MS);
  t.is(listener.closedWith.length, 1);
});

test('several calls that are given up make one question', (t) => {
  const { clock, listener, call, giveUp, questions } = watch();
  for (const id of [1, 2, 3]) call(id);
  clock.advance(REQUEST_TIMEOUT_MS);
  for (const id of [1, 2, 3]) {
    giveUp(id);
    clock.advance(HANG_TIMEOUT_MS / 10);
  }
  t.is(questions().length, 1);
  clock.advance(HANG_TIMEOUT_MS);
  t.is(listener.closedWith.length, 1);
});

test('a process that has shown life is asked again when it has been silent for as long once more', (t) => {
  const { clock, says, call, giveUp, questions } = timedOut();
  const [first] = questions();
  says(resultFrame(first?.id ?? '', {}));
  call(2);
  clock.advance(REQUEST_TIMEOUT_MS / 2);
  giveUp(2);
  t.deepEqual(questions(), []);
  call(3);
  clock.advance(REQUEST_TIMEOUT_MS / 2);
  giveUp(3);
  const [second] = questions();
  t.is(second?.id, 'mcp-portage-alive-2');
});

test('a process that is busy with other calls is not asked', (t) => {
  const { clock, call, giveUp, says, questions } = watch();
  call(1);
  for (let id = 2; id < 12; id += 1) {
    call(id);
    clock.advance(REQUEST_TIMEOUT_MS / 10);
    says(resultFrame(id, {}));
  }
  giveUp(1);
  t.deepEqual(questions(), []);
});

test('a client that gives up soon does not make it a question; clients that each do are noticed all the same', (t) => {
  const { clock, call, giveUp, questions } = watch();
  const asked: number[] = [];
  for (let id = 1; id <= 10; id += 1) {
    call(id);
    clock.advance(REQUEST_TIMEOUT_MS / 5);
    giveUp(id);
    if (questions().length > 0) asked.push(id);
    if (asked.length > 0) break;
  }
  t.deepEqual(asked, [5]);
});

test('silence counts from when there was something to say', (t) => {
  const { clock, call, giveUp, questions } = watch();
  clock.advance(100 * REQUEST_TIMEOUT_MS);
  call(1);
  clock.advance(REQUEST_TIMEOUT_MS / 2);
  giveUp(1);
  t.deepEqual(questions(), []);
});

test('an error without id passes while nothing is asked', (t) => {
  const { listener, says, call } = watch();
  call(1);
  says(errorFrame(undefined, WHAT));
  t.is(listener.received.length, 1);
});

test('a server that is no process of the bridge is not asked', (t) => {
  const { clock, questions } = timedOut({ isProcess: false });
  t.deepEqual(questions(), []);
  t.is(clock.pendingTimers, 0);
});

test('a process that is not read is neither asked nor judged', (t) => {
  const { clock, link, listener, call, giveUp, questions } = timedOut();
  questions();
  link.pause();
  clock.advance(REQUEST_TIMEOUT_MS);
  call(2);
  giveUp(2);
  t.deepEqual([questions(), listener.closedWith], [[], []]);
  link.resume();
  giveUp(2);
  t.is(questions().length, 1);
});

for (const end of ['its clients have left', 'it has ended'] as const) {
  test(`a process is neither asked nor judged anymore when ${end}`, (t) => {
    const { clock, link, listener, server, call, giveUp, questions } = timedOut();
    questions();
    if (end === 'it has ended') server.listener.serverClosed(CLOSED);
    else link.close(CLOSED);
    t.is(clock.pendingTimers, 0);
    call(2);
    clock.advance(REQUEST_TIMEOUT_MS);
    giveUp(2);
    t.deepEqual(questions(), []);
    t.is(clock.pendingTimers, 0);
    t.deepEqual(listener.closedWith, end === 'it has ended' ? [CLOSED] : []);
  });
}

test('a bridge that stood still itself waits once more before it judges', (t) => {
  const { clock, listener } = timedOut();
  const steady = clock.now.bind(clock);
  let offsetMs = 0;
  clock.now = () => steady() + offsetMs;
  offsetMs = 60_000;
  clock.advance(HANG_TIMEOUT_MS);
  t.deepEqual(listener.closedWith, []);
  clock.advance(HANG_TIMEOUT_MS);
  t.is(listener.closedWith[0]?.code, 'ERR_UPSTREAM_HUNG');
  t.is(clock.pendingTimers, 0);
});

test('all else passes both ways', (t) => {
  const { link, listener, server } = watch();
  server.link.hasCapacity = false;
  t.false(link.send(requestFrame(1, 'tools/call')));
  const fault = { error: CLOSED, kind: undefined, id: undefined };
  server.listener.serverFault(fault);
  server.listener.serverDrained();
  t.deepEqual([listener.faults, listener.drains], [[fault], 1]);
  link.pause();
  t.true(server.link.isPaused);
  link.resume();
  t.false(server.link.isPaused);
});
