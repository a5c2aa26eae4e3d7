import test from 'ava';
import { ClientPresence } from '../../src/relay/client-presence.ts';
import {
  deprecatedQuestionsOf,
  isDuplex,
  type ObservedServer,
  ServerSpeech,
  toolOf,
  wantsLogs,
} from '../../src/relay/observer.ts';
import type { Tracer } from '../../src/relay/tracer.ts';
import type { Frame } from '../../src/wire/frame.ts';
import { FakeObserver, ORIGIN } from '../support/calls.ts';
import { clientFrame, serverFrame } from '../support/frames.ts';

const META = 'io.modelcontextprotocol/';
const NOBODY = { name: undefined, version: undefined };

const initialize = (clientInfo: unknown) =>
  clientFrame({ id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25', clientInfo } });

function modern(clientInfo?: object) {
  const info = clientInfo && { [`${META}clientInfo`]: clientInfo };
  const _meta = { [`${META}protocolVersion`]: '2026-07-28', [`${META}clientCapabilities`]: {}, ...info };
  return clientFrame({ id: 1, method: 'tools/list', params: { _meta } });
}

/** As the relay has it: a request is seen first, until it is known who sends it. */
function seen(presence: ClientPresence, request: Frame) {
  if (presence.isAwaited) presence.sees(request);
  return presence.describe(request);
}

test('the tool of a call is what it names, cut where that is long', (t) => {
  const nameOf = (method: string, params: object) => toolOf(clientFrame({ id: 1, method, params }));
  t.is(nameOf('tools/call', { name: 'echo' }), 'echo');
  t.is(nameOf('tools/call', { name: 'x'.repeat(1000) })?.length, 256);
  t.is(nameOf('tools/call', { name: 7 }), undefined);
  t.is(nameOf('prompts/get', { name: 'echo' }), undefined);
});

test('a legacy client is known by what it has said in its handshake', (t) => {
  const observer = new FakeObserver();
  const presence = new ClientPresence({ tracer: undefined, observer, speech: new ServerSpeech() }, ORIGIN, 'legacy');
  const client = { ...ORIGIN, era: 'legacy', revision: undefined, name: 'c', version: '1' };
  t.deepEqual(seen(presence, initialize({ name: 'c', version: '1' })) as object, client);
  t.deepEqual(seen(presence, clientFrame({ id: 1, method: 'ping' })) as object, client);
  t.deepEqual(observer.clients, [], 'it has no session yet');
  presence.agreed('2025-06-18');
  seen(presence, initialize({ name: 'another', version: '2' }));
  const agreed = { ...client, revision: '2025-06-18' };
  t.deepEqual(seen(presence, clientFrame({ id: 1, method: 'ping' })) as object, agreed);
  presence.left('ERR_SESSION_CLOSED');
  presence.left('ERR_SESSION_CLOSED');
  t.deepEqual(observer.clients as object, [{ client: agreed, server: undefined, left: ['ERR_SESSION_CLOSED'] }]);
});

test('a modern client on a pipe comes with its first request, and each request says who it is', (t) => {
  const observer = new FakeObserver();
  const presence = new ClientPresence({ tracer: undefined, observer, speech: new ServerSpeech() }, ORIGIN, 'modern');
  seen(presence, modern({ name: 'c', version: '1' }));
  t.like(seen(presence, modern()), { revision: '2026-07-28', ...NOBODY });
  presence.sees(modern());
  t.is(observer.clients.length, 1);
  t.like(observer.clients[0]?.client, { name: 'c', version: '1' });
});

test('a client that nobody was told of does not leave, and none comes that has left', (t) => {
  const observer = new FakeObserver();
  const presence = new ClientPresence({ tracer: undefined, observer, speech: new ServerSpeech() }, ORIGIN, 'modern');
  presence.left('ERR_SESSION_CLOSED');
  t.false(presence.isAwaited);
  presence.sees(modern());
  t.deepEqual(observer.clients, []);
});

test('names that a client has chosen are cut where they are long, and left out where they are none', (t) => {
  const presence = new ClientPresence(
    { tracer: undefined, observer: new FakeObserver(), speech: new ServerSpeech() },
    ORIGIN,
    'legacy',
  );
  const { name, version } = seen(presence, initialize({ name: 'x'.repeat(1000), version: 7 }));
  t.is(name?.length, 256);
  t.is(version, undefined);
  t.like(seen(presence, initialize('odd')), NOBODY);
  t.like(seen(presence, clientFrame({ id: 0, method: 'initialize' })), NOBODY);
});

test('an envelope that cannot be read tells nothing', (t) => {
  const presence = new ClientPresence(
    { tracer: undefined, observer: new FakeObserver(), speech: new ServerSpeech() },
    ORIGIN,
    'modern',
  );
  t.like(seen(presence, clientFrame({ id: 1, method: 'tools/list' })), { revision: undefined, ...NOBODY });
});

test('what a server speaks to a client is the era of the client where it can, else the other', (t) => {
  const speech = new ServerSpeech();
  const [legacy, modern] = [
    { era: 'legacy', revision: '2025-06-18' },
    { era: 'modern', revision: '2026-07-28' },
  ] as const;
  t.is(speech.spokenTo(legacy), undefined);
  const old: ObservedServer = { transport: 'http-sse', era: 'legacy', revision: undefined };
  speech.learn(old);
  t.deepEqual(speech.spokenTo(legacy), { ...old, revision: '2025-06-18' }, 'they have agreed on the revision');
  t.deepEqual(speech.spokenTo(modern), old);
  const current: ObservedServer = { transport: 'streamable-http', ...modern };
  speech.learn(current);
  t.deepEqual(speech.spokenTo(modern), current);
  t.like(speech.spokenTo(legacy), { era: 'legacy' });
  t.deepEqual(speech.all, [current, old], 'the later era first');
  t.deepEqual(new ServerSpeech().all, []);
});

test('an observer hears with a client what its server speaks', (t) => {
  const [observer, speech] = [new FakeObserver(), new ServerSpeech()];
  speech.learn({ transport: 'stdio', era: 'modern', revision: '2026-07-28' });
  const presence = new ClientPresence({ tracer: undefined, observer, speech }, ORIGIN, 'legacy');
  seen(presence, initialize({}));
  presence.agreed('2025-11-25');
  t.deepEqual(observer.clients[0]?.server, { transport: 'stdio', era: 'modern', revision: '2026-07-28' });
});

test('what is deprecated of what a modern server asks its client is seen in its result', (t) => {
  const asks = (...methods: string[]) => {
    const inputRequests = Object.fromEntries(methods.map((method, index) => [`q${index}`, { method, params: {} }]));
    return deprecatedQuestionsOf(serverFrame({ id: 1, result: { resultType: 'input_required', inputRequests } }));
  };
  t.deepEqual(asks('sampling/createMessage', 'elicitation/create'), ['sampling']);
  t.deepEqual(asks('roots/list', 'sampling/createMessage'), ['sampling', 'roots']);
  t.deepEqual(asks('elicitation/create'), []);
  const text = { type: 'text', text: 'roots/list' };
  t.deepEqual(deprecatedQuestionsOf(serverFrame({ id: 1, result: { content: [text] } })), []);
  const error = { code: 1, message: 'no', data: { resultType: 'input_required', method: 'roots/list' } };
  t.deepEqual(deprecatedQuestionsOf(serverFrame({ id: 1, error })), []);
});

test('an answer is looked through for what is deprecated up to a limit', (t) => {
  const answer = (length: number) => {
    const inputRequests = { q: { method: 'roots/list', params: { x: 'x'.repeat(length) } } };
    return serverFrame({ id: 1, result: { resultType: 'input_required', inputRequests } });
  };
  const free = 64 * 1024 - answer(0).bytes.length;
  t.deepEqual(deprecatedQuestionsOf(answer(free)), ['roots']);
  t.deepEqual(deprecatedQuestionsOf(answer(free + 1)), []);
});

test('a modern request that asks for logs is told from one that does not', (t) => {
  const _meta = { ...(modern().json() as { params: { _meta: object } }).params._meta, [`${META}logLevel`]: 'info' };
  t.true(wantsLogs(clientFrame({ id: 1, method: 'tools/list', params: { _meta } })));
  t.false(wantsLogs(modern()));
});

test('a client is known by name also where nobody wants to know of calls', (t) => {
  const observer = new FakeObserver();
  observer.seesCalls = false;
  const presence = new ClientPresence({ tracer: undefined, observer, speech: new ServerSpeech() }, ORIGIN, 'legacy');
  presence.sees(initialize({ name: 'c', version: '1' }));
  presence.agreed('2025-11-25');
  t.like(observer.clients[0]?.client, { name: 'c', version: '1', revision: '2025-11-25' });
});

test('a client is known where calls are only traced, and not read where nobody wants to know of it', (t) => {
  const [speech, tracer] = [new ServerSpeech(), { begin: () => undefined } as Tracer];
  const traced = new ClientPresence({ tracer, observer: undefined, speech }, ORIGIN, 'legacy');
  t.like(seen(traced, initialize({ name: 'c', version: '1' })), { name: 'c' });
  traced.agreed('2025-11-25');
  t.like(seen(traced, clientFrame({ id: 1, method: 'ping' })), { name: 'c', revision: '2025-11-25' });
  t.notThrows(() => traced.left('ERR_SESSION_CLOSED'));
  t.false(new ClientPresence({ tracer: undefined, observer: undefined, speech }, ORIGIN, 'legacy').isAwaited);
});

test('an observer need not care when a client leaves, and is told who uses what is deprecated', (t) => {
  const observer = new FakeObserver();
  const uses: unknown[] = [];
  observer.used = (feature, by) => void uses.push([feature, by]);
  const connected = { ...observer, seesCalls: true, opened: () => undefined, refused: () => {}, used: observer.used };
  const presence = new ClientPresence(
    { tracer: undefined, observer: { ...connected, connected: () => undefined }, speech: new ServerSpeech() },
    ORIGIN,
    'legacy',
  );
  const client = seen(presence, initialize({ name: 'c', version: '1' }));
  presence.used('batch');
  t.deepEqual(uses, [['batch', { server: ORIGIN.server, client }]]);
  presence.agreed('2025-11-25');
  t.notThrows(() => presence.left('ERR_SESSION_CLOSED'));
});

test('what both ends keep is told from HTTP, where each message may come on another connection', (t) => {
  const transports = ['stdio', 'byte-stream', 'websocket', 'streamable-http', 'http-sse'] as const;
  t.deepEqual(transports.filter(isDuplex), ['stdio', 'byte-stream', 'websocket']);
});
