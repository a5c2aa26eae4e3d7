import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import type { Call } from '../../src/relay/call.ts';
import {
  CallCapacity,
  type CallOwner,
  type Calls,
  type CallTimes,
  shortestOf,
  sweepPeriodOf,
} from '../../src/relay/calls.ts';
import type { Observer } from '../../src/relay/observer.ts';
import type { Tracer } from '../../src/relay/tracer.ts';
import type { Frame } from '../../src/wire/frame.ts';
import { type CallsParts, createCalls, FakeObserver, ORIGIN, viewOfTools } from '../support/calls.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { FakeLane } from '../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../support/frames.ts';

const GONE = new BridgeError('ERR_UPSTREAM_EXITED', 'the server exited');
const TIMES = { requestTimeoutMs: 10, maxCallTimeMs: 100 };

interface Opened {
  readonly clock: FakeClock;
  readonly calls: Calls;
  readonly owner: CallOwner & { readonly over: Call[] };
  open(request?: object): Call;
}

function open(parts: CallsParts = {}): Opened {
  const clock = new FakeClock();
  const calls = createCalls(clock, parts);
  const over: Call[] = [];
  const owner = {
    over,
    principal: ORIGIN.principal,
    describe: () => ({ ...ORIGIN, era: 'legacy', revision: '2025-11-25', name: 'c', version: '1' }) as const,
    ended: (call: Call) => void over.push(call),
  };
  return {
    clock,
    calls,
    owner,
    open: (request = { id: 1, method: 'tools/call' }) => {
      const frame = clientFrame(request);
      const call = calls.receive(frame, new FakeLane());
      calls.open(owner, call, frame);
      return call;
    },
  };
}

const large = (length: number) => ({ id: 1, method: 'tools/call', params: { text: 'x'.repeat(length) } });

/** A request of exactly this size. */
function ofBytes(length: number): Frame {
  const empty = clientFrame({ id: 1, method: 'x', params: { text: '' } }).bytes.length;
  return clientFrame({ id: 1, method: 'x', params: { text: 'x'.repeat(length - empty) } });
}

// ---- how many

test('so many calls may be open and no more', (t) => {
  const { calls, owner, open: opened } = open({ maxOpen: 2 });
  const [first] = [opened(), opened()];
  const refusal = calls.refusalOf(ofBytes(100));
  t.is(refusal?.code, 'ERR_SESSION_BUSY');
  t.regex(refusal?.message ?? '', /^2 calls of all clients/);
  calls.cancel(owner, first);
  t.is(calls.refusalOf(ofBytes(100)), undefined);
});

test('large requests together are limited by their bytes, and small ones go on', (t) => {
  const { calls, owner, open: opened } = open({ maxOpen: 100, maxBytes: 60_000 });
  const [first] = [opened(large(40_000)), opened(large(40_000))];
  opened(large(10_000));
  const refusal = calls.refusalOf(ofBytes(20_000));
  t.is(refusal?.code, 'ERR_SESSION_BUSY');
  t.is(refusal?.retryAfterMs, 1000);
  t.regex(refusal?.message ?? '', /have 80134 bytes, and 60000 are the most/);
  t.is(calls.refusalOf(ofBytes(16 * 1024)), undefined);
  calls.cancel(owner, first);
  t.is(calls.refusalOf(ofBytes(20_000)), undefined, 'the one that goes beyond it is still taken');
});

for (const [title, end] of [
  ['answered', (calls, owner, call) => calls.answer(owner, call, serverFrame({ id: 1, result: {} }))],
  ['failed', (calls, owner, call) => calls.fail(owner, call, GONE)],
  ['cancelled', (calls, owner, call) => calls.cancel(owner, call)],
  ['timed out', (calls, owner, call) => calls.timeOut(owner, call, 100, TIMES)],
  ['a subscription of a bridge that ends', (calls, owner, call) => calls.endSubscription(owner, call)],
  [
    'ended by a notification of the server',
    (calls, owner, call) => calls.endedByServer(owner, call, serverFrame({ method: 'x' })),
  ],
] as readonly (readonly [string, (calls: Calls, owner: CallOwner, call: Call) => void])[]) {
  test(`a call that is ${title} is over once, given back, and its owner is told`, (t) => {
    const { calls, owner, open: opened } = open({ maxOpen: 1 });
    const call = opened();
    end(calls, owner, call);
    t.deepEqual(owner.over, [call]);
    t.is(calls.size, 0);
    t.throws(() => calls.fail(owner, call, GONE), { message: /already/ });
    t.is(calls.size, 0);
  });
}

test('small requests take nothing of the bytes of large ones, and give nothing back', (t) => {
  const { calls, owner, open: opened } = open({ maxBytes: 60_000 });
  const { bytes } = clientFrame(large(0));
  const small = opened(large(16 * 1024 - bytes.length));
  t.is(calls.largeRequestBytes, 0);
  const limit = small.requestBytes + 1;
  const first = opened(large(limit - bytes.length));
  t.is(calls.largeRequestBytes, limit);
  calls.cancel(owner, small);
  calls.cancel(owner, opened());
  t.is(calls.largeRequestBytes, limit);
  calls.cancel(owner, first);
  t.is(calls.largeRequestBytes, 0);
});

test('the servers share what may be open, and a server that is gone gives its part back', (t) => {
  const capacity = new CallCapacity(3);
  const [one, other] = [capacity.share(), capacity.share()];
  t.is(one.bytes.total, 256 * 1024 * 1024);
  one.slots.take(2);
  one.bytes.take(1000);
  other.slots.take(1);
  t.like(capacity.slots, { taken: 3, total: 3 });
  t.true(other.slots.isFull);
  one.close();
  t.like(capacity.slots, { taken: 1, total: 3 });
  t.false(other.slots.isFull);
});

// ---- for how long

/** Why a call opened at 0 has to end; undefined: it may go on. */
function phaseAt(nowMs: number, times: CallTimes, change: Partial<Call> = {}, method = 'tools/call'): unknown {
  const { calls, owner, open: opened } = open();
  const call = Object.assign(opened({ id: 1, method }), change);
  const error = calls.timeOut(owner, call, nowMs, times)?.error;
  if (error?.data?.phase === 'call') return error.message;
  return error?.data?.phase;
}

test('a call is overdue when nothing has happened for so long', (t) => {
  t.is(phaseAt(29, TIMES, { lastActiveMs: 20 }), undefined);
  t.is(phaseAt(30, TIMES, { lastActiveMs: 20 }), 'response');
  t.is(phaseAt(1e9, { requestTimeoutMs: 0, maxCallTimeMs: 0 }), undefined);
});

test('a call is overdue when it is open for so long, whatever has happened and whoever is being asked', (t) => {
  const asking = { lastActiveMs: 99, openQuestions: 1 };
  t.is(phaseAt(99, TIMES, asking), undefined);
  t.regex(String(phaseAt(100, TIMES, asking)), /tools\/call within 100 ms.*raise --max-call-time/);
  t.is(phaseAt(1e9, { requestTimeoutMs: 10, maxCallTimeMs: 0 }, asking), undefined);
});

test('the time of a call begins when it comes, and its error says how to give it more', (t) => {
  const { clock, calls, owner, open: opened } = open();
  clock.advance(1000);
  const times = { requestTimeoutMs: 0, maxCallTimeMs: 100 };
  const call = opened();
  t.is(calls.timeOut(owner, call, 1099, times), undefined);
  t.not(calls.timeOut(owner, call, 1100, times), undefined);
  const silent = calls.timeOut(owner, opened(), 1010, TIMES);
  t.regex(silent?.error.message ?? '', /tools\/call within 10 ms.*raise --request-timeout/);
});

test('what is heard of a call starts its time anew', (t) => {
  const { clock, calls, owner, open: opened } = open();
  const call = opened();
  clock.advance(9);
  calls.heard(call);
  t.is(calls.timeOut(owner, call, 18, TIMES), undefined);
  t.like(calls.timeOut(owner, call, 19, TIMES), { error: { code: 'ERR_UPSTREAM_TIMEOUT' } });
});

test('a subscription is never overdue', (t) => {
  t.is(phaseAt(1e9, TIMES, {}, 'subscriptions/listen'), undefined);
});

test('the shortest limit of a call counts', (t) => {
  t.is(shortestOf(TIMES), 10);
  t.is(shortestOf({ requestTimeoutMs: 0, maxCallTimeMs: 5 }), 5);
  t.is(shortestOf({ requestTimeoutMs: 7 }), 7);
  t.is(shortestOf({ requestTimeoutMs: 0, maxCallTimeMs: 0 }), Number.POSITIVE_INFINITY);
});

test('the shortest limit says how often to look', (t) => {
  t.is(sweepPeriodOf(400), 100);
  t.is(sweepPeriodOf(1), 10, 'not all the time');
  t.is(sweepPeriodOf(60_000), 1000, 'at least once a second');
  t.is(sweepPeriodOf(Number.POSITIVE_INFINITY), Number.POSITIVE_INFINITY, 'never');
});

// ---- what is seen of it

test('an observer is told who calls what, and how it ended, how large and after which time', (t) => {
  const observer = new FakeObserver();
  const { clock, calls, owner, open: opened } = open({ observer });
  clock.advance(5);
  const request = { id: 1, method: 'tools/call', params: { name: 'echo', arguments: { text: 'secret' } } };
  const call = opened(request);
  call.sentBytes = 30;
  clock.advance(7);
  const answer = serverFrame({ id: 1, result: {} });
  calls.answer(owner, call, answer);
  t.deepEqual(observer.calls, [
    {
      client: { ...ORIGIN, era: 'legacy', revision: '2025-11-25', name: 'c', version: '1' },
      method: 'tools/call',
      tool: 'echo',
      requestBytes: clientFrame(request).bytes.length,
      openedAtMs: 5,
      traceId: undefined,
      endings: [{ outcome: { kind: 'answered' }, bytes: 30 + answer.bytes.length, durationMs: 7, server: undefined }],
    },
  ]);
});

test('an error of the server is told from one that a bridge has made', (t) => {
  const observer = new FakeObserver();
  const { calls, owner, open: opened } = open({ observer });
  const data = { bridge: { reason: 'ERR_UPSTREAM_EXITED' } };
  for (const error of [
    { code: -32602, message: 'no' },
    { code: -32603, message: 'gone', data },
    { code: 'odd', message: 'odd' },
  ]) {
    calls.answer(owner, opened(), serverFrame({ id: 1, error }));
  }
  t.deepEqual(observer.outcomes, [
    { kind: 'error', code: -32602 },
    { kind: 'failed', code: 'ERR_UPSTREAM_EXITED' },
    { kind: 'error', code: undefined },
  ]);
});

test('a request that is refused is seen to begin and to end, and counts nowhere', (t) => {
  const observer = new FakeObserver();
  const { calls, owner } = open({ observer });
  const answer = calls.refuse(owner, clientFrame({ id: 'x', method: 'ping' }), GONE);
  t.like(answer.json(), { id: 'x', error: { code: -32603 } });
  const outcome = { kind: 'failed', code: 'ERR_UPSTREAM_EXITED' } as const;
  t.deepEqual(observer.calls[0]?.endings, [{ outcome, bytes: answer.bytes.length, durationMs: 0, server: undefined }]);
  t.is(calls.size, 0);
  t.deepEqual(owner.over, []);
});

test('an observer is told of a call that the bridge fails, and of one that the server ends by a notification', (t) => {
  const observer = new FakeObserver();
  const { calls, owner, open: opened } = open({ observer });
  calls.fail(owner, opened(), GONE);
  const last = serverFrame({ method: 'notifications/cancelled', params: { requestId: 1 } });
  calls.endedByServer(owner, opened(), last);
  t.deepEqual(observer.outcomes, [{ kind: 'failed', code: 'ERR_UPSTREAM_EXITED' }, { kind: 'answered' }]);
  t.is(observer.calls[1]?.endings[0]?.bytes, last.bytes.length);
});

const ASKS_FOR_LOGS = {
  id: 1,
  method: 'tools/call',
  params: {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
      'io.modelcontextprotocol/logLevel': 'info',
    },
  },
};
const ASKS_FOR_ROOTS = {
  id: 1,
  result: { resultType: 'input_required', inputRequests: { q: { method: 'roots/list', params: {} } } },
};

test('an observer is told who uses what is deprecated in a modern call', (t) => {
  const observer = new FakeObserver();
  const uses: unknown[] = [];
  observer.used = (feature, by) => void uses.push([feature, by]);
  const { calls, owner } = open({ observer });
  const client = { ...ORIGIN, era: 'modern', revision: '2026-07-28', name: 'c', version: '1' } as const;
  for (const era of ['modern', 'legacy'] as const) {
    const own: CallOwner = { ...owner, describe: () => ({ ...client, era }) };
    for (const [request, answer] of [
      [ASKS_FOR_LOGS, { id: 1, result: {} }],
      [{ id: 1, method: 'tools/call' }, ASKS_FOR_ROOTS],
    ] as const) {
      const frame = clientFrame(request);
      const call = calls.receive(frame, new FakeLane());
      calls.open(own, call, frame);
      calls.answer(own, call, serverFrame(answer));
    }
  }
  const by = { server: ORIGIN.server, client };
  t.deepEqual(uses, [
    ['logging', by],
    ['roots', by],
  ]);
});

test('a call that is only traced uses what is deprecated without anybody being told', (t) => {
  const begun: unknown[] = [];
  const tracer = { begin: (request: object) => void begun.push(request) } as unknown as Tracer;
  const { calls, owner } = open({ tracer });
  const own: CallOwner = { ...owner, describe: (frame) => ({ ...owner.describe(frame), era: 'modern' }) };
  const frame = clientFrame(ASKS_FOR_LOGS);
  const call = calls.receive(frame, new FakeLane());
  calls.open(own, call, frame);
  t.notThrows(() => calls.answer(own, call, serverFrame(ASKS_FOR_ROOTS)));
  calls.refuse(own, frame, GONE);
  t.is(begun.length, 2, 'also of one that is refused');
});

test('an observer need not care how a call ends', (t) => {
  const observer: Observer = {
    seesCalls: true,
    opened: () => undefined,
    connected: () => undefined,
    refused: () => {},
    used: () => {},
  };
  const { calls, owner, open: opened } = open({ observer });
  t.notThrows(() => calls.fail(owner, opened(), GONE));
  t.notThrows(() => calls.refuse(owner, clientFrame({ id: 1, method: 'ping' }), GONE));
});

test('where nobody observes, nobody is asked who calls, and the end needs no time', (t) => {
  const { clock, calls, owner, open: opened } = open();
  const silent: CallOwner = { ...owner, describe: () => t.fail() as never };
  const frame = clientFrame({ id: 1, method: 'tools/call', params: { name: 'echo' } });
  const call = calls.receive(frame, new FakeLane());
  calls.open(silent, call, frame);
  calls.refuse(silent, frame, GONE);
  clock.now = () => t.fail() as never;
  calls.answer(owner, call, serverFrame({ id: 1, result: {} }));
  clock.now = () => 0;
  const canceled = opened();
  clock.now = () => t.fail() as never;
  calls.cancel(owner, canceled);
  t.is(canceled.onEnded, undefined);
  t.is(calls.size, 0);
});

test('the observer of a server gets the lists of tools as clients get them, and no other answer', (t) => {
  const lists: string[] = [];
  const { started, wrote, failed } = { started: () => {}, wrote: () => {}, failed: () => {} };
  const listedTools = (list: Frame) => void lists.push(list.bytes.toString());
  const tools = viewOfTools({ isHidden: (name) => name === 'hidden' });
  const { calls, owner, open: begin } = open({ tools, serverObserver: { started, wrote, failed, listedTools } });
  const result = { tools: [{ name: 'hidden' }, { name: 'shown' }] };
  const told = calls.answer(owner, begin({ id: 1, method: 'tools/list' }), serverFrame({ id: 1, result }));
  t.deepEqual(lists, [told.bytes.toString()]);
  t.regex(lists.join(), /"shown"/);
  t.notRegex(lists.join(), /"hidden"/);
  calls.answer(owner, begin({ id: 2, method: 'tools/list' }), serverFrame({ id: 2, error: { code: 1, message: '' } }));
  calls.answer(owner, begin({ id: 3, method: 'resources/list' }), serverFrame({ id: 3, result }));
  t.is(lists.length, 1);
});

test('without a limit of results, every answer is passed on as it is', (t) => {
  const { calls, owner, open: begin } = open();
  const result = { content: [{ type: 'text', text: 'x'.repeat(100) }], tools: [{ name: 'a', outputSchema: {} }] };
  for (const method of ['tools/call', 'tools/list', 'tasks/get', 'tasks/result']) {
    const answer = serverFrame({ id: 1, result });
    t.is(calls.answer(owner, begin({ id: 1, method }), answer), answer);
  }
  const notification = serverFrame({ method: 'notifications/tasks', params: { result } });
  t.is(calls.notification(notification), notification);
});

test('with a limit of results, observers see what clients get', (t) => {
  const observer = new FakeObserver();
  const { calls, owner, open: begin } = open({ observer, maxResultBytes: 10 });
  const result = { content: [{ type: 'text', text: 'x'.repeat(1000) }] };
  const told = calls.answer(owner, begin(), serverFrame({ id: 1, result }));
  t.true(told.bytes.length < 300);
  t.is(observer.calls[0]?.endings[0]?.bytes, told.bytes.length);
  const list = calls.answer(
    owner,
    begin({ id: 2, method: 'tools/list' }),
    serverFrame({ id: 2, result: { tools: [{ name: 'a', outputSchema: {} }] } }),
  );
  t.deepEqual(list.json(), { jsonrpc: '2.0', id: 2, result: { tools: [{ name: 'a' }] } });
});

test('an observer that wants no calls is told of none', (t) => {
  const observer = new FakeObserver();
  observer.seesCalls = false;
  const { calls, owner, open: opened } = open({ observer });
  calls.answer(owner, opened(), serverFrame({ id: 1, result: {} }));
  calls.refuse(owner, clientFrame({ id: 'x', method: 'ping' }), GONE);
  t.deepEqual(observer.calls, []);
});

for (const tracer of [undefined, { begin: () => undefined }]) {
  test(`an observer that looks at one call in so many is asked once a call, ${tracer ? 'traced' : 'untraced'}`, (t) => {
    const observer = new FakeObserver();
    let asked = 0;
    Object.defineProperty(observer, 'seesCalls', { get: () => asked++ % 3 === 0 });
    const { calls, owner, open: opened } = open({ observer, tracer });
    for (const id of [1, 2])
      calls.answer(owner, opened({ id, method: `number ${id}` }), serverFrame({ id, result: {} }));
    for (const id of [3, 4]) calls.refuse(owner, clientFrame({ id, method: `number ${id}` }), GONE);
    t.deepEqual(
      observer.calls.map(({ method }) => method),
      ['number 1', 'number 4'],
    );
    t.is(asked, 4);
  });
}
