import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { MAX_SUBSCRIBED, MAX_SUBSCRIBED_LENGTH } from '../../../src/mcp/vocabulary/subscribed-uris.ts';
import {
  isStanding,
  MAX_KEPT_INITIALIZE_BYTES,
  MAX_STORED_LENGTH,
  SessionState,
} from '../../../src/relay/sessions/session-state.ts';
import { notificationFrame, resultFrame } from '../../../src/wire/write-message.ts';
import { clientFrame } from '../../support/frames.ts';

const CLIENT = { protocolVersion: '2025-06-18', capabilities: { roots: {} }, clientInfo: { name: 'ä', version: '1' } };
const SERVER = {
  protocolVersion: '2025-06-18',
  capabilities: { tools: { listChanged: true, more: {} }, prompts: {}, resources: null, experimental: { x: {} } },
  serverInfo: { name: 'server', version: '1' },
};

function succeed(state: SessionState, method: string, params: object, result: object = {}): void {
  state.succeeded(clientFrame({ id: 1, method, params }), resultFrame(1, result));
}

function opened(params: object = CLIENT, result: object = SERVER): SessionState {
  const state = new SessionState();
  succeed(state, 'initialize', params, result);
  return state;
}

function setUp(): SessionState {
  const state = opened();
  state.isInitialized = true;
  state.sessionId = 'session-1';
  succeed(state, 'logging/setLevel', { level: 'warning' });
  for (const uri of ['a:/1', 'a:/2', 'a:/3']) succeed(state, 'resources/subscribe', { uri });
  succeed(state, 'resources/unsubscribe', { uri: 'a:/2' });
  succeed(state, 'tools/call', { uri: 'a:/4', level: 'debug' });
  return state;
}

const WISHES = [
  { method: 'logging/setLevel', params: { level: 'warning' } },
  { method: 'resources/subscribe', params: { uri: 'a:/1' } },
  { method: 'resources/subscribe', params: { uri: 'a:/3' } },
];

test('another session is opened without what the first initialize was traced by', (t) => {
  t.deepEqual(opened({ ...CLIENT, _meta: { traceparent: '00-a-b-01', own: 1 } }).initialize, {
    ...CLIENT,
    _meta: { own: 1 },
  });
});

test('knows what the client has set up in its session', (t) => {
  const state = setUp();
  t.deepEqual(state.initialize, CLIENT);
  t.is(state.sessionId, 'session-1');
  t.true(state.isInitialized);
  t.deepEqual(state.wishes() as unknown, WISHES);
  t.deepEqual(
    state.missed().map(({ bytes }) => String(bytes)),
    [
      notificationFrame('notifications/tools/list_changed'),
      notificationFrame('notifications/resources/updated', { uri: 'a:/1' }),
      notificationFrame('notifications/resources/updated', { uri: 'a:/3' }),
    ].map(({ bytes }) => String(bytes)),
  );
});

test('the requests that another session has to be told of are those that set something up', (t) => {
  const standing = ['initialize', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'];
  const methods = [...standing, 'tools/call', 'resources/read', 'notifications/initialized', undefined];
  t.deepEqual(methods.filter(isStanding), standing);
});

test('before a session is open there is nothing to look at again', (t) => {
  t.deepEqual(new SessionState().missed(), []);
});

test('a call that another bridge has sent goes on once, after the event that it had come to', (t) => {
  const state = new SessionState();
  const request = clientFrame({ id: 7, method: 'tools/call' });
  t.is(state.takeResumption(request), undefined);
  state.resumes({ request, lastEventId: 'event-1' });
  state.resumes({ request: clientFrame({ method: 'notifications/progress' }), lastEventId: 'event-2' });
  t.is(state.takeResumption(clientFrame({ id: '7', method: 'tools/call' })), undefined);
  t.is(state.takeResumption(clientFrame({ id: 7, result: {} })), undefined, 'an answer of the client is no request');
  t.is(state.takeResumption(clientFrame({ method: 'notifications/progress' })), undefined);
  t.is(state.takeResumption(request), 'event-1');
  t.is(state.takeResumption(request), undefined);
});

test('each change of what is stored is told', (t) => {
  let changes = 0;
  const state = new SessionState();
  state.changed = () => {
    changes += 1;
  };
  const told = (change: () => void): number => {
    const before = changes;
    change();
    return changes - before;
  };
  t.deepEqual(
    [
      told(() => succeed(state, 'initialize', CLIENT, SERVER)),
      told(() => Object.assign(state, { isInitialized: true })),
      told(() => Object.assign(state, { sessionId: 'session-1' })),
      told(() => succeed(state, 'logging/setLevel', { level: 'warning' })),
      told(() => succeed(state, 'resources/subscribe', { uri: 'a:/1' })),
      told(() => succeed(state, 'resources/unsubscribe', { uri: 'a:/1' })),
      told(() => succeed(state, 'tools/call', {})),
    ],
    [1, 1, 1, 1, 1, 1, 0],
  );
});

test('of what the server said of itself only that is kept which a new session is compared with', (t) => {
  t.is(new SessionState().offer, undefined);
  const announcing = { tools: { listChanged: true } };
  t.deepEqual(opened().offer, { protocolVersion: '2025-06-18', capabilities: announcing });
  t.deepEqual(opened(CLIENT, { protocolVersion: '1'.repeat(65) }).offer, {
    protocolVersion: undefined,
    capabilities: {},
  });
});

test('the level of a session is kept as the client gave it, but for what is no name of one', (t) => {
  const state = opened();
  succeed(state, 'logging/setLevel', { level: 'x-loud' });
  t.like(state.wishes(), [{ params: { level: 'x-loud' } }]);
  succeed(state, 'logging/setLevel', { level: 'x'.repeat(64) });
  t.is(state.wishes().length, 1);
  for (const level of ['x'.repeat(65), { a: 1 }]) {
    succeed(state, 'logging/setLevel', { level });
    t.deepEqual(state.wishes(), []);
  }
});

test('what the client said in initialize is kept up to a limit', (t) => {
  const params = (length: number) => ({ ...CLIENT, x: 'x'.repeat(length) });
  const { bytes, payloadStart } = clientFrame({ id: 1, method: 'initialize', params: params(0) });
  const free = MAX_KEPT_INITIALIZE_BYTES - (bytes.length - payloadStart);
  t.not(opened(params(free)).initialize, undefined);
  t.is(opened(params(free + 1)).initialize, undefined);
  const state = opened({ ...CLIENT, capabilities: { experimental: { x: 'x'.repeat(MAX_KEPT_INITIALIZE_BYTES) } } });
  t.is(state.initialize, undefined);
  t.is(state.offer?.protocolVersion, '2025-06-18');
});

test('a subscription has its place as soon as it is asked for, and no longer when it fails', (t) => {
  const state = opened();
  const request = (uri: string) => clientFrame({ id: 1, method: 'resources/subscribe', params: { uri } });
  for (let count = 0; count < MAX_SUBSCRIBED; count += 1) t.true(state.reserve(request(`a:/${count}`)));
  t.false(state.reserve(request('a:/more')));
  t.true(state.reserve(clientFrame({ id: 1, method: 'resources/read', params: { uri: 'a:/more' } })));
  state.failed(clientFrame({ id: 1, method: 'resources/read', params: { uri: 'a:/6' } }));
  t.false(state.reserve(request('a:/more')), 'a subscription stays where a read of its resource fails');
  state.failed(request('a:/7'));
  t.true(state.reserve(request('a:/more')));
});

test('what the server refuses to restore is forgotten', (t) => {
  const state = setUp();
  const [level, first, second] = state.wishes();
  if (level === undefined || first === undefined || second === undefined) return t.fail();
  state.settled(level, false);
  state.settled(first, false);
  state.settled(second, true);
  t.deepEqual(state.wishes(), [second]);
});

test('a stored session is read as what it was', (t) => {
  const replaced = setUp();
  replaced.continuation = 'new-session';
  for (const state of [new SessionState(), opened(), setUp(), replaced]) {
    const text = JSON.stringify(state);
    const read = SessionState.from(text);
    t.is(JSON.stringify(read), text);
    t.deepEqual(read.wishes(), state.wishes());
    t.deepEqual(read.initialize, state.initialize);
    t.is(read.isInitialized, state.isInitialized);
    t.is(read.sessionId, state.sessionId);
    t.is(read.continuation, state.continuation);
  }
});

test('the largest session that a client can have can be stored and read', (t) => {
  const state = opened({ ...CLIENT, x: Array(30_000).fill(0) });
  state.isInitialized = true;
  const length = MAX_SUBSCRIBED_LENGTH / MAX_SUBSCRIBED;
  for (let count = 0; count < MAX_SUBSCRIBED; count += 1) {
    succeed(state, 'resources/subscribe', { uri: `${count}`.padEnd(Math.floor(length), '\0') });
  }
  t.not(state.initialize, undefined);
  t.is(state.wishes().length, MAX_SUBSCRIBED);
  const text = JSON.stringify(state);
  t.is(SessionState.from(text.padEnd(MAX_STORED_LENGTH)).wishes().length, MAX_SUBSCRIBED);
  t.throws(() => SessionState.from(text.padEnd(MAX_STORED_LENGTH + 1)), { message: /limits/ });
});

test('what is stored is not trusted: a session that could not have been stored is refused with the reason', (t) => {
  const stored = JSON.parse(JSON.stringify(setUp()));
  const tooMany = Array.from({ length: MAX_SUBSCRIBED + 1 }, (_, count) => `a:/${count}`);
  for (const [change, reason] of [
    [{ version: 1 }, /version/],
    [{ initialize: [] }, /initialize/],
    [{ initialize: null }, /initialize/],
    [{ offer: 'x' }, /offer/],
    [{ offer: null }, /offer/],
    [{ offer: { protocolVersion: 3, capabilities: {} } }, /offer/],
    [{ offer: undefined }, /isInitialized/],
    [{ continuation: 'somehow' }, /continuation/],
    [{ isInitialized: 1 }, /isInitialized/],
    [{ level: 'x'.repeat(65) }, /level/],
    [{ level: null }, /level/],
    [{ subscriptions: {} }, /subscriptions/],
    [{ subscriptions: [1] }, /subscriptions/],
    [{ subscriptions: tooMany }, /subscriptions/],
    [{ subscriptions: ['x'.repeat(MAX_SUBSCRIBED_LENGTH + 1)] }, /subscriptions/],
    [{ sessionId: 'a\r\nX-Evil: 1' }, /sessionId/],
    [{ sessionId: '' }, /sessionId/],
    [{ initialize: { x: 'x'.repeat(MAX_STORED_LENGTH) } }, /limits/],
  ] as const) {
    const error = t.throws(() => SessionState.from(JSON.stringify({ ...stored, ...change })), { message: reason });
    t.true(error instanceof BridgeError && error.code === 'ERR_SESSION_UNKNOWN');
  }
  for (const text of [
    '',
    '{',
    '[]',
    'null',
    '['.repeat(100_000),
    `{"initialize":${'['.repeat(2000)}${']'.repeat(2000)}}`,
  ]) {
    t.throws(() => SessionState.from(text), { message: /limits/ }, text.slice(0, 20));
  }
});

test('members that a peer names as those of every object do no harm', (t) => {
  const state = opened(JSON.parse('{"__proto__":{"x":1},"protocolVersion":"2025-06-18"}'));
  succeed(state, 'resources/subscribe', { uri: { toString: 1 } });
  t.deepEqual(state.wishes(), []);
  succeed(state, 'resources/unsubscribe', { uri: { toString: 1 } });
  t.deepEqual(state.wishes(), []);
  t.is(JSON.stringify(SessionState.from(JSON.stringify(state))), JSON.stringify(state));
});
