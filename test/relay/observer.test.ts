import test from 'ava';
import { ClientPresence, toolOf } from '../../src/relay/observer.ts';
import { FakeObserver, ORIGIN } from '../support/exchanges.ts';
import { clientFrame } from '../support/frames.ts';

const META = 'io.modelcontextprotocol/';
const NOBODY = { name: undefined, version: undefined };

const initialize = (clientInfo: unknown) =>
  clientFrame({ id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25', clientInfo } });

function modern(clientInfo?: object) {
  const info = clientInfo && { [`${META}clientInfo`]: clientInfo };
  const _meta = { [`${META}protocolVersion`]: '2026-07-28', [`${META}clientCapabilities`]: {}, ...info };
  return clientFrame({ id: 1, method: 'tools/list', params: { _meta } });
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
  const presence = new ClientPresence(observer, ORIGIN, 'legacy');
  const client = { ...ORIGIN, era: 'legacy', revision: undefined, name: 'c', version: '1' };
  t.deepEqual(presence.describe(initialize({ name: 'c', version: '1' })) as object, client);
  t.deepEqual(observer.clients, [], 'it has no session yet');
  presence.agreed('2025-06-18');
  presence.describe(initialize({ name: 'another', version: '2' }));
  const agreed = { ...client, revision: '2025-06-18' };
  t.deepEqual(presence.describe(clientFrame({ id: 1, method: 'ping' })) as object, agreed);
  presence.left('ERR_SESSION_CLOSED');
  presence.left('ERR_SESSION_CLOSED');
  t.deepEqual(observer.clients as object, [{ client: agreed, left: ['ERR_SESSION_CLOSED'] }]);
});

test('a modern client on a pipe comes with its first request, and each request says who it is', (t) => {
  const observer = new FakeObserver();
  const presence = new ClientPresence(observer, ORIGIN, 'modern');
  presence.describe(modern({ name: 'c', version: '1' }));
  t.like(presence.describe(modern()), { revision: '2026-07-28', ...NOBODY });
  t.is(observer.clients.length, 1);
  t.like(observer.clients[0]?.client, { name: 'c', version: '1' });
});

test('a client that nobody was told of does not leave, and none comes that has left', (t) => {
  const observer = new FakeObserver();
  const presence = new ClientPresence(observer, ORIGIN, 'modern');
  presence.left('ERR_SESSION_CLOSED');
  presence.describe(modern());
  t.deepEqual(observer.clients, []);
});

test('names that a client has chosen are cut where they are long, and left out where they are none', (t) => {
  const presence = new ClientPresence(new FakeObserver(), ORIGIN, 'legacy');
  const { name, version } = presence.describe(initialize({ name: 'x'.repeat(1000), version: 7 }));
  t.is(name?.length, 256);
  t.is(version, undefined);
  t.like(presence.describe(initialize('odd')), NOBODY);
  t.like(presence.describe(clientFrame({ id: 0, method: 'initialize' })), NOBODY);
});

test('an envelope that cannot be read tells nothing', (t) => {
  const presence = new ClientPresence(new FakeObserver(), ORIGIN, 'modern');
  t.like(presence.describe(clientFrame({ id: 1, method: 'tools/list' })), { revision: undefined, ...NOBODY });
});
