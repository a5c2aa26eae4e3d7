import test from 'ava';
import { KEEP_ALIVE_MS } from '../../../src/downstream/http/event-stream-writer.ts';
import { COMMIT_AFTER_MS } from '../../../src/downstream/streamable-session/post-lane.ts';
import { BridgeError, type ErrorCode } from '../../../src/errors.ts';
import { startHttpHarness } from '../../support/http-harness.ts';
import { waitFor } from '../../support/wait-for.ts';
import { arriveModern, listen, modern, modernCall, nextCall, postModern, type RpcBody } from './modern-posts.ts';

const STREAM_FIRST = { Accept: 'text/event-stream, application/json' };
const discover = modern('d', 'server/discover');

test('a response that comes first is plain JSON, byte for byte the server’s own', async (t) => {
  const harness = await startHttpHarness(t);
  const pending = postModern(harness, modernCall(1));
  const link = await nextCall(harness, 1);
  const said = '{ "jsonrpc":"2.0", "id":1, "result":{"a":1.0,"b":"\\u00e9"} }';
  link.say(said);
  const answer = await pending;
  t.is(answer.headers['content-type'], 'application/json');
  t.is(await answer.text(), said);
});

test('the request reaches the server byte for byte, dialed with its envelope', async (t) => {
  const harness = await startHttpHarness(t);
  const message = modernCall('é', 'work', { traceparent: '00-1', 'vendor/x': [1.0] });
  const pending = postModern(harness, message);
  const link = await nextCall(harness, 1);
  const request = await link.next('tools/call');
  t.is(request.bytes.toString(), JSON.stringify(message));
  t.is(link.context?.principal, 'anonymous');
  t.deepEqual(link.context?.metadata?.clientInfo, { name: 'raw', version: '1' });
  link.answer(request);
  await pending;
});

test('whatever comes before the response makes a stream of events named message, which ends with it', async (t) => {
  const harness = await startHttpHarness(t);
  const pending = postModern(harness, modernCall(1, 'work', { progressToken: 7 }));
  const link = await nextCall(harness, 1);
  link.notify('notifications/progress', { progressToken: 7, progress: 1 });
  const answer = await pending;
  t.true(answer.isEventStream);
  t.is(answer.headers['x-accel-buffering'], 'no');
  t.is(answer.headers['cache-control'], 'no-cache, no-transform');
  const events = answer.events();
  link.ask('q', 'sampling/createMessage', {});
  link.notify('notifications/message', { level: 'info', data: 1 });
  link.refuse(await link.next('tools/call'), -32601, 'late');
  const received = await events.rest();
  t.is(await events.closed, 'ended');
  t.deepEqual(
    received.map(({ data }) => JSON.parse(data).method ?? 'response'),
    ['notifications/progress', 'notifications/message', 'response'],
  );
  t.true(received.every(({ id, event }) => id === undefined && event === 'message'));
  t.deepEqual(events.retries, []);
  t.deepEqual(link.answers, []);
  t.true(link.closedFor !== undefined);
});

test('a silent call becomes a stream, kept alive by comments', async (t) => {
  const harness = await startHttpHarness(t);
  const pending = postModern(harness, modernCall(1));
  const link = await nextCall(harness, 1);
  harness.clock.advance(COMMIT_AFTER_MS);
  const events = (await pending).events();
  harness.clock.advance(KEEP_ALIVE_MS);
  await waitFor(() => events.comments.length > 0);
  link.answer(await link.next('tools/call'), { done: true });
  t.deepEqual((await events.message()).result, { done: true });
  t.is(await events.closed, 'ended');
});

test('a client that prefers streams gets one at once', async (t) => {
  const harness = await startHttpHarness(t);
  const answer = await postModern(harness, modernCall(1), STREAM_FIRST);
  t.true(answer.isEventStream);
  const events = answer.events();
  const link = harness.server.latest;
  link.answer(await link.next('tools/call'), {});
  t.is((await events.message()).id, 1);
  t.is(await events.closed, 'ended');
});

test('a subscription is a stream for as long as it lasts', async (t) => {
  const harness = await startHttpHarness(t, { requestTimeoutMs: 1000 });
  const pending = postModern(harness, listen('sub'));
  const link = await nextCall(harness, 1);
  link.notify('notifications/subscriptions/acknowledged', { notifications: { toolsListChanged: true } });
  const events = (await pending).events();
  await harness.clock.advanceInSteps(120_000, 5000);
  link.notify('notifications/tools/list_changed');
  t.is((await events.message()).method, 'notifications/subscriptions/acknowledged');
  t.is((await events.message()).method, 'notifications/tools/list_changed');
  harness.modernCalls.close(new BridgeError('ERR_SESSION_CLOSED', 'shutting down'));
  t.like(await events.message(), { id: 'sub', result: { resultType: 'complete' } });
  t.is(await events.closed, 'ended');
});

for (const [code, status] of [
  [-32700, 400],
  [-32600, 400],
  [-32601, 404],
  [-32602, 200],
  [-32603, 200],
  [-32020, 400],
  [-32021, 400],
  [-32022, 400],
  [-32000, 200],
  [42, 200],
] as const) {
  test(`an error ${code} of the server comes with status ${status}, untouched`, async (t) => {
    const harness = await startHttpHarness(t);
    harness.server.scripts.set('tools/call', (request, link) => link.refuse(request, code, 'as it is'));
    const answer = await postModern(harness, modernCall('e'));
    t.is(answer.status, status);
    t.deepEqual(await answer.json(), { jsonrpc: '2.0', id: 'e', error: { code, message: 'as it is' } });
  });
}

const upstreamFailures: readonly (readonly [ErrorCode, number])[] = [
  ['ERR_UPSTREAM_CONNECT', 502],
  ['ERR_UPSTREAM_EXITED', 502],
  ['ERR_UPSTREAM_DETECT', 502],
  ['ERR_UPSTREAM_TIMEOUT', 504],
  ['ERR_UPSTREAM_STARTING', 503],
];

for (const [code, status] of upstreamFailures) {
  test(`${code} at server/discover is status ${status}, no sign of an era; in a call it is an answer`, async (t) => {
    const harness = await startHttpHarness(t);
    const failure = new BridgeError(code, 'cannot be reached');
    const expected = { error: { code: -32603, data: { bridge: { reason: code } } } };
    harness.server.scripts.set('server/discover', (_, link) => link.die(failure));
    harness.server.scripts.set('tools/call', (_, link) => link.die(failure));
    const later = [await postModern(harness, discover), await postModern(harness, modernCall(1))];
    harness.server.refusal = failure;
    const atOnce = [await postModern(harness, discover), await postModern(harness, modernCall(1))];
    for (const [discovered, called] of [later, atOnce]) {
      t.is(discovered?.status, status);
      t.like(await discovered?.json(), { id: 'd', ...expected });
      t.is(called?.status, 200);
      t.like(await called?.json(), { id: 1, ...expected });
    }
  });
}

test('a server/discover that takes long, or whose client prefers streams, keeps its status open', async (t) => {
  const harness = await startHttpHarness(t, { requestTimeoutMs: 60_000 });
  const slow = postModern(harness, discover, STREAM_FIRST);
  await nextCall(harness, 1);
  harness.clock.advance(61_000);
  const answer = await slow;
  t.is(answer.status, 504);
  t.like(await answer.json<RpcBody>(), { id: 'd', error: { data: { bridge: { phase: 'response' } } } });
  harness.server.scripts.set('server/discover', (request, link) => link.answer(request, { supportedVersions: [] }));
  const found = await postModern(harness, discover, STREAM_FIRST);
  t.is(found.status, 200);
  t.like(await found.events().message(), { id: 'd', result: { supportedVersions: [] } });
});

test('an error of the server’s own at server/discover is passed on as it is', async (t) => {
  const harness = await startHttpHarness(t);
  harness.server.scripts.set('server/discover', (request, link) => link.refuse(request, -32603, 'broken'));
  t.is((await postModern(harness, discover)).status, 200);
});

test('a failure of the bridge itself is a status 500 and a line in the log, and lets the link go', async (t) => {
  const harness = await startHttpHarness(t, {
    principalOf: () => 'p',
    forwardHeaders: [],
    modernDialer: {
      name: 'broken',
      dial: () => {
        throw new Error('a bug');
      },
      readiness: () => ({ state: 'ready' }),
      close: async () => {},
      killNow() {},
    },
  });
  const answer = await postModern(harness, modernCall(1));
  t.is(answer.status, 500);
  t.like(await answer.json<RpcBody>(), { id: 1, error: { data: { bridge: { reason: 'ERR_INTERNAL' } } } });
  t.true(harness.logLines.some((line) => line.includes('a bug')));
});

test('while it drains, new calls get 503 with Retry-After and open ones their answers', async (t) => {
  const harness = await startHttpHarness(t);
  const open = postModern(harness, modernCall(1));
  const link = await nextCall(harness, 1);
  const drained = harness.modernCalls.drain(60_000);
  const refused = await postModern(harness, modernCall(2));
  t.is(refused.status, 503);
  t.is(refused.headers['retry-after'], '1');
  t.like(await refused.json<RpcBody>(), { id: 2, error: { data: { bridge: { reason: 'ERR_SESSION_CLOSED' } } } });
  link.answer(await link.next('tools/call'), { in: 'time' });
  t.like(await (await open).json<RpcBody>(), { id: 1, result: { in: 'time' } });
  await harness.clock.advanceInSteps(40, 20);
  await drained;
});

test('who calls is said to the dialer, call by call', async (t) => {
  const harness = await startHttpHarness(t, { principalOf: (request) => String(request.headers['x-who']) });
  const pending = [postModern(harness, modernCall(1), { 'X-Who': 'ann' })];
  await nextCall(harness, 1);
  pending.push(postModern(harness, modernCall(1), { 'X-Who': 'bob' }));
  await nextCall(harness, 2);
  t.deepEqual(
    harness.server.connections.map(({ context }) => context?.principal),
    ['ann', 'bob'],
  );
  for (const link of harness.server.connections) link.answer(await link.next('tools/call'));
  await Promise.all(pending);
});

test('only the headers that were named go along with a modern call, credentials never', async (t) => {
  const harness = await startHttpHarness(t, { forwardHeaders: ['x-request-id', 'authorization'] });
  const sent = { 'X-Request-Id': 'r-1', 'X-Other': 'secret', Authorization: 'Bearer secret' };
  const pending = postModern(harness, modernCall(1), sent);
  const link = await nextCall(harness, 1);
  t.deepEqual(link.calls[0]?.lane.headers, { 'x-request-id': 'r-1' });
  link.answer(await link.next('tools/call'));
  await pending;
});

test('two clients use one id at a time, and each gets its own answer', async (t) => {
  const harness = await startHttpHarness(t);
  const first = arriveModern(harness, modernCall(1, 'first'));
  const one = await nextCall(harness, 1);
  const second = arriveModern(harness, modernCall(1, 'second'));
  const two = await nextCall(harness, 2);
  two.answer(await two.next('tools/call'), { for: 'second' });
  t.like(await (await second.answer).json<RpcBody>(), { id: 1, result: { for: 'second' } });
  one.answer(await one.next('tools/call'), { for: 'first' });
  t.like(await (await first.answer).json<RpcBody>(), { id: 1, result: { for: 'first' } });
});
