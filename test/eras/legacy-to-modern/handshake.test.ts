import test from 'ava';
import { MAX_DISCOVERY_BYTES } from '../../../src/eras/legacy-to-modern/shared-discovery.ts';
import { MAX_HELD_BYTES } from '../../../src/eras/legacy-to-modern/translator.ts';
import { BridgeError } from '../../../src/errors.ts';
import { MAX_CAPABILITIES_LENGTH } from '../../../src/mcp/translate/capabilities.ts';
import { FakeLane } from '../../support/fake-peers.ts';
import { CAPABILITIES, DISCOVERY, LegacyFront, META } from './legacy-session.ts';

const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];

for (const revision of REVISIONS) {
  test(`initialize of ${revision} is answered in that revision from what server/discover says`, (t) => {
    const session = new LegacyFront().connect();
    session.initialize({ revision });
    const [discover, ...rest] = session.asked();
    t.is(discover?.method, 'server/discover');
    t.deepEqual(rest, []);
    t.deepEqual(discover?.params._meta, {
      [`${META}protocolVersion`]: '2026-07-28',
      [`${META}clientCapabilities`]: {},
      [`${META}clientInfo`]: { name: 'c', version: '1', title: 'C' },
    });
    session.serverAnswers(DISCOVERY);
    const { completions, ...others } = CAPABILITIES;
    t.deepEqual(session.heard(), [
      {
        jsonrpc: '2.0',
        id: 'init',
        result: {
          protocolVersion: revision,
          capabilities: revision === '2024-11-05' ? others : { ...others, completions },
          serverInfo: { name: 'modern', version: '3' },
          instructions: 'be kind',
        },
      } as never,
    ]);
    t.is(session.peer.revisions.at(-1)?.id as string, revision);
  });
}

test('a revision nobody knows is offered the latest legacy one', (t) => {
  const session = new LegacyFront().connect();
  session.initialize({ revision: '1999-01-01' });
  session.serverAnswers(DISCOVERY);
  t.is(session.heard()[0]?.result.protocolVersion, '2025-11-25');
});

test('a server that does not say what it is called gets a name, for legacy clients want one', (t) => {
  const session = new LegacyFront().connect();
  session.initialize();
  session.serverAnswers({ ...DISCOVERY, _meta: {} });
  t.deepEqual(session.heard()[0]?.result.serverInfo, { name: 'fake-server', version: '0.0.0' });
});

test('what a client says before its handshake is answered waits within bounds', (t) => {
  const session = new LegacyFront().connect();
  session.initialize();
  const text = 'x'.repeat(MAX_HELD_BYTES / 2);
  for (const id of [1, 2, 3]) session.says({ id, method: 'tools/call', params: { name: 'x', arguments: { text } } });
  t.like(session.heard(), [{ id: 3, error: { code: -32600 } }]);
});

test('a client that declares more than each request can repeat is told so, and may try again', (t) => {
  const session = new LegacyFront().connect();
  const capabilities = { experimental: { x: { text: 'x'.repeat(MAX_CAPABILITIES_LENGTH) } } };
  session.initialize({ capabilities });
  t.deepEqual(session.asked(), []);
  t.regex(session.heard()[0]?.error.message, /^The capabilities of this client have 164\d\d characters.* 16384\.$/);
});

test('capabilities that are far too large are not even read', (t) => {
  const session = new LegacyFront().connect();
  session.initialize({ capabilities: { experimental: { x: { list: Array.from({ length: 30_000 }, () => []) } } } });
  t.regex(session.heard()[0]?.error.message, /^The capabilities of this client have 900\d\d characters/);
});

test('of a client that says much of itself each request repeats its name and version', (t) => {
  const session = new LegacyFront().connect();
  const icons = [{ src: `data:image/png;base64,${'x'.repeat(5000)}` }];
  session.initialize({ clientInfo: { name: 'n'.repeat(300), version: '1', icons } });
  t.deepEqual(session.asked()[0]?.params._meta[`${META}clientInfo`], { name: 'n'.repeat(256), version: '1' });
});

test('a server that says more of itself than can be kept is an error, and why', (t) => {
  const session = new LegacyFront().connect();
  session.initialize();
  session.serverAnswers({ ...DISCOVERY, instructions: 'x'.repeat(MAX_DISCOVERY_BYTES) });
  t.regex(
    session.heard()[0]?.error.message,
    /answered server\/discover with \d+ bytes; more than 1048576 are not kept/,
  );
});

test('ping is answered with nothing but {} before, during and after the handshake', (t) => {
  const session = new LegacyFront().connect();
  const ping = (id: number) => session.says({ id, method: 'ping' });
  ping(1);
  session.initialize();
  ping(2);
  session.serverAnswers(DISCOVERY);
  ping(3);
  const pongs = session.heard().filter(({ id }) => id !== 'init');
  t.deepEqual(
    pongs,
    [1, 2, 3].map((id) => ({ jsonrpc: '2.0', id, result: {} })),
  );
  t.is(session.asked().length, 1, 'the server hears of none');
});

test('what a client sends before its handshake is answered waits, and what it withdraws meanwhile is not sent', (t) => {
  const session = new LegacyFront().connect();
  session.initialize();
  session.call(1, { name: 'early' });
  session.call(2, { name: 'withdrawn' });
  session.says({ method: 'notifications/cancelled', params: { requestId: 2 } });
  t.is(session.asked().length, 1);
  session.serverAnswers(DISCOVERY);
  t.deepEqual(
    session.asked().map(({ params }) => params.name),
    ['early'],
  );
});

test('a request without any initialize is refused', (t) => {
  const session = new LegacyFront().connect();
  session.call(1);
  t.is(session.heard()[0]?.error.code, -32600);
  t.deepEqual(session.asked(), []);
});

test('a second initialize is refused, and the session goes on', (t) => {
  const session = new LegacyFront().open();
  session.initialize();
  t.is(session.heard()[0]?.error.code, -32600);
  session.call(1);
  t.is(session.asked().length, 1);
  t.deepEqual(session.ends, []);
});

test('an error of server/discover is the answer to initialize, and there is no session', (t) => {
  const session = new LegacyFront().connect();
  session.initialize();
  session.serverRefuses({ code: -32603, message: 'no database', data: { why: 1 } });
  t.deepEqual(session.heard()[0]?.error, { code: -32603, message: 'no database', data: { why: 1 } });
  t.is(session.ends.length, 1);
});

test('a server/discover that is answered with nonsense or withdrawn fails initialize', (t) => {
  for (const end of [{ result: { tools: [] } }, { method: 'notifications/cancelled', params: { requestId: 1 } }]) {
    const session = new LegacyFront().connect();
    session.initialize();
    session.serverSays('result' in end ? { id: session.ids.at(-1), ...end } : end);
    t.is(session.heard()[0]?.error.data.bridge.reason, 'ERR_UPSTREAM_PROTOCOL');
    t.is(session.ends.length, 1);
  }
});

test('a server of other revisions only is named in the error to initialize, with those spoken here', (t) => {
  for (const refuse of [
    (s: ReturnType<LegacyFront['connect']>) => s.serverAnswers({ ...DISCOVERY, supportedVersions: ['2027-01-01'] }),
    (s: ReturnType<LegacyFront['connect']>) =>
      s.serverRefuses({ code: -32022, message: 'x', data: { supported: ['2027-01-01'] } }),
  ]) {
    const session = new LegacyFront().connect();
    session.initialize();
    refuse(session);
    const { code, message, data } = session.heard()[0]?.error ?? {};
    t.is(code, -32603);
    t.regex(message, /2027-01-01.*2026-07-28.*2025-11-25/);
    t.is(data.bridge.reason, 'ERR_UPSTREAM_REVISION');
  }
});

test('a server that refuses a revision and names it as supported is asked once more', (t) => {
  const refusal = { code: -32022, message: 'x', data: { supported: ['2026-07-28'] } };
  const session = new LegacyFront().connect();
  session.initialize();
  session.serverRefuses(refusal);
  t.deepEqual(
    session.asked().map(({ method }) => method),
    ['server/discover', 'server/discover'],
  );
  session.serverAnswers(DISCOVERY);
  t.is(session.heard()[0]?.result.serverInfo.name, 'modern');

  const stubborn = new LegacyFront().connect();
  stubborn.initialize();
  stubborn.serverRefuses(refusal);
  stubborn.serverRefuses(refusal);
  t.is(stubborn.asked().length, 2);
  t.is(stubborn.heard()[0]?.error.data.bridge.reason, 'ERR_UPSTREAM_REVISION');
});

test('clients that connect at one time share one server/discover', (t) => {
  const front = new LegacyFront();
  const [first, second] = [front.connect(), front.connect()];
  first.initialize({ revision: '2025-06-18' });
  second.initialize({ revision: '2025-03-26' });
  t.is(first.asked().length, 1);
  t.is(second.asked().length, 0);
  first.serverAnswers(DISCOVERY);
  t.is(first.heard()[0]?.result.protocolVersion, '2025-06-18');
  t.is(second.heard()[0]?.result.protocolVersion, '2025-03-26');
});

test('if the client that asked leaves, the next one asks', (t) => {
  const front = new LegacyFront();
  const [first, second] = [front.connect(), front.connect()];
  first.initialize();
  second.initialize();
  first.relay.clientClosed(new BridgeError('ERR_SESSION_CLOSED', 'gone'));
  t.is(second.asked().length, 1);
  second.serverAnswers(DISCOVERY);
  t.is(second.heard()[0]?.id, 'init');
});

test('what the server said of itself is used again for as long as it said, and no longer', (t) => {
  const front = new LegacyFront();
  front.open({}, { ...DISCOVERY, ttlMs: 1000 });
  const [second, third] = [front.connect(), front.connect()];
  front.clock.advance(999);
  second.initialize();
  t.is(second.asked().length, 0);
  t.is(second.heard()[0]?.id, 'init');
  front.clock.advance(1);
  third.initialize();
  t.is(third.asked().length, 1);
});

test('a client that is let through with headers of its own asks for itself', (t) => {
  const front = new LegacyFront();
  front.open({}, { ...DISCOVERY, ttlMs: 1000 });
  const session = front.connect();
  const lane = Object.assign(new FakeLane(), { headers: { 'x-tenant': 'b' } });
  session.says({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {} } }, lane);
  const [asked] = session.link.sent;
  t.is(asked?.call?.lane, lane);
  t.deepEqual((asked?.frame.json() as { params: { _meta: object } }).params._meta, {
    [`${META}protocolVersion`]: '2026-07-28',
    [`${META}clientCapabilities`]: {},
    [`${META}clientInfo`]: { name: 'mcp-portage', version: '0' },
  });
});

test('the link below ending ends the session', (t) => {
  const session = new LegacyFront().open();
  session.call(1);
  session.serverCloses(new BridgeError('ERR_UPSTREAM_EXITED', 'gone'));
  t.is(session.heard()[0]?.error.data.bridge.reason, 'ERR_UPSTREAM_EXITED');
  t.is(session.ends.length, 1);
  t.is(session.clock.pendingTimers, 0);
});
