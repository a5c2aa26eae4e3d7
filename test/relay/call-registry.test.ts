import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { MAX_CALLER_LINKS } from '../../src/relay/caller-links.ts';
import { clientFrame } from '../support/frames.ts';
import { CallBench } from './call-pair.ts';

const CLOSING = new BridgeError('ERR_SESSION_CLOSED', 'closing');
const TIMEOUT_MS = 1000;

const callerCalled = (principal: string) => ({
  transport: 'streamable-http' as const,
  principal,
  environment: undefined,
  headers: undefined,
});

test('each call is dialed with who asks and what its envelope says', (t) => {
  const bench = new CallBench();
  const contexts: unknown[] = [];
  const dial = bench.dialer.dial.bind(bench.dialer);
  bench.dialer.dialCall = (listener, context) => {
    contexts.push(context);
    return dial(listener);
  };
  bench.open({ principal: 'ann' });
  const metadata = { revision: '2026-07-28', capabilities: {}, clientInfo: undefined, logLevel: undefined };
  t.deepEqual(contexts, [{ principal: 'ann', metadata, headers: undefined }]);
});

test('a dialer that cannot dial leaves nothing behind', (t) => {
  const bench = new CallBench();
  bench.dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no such command');
  t.throws(() => bench.open(), { message: 'no such command' });
  t.is(bench.modernCalls.size, 0);
});

test('a call whose peer cannot be made reaches no server', (t) => {
  const bench = new CallBench();
  const { request } = bench.open();
  const metadata = { revision: '2026-07-28', capabilities: {}, clientInfo: undefined, logLevel: undefined };
  const open = () =>
    bench.modernCalls.open(
      {
        frame: request,
        transport: 'streamable-http',
        principal: 'p',
        metadata,
        environment: undefined,
        headers: undefined,
      },
      () => {
        throw new Error('no peer');
      },
    );
  t.throws(open, { message: 'no peer' });
  t.is(bench.dialer.dialed.length, 1, 'the one of the call before');
  t.is(bench.modernCalls.size, 1);
});

test('one caller may have so many calls open and no more, which leaves some for others', (t) => {
  const bench = new CallBench({ maxSessionInFlight: 3 });
  const calls = Array.from({ length: 3 }, () => bench.open({ principal: 'greedy' }));
  const refused = { code: 'ERR_SESSION_BUSY', message: /3 calls .* for this caller/ } as const;
  t.like(
    t.throws(() => bench.open({ principal: 'greedy' }), { message: refused.message }),
    { code: refused.code, retryAfterMs: 1000 },
  );
  bench.open({ principal: 'modest' });
  calls[0]?.says({ id: 1, result: {} });
  calls[1]?.client.listener.clientLeft();
  bench.open({ principal: 'greedy' });
  bench.open({ principal: 'greedy' });
  t.throws(() => bench.open({ principal: 'greedy' }));
});

test('all callers together may have so many calls open and no more', (t) => {
  const bench = new CallBench({ calls: { maxOpen: 20 } });
  const calls = Array.from({ length: 20 }, (_, n) => bench.open({ principal: `p${n % 7}` }));
  const error = t.throws(() => bench.open({ principal: 'new' }), { message: /^20 calls of all clients .* here/ });
  t.like(error, { code: 'ERR_SESSION_BUSY' });
  t.is(bench.dialer.dialed.length, 20);
  for (const call of calls) call.says({ id: 1, result: {} });
  for (let n = 0; n < 20; n += 1) bench.open();
  t.throws(() => bench.open());
});

test('large requests of all callers together are limited by their bytes, and give them back', (t) => {
  const bench = new CallBench({ calls: { maxOpen: 20, maxBytes: 20_000 } });
  const name = 'x'.repeat(20_000);
  const call = bench.open({ name });
  t.like(
    t.throws(() => bench.open({ name })),
    { code: 'ERR_SESSION_BUSY' },
  );
  bench.open();
  call.says({ id: 1, result: {} });
  t.notThrows(() => bench.open({ name }));
});

test('a call that is silent for too long fails, and the server is told to stop', (t) => {
  const bench = new CallBench({ requestTimeoutMs: TIMEOUT_MS });
  const { client, link, linkHeard } = bench.open({ id: 5 });
  linkHeard();
  bench.clock.advance(TIMEOUT_MS + 250);
  t.like(client.heard[0], {
    id: 5,
    error: { data: { bridge: { reason: 'ERR_UPSTREAM_TIMEOUT', phase: 'response', timeoutMs: TIMEOUT_MS } } },
  });
  t.deepEqual(linkHeard(), [
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5, reason: 'timed out' } },
  ]);
  t.is(link.closedWith.length, 1);
  t.is(bench.modernCalls.size, 0);
});

test('any message of the server is a sign of life', (t) => {
  const bench = new CallBench({ requestTimeoutMs: TIMEOUT_MS });
  const { client, says } = bench.open();
  for (let n = 0; n < 5; n += 1) {
    bench.clock.advance(TIMEOUT_MS * 0.7);
    says({ method: 'notifications/progress', params: { progressToken: 1, progress: n } });
  }
  t.is(client.sent.length, 5);
  t.is(bench.modernCalls.size, 1);
});

test('no sign of life keeps a call open for ever', (t) => {
  const bench = new CallBench({ requestTimeoutMs: 0, maxCallTimeMs: TIMEOUT_MS });
  const { client, says, linkHeard } = bench.open({ id: 5 });
  linkHeard();
  for (let n = 0; n < 5; n += 1) {
    bench.clock.advance(TIMEOUT_MS / 4);
    says({ method: 'notifications/progress', params: { progressToken: 1, progress: n } });
  }
  t.like(client.heard.at(-1), { id: 5, error: { data: { bridge: { phase: 'call', timeoutMs: TIMEOUT_MS } } } });
  t.is(client.sent.length, 4);
  t.like(linkHeard(), [{ method: 'notifications/cancelled', params: { requestId: 5 } }]);
  t.is(bench.modernCalls.size, 0);
});

test('a subscription may be silent for ever', (t) => {
  const bench = new CallBench({ requestTimeoutMs: TIMEOUT_MS });
  bench.open({ method: 'subscriptions/listen' });
  bench.clock.advance(TIMEOUT_MS * 100);
  t.is(bench.modernCalls.size, 1);
});

test('calls without a limit of time need no timer', (t) => {
  const bench = new CallBench();
  bench.open();
  t.is(bench.clock.pendingTimers, 0);
});

test('one timer serves all calls, and none stays behind', (t) => {
  const bench = new CallBench({ requestTimeoutMs: TIMEOUT_MS });
  t.is(bench.clock.pendingTimers, 0);
  for (let n = 0; n < 10; n += 1) bench.open();
  t.is(bench.clock.pendingTimers, 1);
  bench.modernCalls.close(CLOSING);
  t.is(bench.clock.pendingTimers, 0);
});

test('while it drains new calls are refused, open ones finish, and subscriptions hold nothing up', async (t) => {
  const bench = new CallBench();
  const open = bench.open();
  bench.open({ method: 'subscriptions/listen' });
  let isDrained = false;
  const drained = bench.modernCalls.drain(60_000).then(() => {
    isDrained = true;
  });
  t.like(
    t.throws(() => bench.open(), { message: /shutting down and takes no new calls/ }),
    { code: 'ERR_SESSION_CLOSED', retryAfterMs: 1000 },
  );
  await bench.clock.advanceInSteps(1000, 20);
  t.false(isDrained);
  open.says({ id: 1, result: {} });
  await bench.clock.advanceInSteps(40, 20);
  await drained;
  t.is(bench.modernCalls.size, 1);
});

test('while it drains a call that waits for answers of its client is asked again', async (t) => {
  const bench = new CallBench();
  await bench.modernCalls.drain(0);
  const { client, says } = bench.open({ requestState: 'parked' });
  says({ id: 1, result: {} });
  t.is(client.sent.length, 1);
});

test('calls that are limited for several bridges together are refused as these say', (t) => {
  const refused = new BridgeError('ERR_SESSION_BUSY', 'all bridges together are full');
  const refusalFor = (principal: string) =>
    principal === 'greedy' ? ({ error: refused, remedy: 'wait' } as const) : undefined;
  const bench = new CallBench({ widerLimits: { refusalFor } });
  t.is(
    t.throws(() => bench.open({ principal: 'greedy' })),
    refused,
  );
  t.is(bench.dialer.dialed.length, 0);
  t.notThrows(() => bench.open({ principal: 'modest' }));
});

for (const [title, end] of [
  ['all calls end', (bench) => bench.modernCalls.close(CLOSING)],
  ['others take too long', (bench) => bench.clock.advance(TIMEOUT_MS)],
] as readonly (readonly [string, (bench: CallBench) => void])[]) {
  test(`a call that is withdrawn while ${title} is told nothing`, (t) => {
    const bench = new CallBench({ requestTimeoutMs: TIMEOUT_MS });
    const [first, second] = [bench.open({ id: 'a' }), bench.open({ id: 'b' })];
    const leave = () => second.client.listener.clientLeft();
    first.link.onSend = leave;
    first.client.onSend = leave;
    t.notThrows(() => end(bench));
    t.is(first.client.sent.length, 1);
    t.deepEqual(second.client.sent, []);
    t.is(second.link.closedWith.length, 1);
    t.is(bench.modernCalls.size, 0);
  });
}

test('an observer is told whose call it is, and how much was sent for it', (t) => {
  const bench = new CallBench();
  const { client, says } = bench.open({ principal: 'ann' });
  says({ method: 'notifications/message', params: { level: 'info', data: 'x' } });
  says({ id: 1, result: {} });
  const [call] = bench.observer.calls;
  t.like(call?.client, {
    transport: 'streamable-http',
    principal: 'ann',
    server: 'a server',
    era: 'modern',
    revision: '2026-07-28',
  });
  t.is(
    call?.endings[0]?.bytes,
    client.sent.reduce((sum, { bytes }) => sum + bytes.length, 0),
  );
});

test('a call that does not finish holds the end up for the grace time only', async (t) => {
  const bench = new CallBench();
  bench.open();
  const drained = bench.modernCalls.drain(500);
  await bench.clock.advanceInSteps(540, 20);
  await drained;
  t.is(bench.modernCalls.size, 1);
});

test('at the end a call fails with the reason, and a subscription ends with a result', (t) => {
  const bench = new CallBench();
  const call = bench.open({ id: 1 });
  const listen = bench.open({ id: 'sub', method: 'subscriptions/listen' });
  bench.modernCalls.close(CLOSING);
  bench.modernCalls.close(CLOSING);
  t.like(call.client.heard, [{ id: 1, error: { message: 'closing' } }]);
  t.deepEqual(listen.client.heard, [
    {
      jsonrpc: '2.0',
      id: 'sub',
      result: { resultType: 'complete', _meta: { 'io.modelcontextprotocol/subscriptionId': 'sub' } },
    },
  ]);
  t.deepEqual(call.link.closedWith, [CLOSING]);
  t.deepEqual(listen.link.closedWith, [CLOSING]);
  t.is(bench.modernCalls.size, 0);
  t.throws(() => bench.open());
});

test('notifications that come alone go out on one link a caller, which stays open for them', (t) => {
  const bench = new CallBench();
  const contexts: unknown[] = [];
  const dial = bench.dialer.dial.bind(bench.dialer);
  bench.dialer.dialCalls = (listener, context) => {
    contexts.push(context);
    return dial(listener);
  };
  const say = (principal: string, method: string) =>
    bench.modernCalls.notify(clientFrame({ method: `acme/${method}` }), callerCalled(principal));
  say('ann', 'one');
  say('bob', 'two');
  say('ann', 'three');
  const [ann, bob] = bench.dialer.dialed;
  t.deepEqual(contexts, [
    { principal: 'ann', headers: undefined },
    { principal: 'bob', headers: undefined },
  ]);
  t.deepEqual(
    ann?.link.sent.map(({ frame }) => frame.method),
    ['acme/one', 'acme/three'],
  );
  t.is(ann?.link.closedWith.length, 0);
  // Its server is gone: the next one gets a new link.
  ann?.listener.serverClosed(CLOSING);
  say('ann', 'four');
  t.is(bench.dialer.dialed.length, 3);
  bench.modernCalls.close(CLOSING);
  t.is(bob?.link.closedWith.length, 1);
  t.is(bench.dialer.latest.link.closedWith.length, 1);
});

test('so many callers may have a link for notifications; the one used longest ago makes way', (t) => {
  const bench = new CallBench();
  for (let n = 0; n <= MAX_CALLER_LINKS; n += 1) {
    bench.modernCalls.notify(clientFrame({ method: 'acme/x' }), callerCalled(`p${n}`));
    bench.modernCalls.notify(clientFrame({ method: 'acme/x' }), callerCalled('p0'));
  }
  const closed = bench.dialer.dialed.map(({ link }) => link.closedWith.length);
  t.deepEqual(closed.slice(0, 3), [0, 1, 0]);
  t.is(closed.length, MAX_CALLER_LINKS + 1);
});

test('a notification that cannot be sent is dropped, and none is sent while the bridge ends', async (t) => {
  const bench = new CallBench();
  bench.dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no such command');
  t.notThrows(() => bench.modernCalls.notify(clientFrame({ method: 'acme/x' }), callerCalled('p')));
  bench.dialer.failure = undefined;
  await bench.modernCalls.drain(0);
  bench.modernCalls.notify(clientFrame({ method: 'acme/x' }), callerCalled('p'));
  t.is(bench.dialer.dialed.length, 0);
});
