import test, { type ExecutionContext } from 'ava';
import { connectAsync } from 'mqtt';
import { SHUTTING_DOWN } from '../../../src/errors.ts';
import { ALL_ANSWERS_MS, ANSWER_MS } from '../../../src/upstream/mqtt/carrier.ts';
import type { MqttConnectorOptions } from '../../../src/upstream/mqtt/connector.ts';
import type { JsonRpcId } from '../../../src/wire/frame.ts';
import { notificationFrame, requestFrame, resultFrame } from '../../../src/wire/write-message.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type Mosquitto, startMosquitto, WHY_NO_MOSQUITTO } from '../../support/mosquitto.ts';
import { HABITS, startTestServer, type TestServer, type TestServerOptions } from '../../support/mqtt-peers.ts';
import { startScriptedBroker } from '../../support/scripted-broker.ts';
import { waitFor } from '../../support/wait-for.ts';
import { RecordingServerListener } from '../recording-server-listener.ts';
import { dialMqtt, targetAt } from './dial.ts';

const mqtt = WHY_NO_MOSQUITTO === undefined ? test : test.skip;
if (WHY_NO_MOSQUITTO !== undefined) test(`no broker: ${WHY_NO_MOSQUITTO}`, (t) => t.pass());

async function broker(t: ExecutionContext): Promise<Mosquitto> {
  const started = await startMosquitto();
  t.teardown(() => started.stop());
  return started;
}

async function serve(
  t: ExecutionContext,
  { url }: Mosquitto,
  options: Partial<TestServerOptions> = {},
): Promise<TestServer> {
  const server = await startTestServer({ url, serverId: 'one', serverName: 'a/b', ...options });
  t.teardown(() => server.client.endAsync(true));
  return server;
}

const PARAMS = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } };

interface Dialing extends Partial<MqttConnectorOptions> {
  readonly serverName?: string;
  readonly serverId?: string;
}

function dial(
  t: ExecutionContext,
  { port }: Pick<Mosquitto, 'port'>,
  { serverName = 'a/b', serverId, ...options }: Dialing = {},
) {
  const { connector, entries } = dialMqtt(targetAt(port, serverName, serverId), options);
  t.teardown(() => connector.killNow());
  const connect = (id: JsonRpcId = 1) => {
    const listener = new RecordingServerListener();
    const link = connector.connect();
    link.listener = listener;
    link.send(requestFrame(id, 'initialize', PARAMS));
    return { listener, link };
  };
  return { connector, entries, connect };
}

const nameOf = (answer: Record<string, unknown>): unknown =>
  (answer.result as { serverInfo?: { name?: unknown } } | undefined)?.serverInfo?.name;

for (const [sdk, habits] of Object.entries(HABITS)) {
  mqtt(`finds a server like that of the SDK for ${sdk}, and calls its tools`, async (t) => {
    const at = await broker(t);
    const server = await serve(t, at, { serverName: 'Demo Server 1', habits });
    const { connector, connect } = dial(t, at, { serverName: 'Demo Server 1' });
    const { listener, link } = connect(0);
    t.is(nameOf(await listener.answerTo(0)), 'one');
    link.send(notificationFrame('notifications/initialized'));
    for (const id of ['', 'x', 7]) {
      link.send(requestFrame(id, 'tools/call', { name: 'echo', arguments: { id } }));
      t.like(await listener.answerTo(id), { result: { content: [{ type: 'text' }] } });
    }
    await connector.close();
    await waitFor(() => server.received.some(({ message }) => message?.method === 'notifications/disconnected'));
    const [first, ...others] = server.received;
    t.is(first?.topic, '$mcp-server/one/Demo Server 1');
    const [clientId] = server.sessions.keys();
    t.regex(clientId ?? '', /^[0-9a-f]{32}$/);
    t.is(others[0]?.topic, `$mcp-rpc/${clientId}/one/Demo Server 1`);
    t.is(others.at(-1)?.topic, `$mcp-client/presence/${clientId}`);
    for (const { packet } of server.received) {
      const { 'MCP-COMPONENT-TYPE': type, 'MCP-MQTT-CLIENT-ID': id } = packet.properties?.userProperties ?? {};
      t.deepEqual([type, id], ['mcp-client', clientId]);
    }
  });
}

mqtt('each session has a connection and a client id of its own', async (t) => {
  const at = await broker(t);
  const server = await serve(t, at);
  const { connect } = dial(t, at);
  const sessions = [connect(1), connect(1)];
  for (const { listener } of sessions) await listener.answerTo(1);
  t.is(server.sessions.size, 2);
});

mqtt('pings are answered without the server, which may not answer any', async (t) => {
  const at = await broker(t);
  const server = await serve(t, at, { habits: HABITS.esp32 });
  const { listener, link } = dial(t, at).connect();
  await listener.answerTo(1);
  link.send(requestFrame(2, 'ping'));
  t.deepEqual(await listener.answerTo(2), { jsonrpc: '2.0', id: 2, result: {} });
  t.false(server.received.some(({ message }) => message?.method === 'ping'));
});

mqtt('a presence that was left behind is found out at once, and another instance is asked', async (t) => {
  const at = await broker(t);
  await serve(t, at, { serverId: 'alive' });
  for (const serverId of ['stale1', 'stale2']) {
    const gone = await serve(t, at, { serverId, habits: HABITS.esp32 });
    await gone.vanish();
  }
  const startedMs = Date.now();
  const { listener } = dial(t, at).connect();
  t.is(nameOf(await listener.answerTo(1)), 'alive');
  t.true(Date.now() - startedMs < ANSWER_MS);
});

mqtt('an instance that does not answer is left for another, and is told so', async (t) => {
  const at = await broker(t);
  const clock = new FakeClock();
  const { deps } = createTestDeps();
  const mute = await serve(t, at, { serverId: 'mute', manner: 'mute' });
  const { listener } = dial(t, at, { deps: { ...deps, clock } }).connect();
  await waitFor(() => mute.received.some(({ message }) => message?.method === 'initialize'));
  const alive = await serve(t, at, { serverId: 'alive' });
  // Another one has come, but there still is time.
  clock.advance(ANSWER_MS - 1);
  t.is(alive.received.length, 0);
  // The presence of the other one may still be on its way.
  clock.advance(1);
  t.is(nameOf(await listener.answerTo(1)), 'alive');
  await waitFor(() => mute.received.some(({ message }) => message?.method === 'notifications/disconnected'));
});

mqtt('a single instance may take longer, up to half a minute', async (t) => {
  const at = await broker(t);
  const clock = new FakeClock();
  const { deps } = createTestDeps();
  const mute = await serve(t, at, { manner: 'mute' });
  const { listener } = dial(t, at, { deps: { ...deps, clock } }).connect();
  await waitFor(() => mute.received.length === 1);
  clock.advance(ANSWER_MS);
  clock.advance(ALL_ANSWERS_MS - ANSWER_MS - 1);
  t.deepEqual(listener.closings, []);
  clock.advance(1);
  const error = await listener.whenClosed();
  t.is(error.code, 'ERR_UPSTREAM_TIMEOUT');
  t.is(mute.received.filter(({ message }) => message?.method === 'initialize').length, 1);
});

mqtt('a server that comes within the connect limit is waited for', async (t) => {
  const at = await broker(t);
  const { listener } = dial(t, at).connect();
  await serve(t, at, { serverName: 'other' });
  await serve(t, at);
  t.is(nameOf(await listener.answerTo(1)), 'one');
});

mqtt('without a server of that name, the error says so after the connect limit', async (t) => {
  const at = await broker(t);
  const { connector, connect } = dial(t, at, { connectTimeoutMs: 300 });
  const error = await connect().listener.whenClosed();
  t.is(error.code, 'ERR_UPSTREAM_CONNECT');
  t.is(error.audiences.exit, 69);
  t.regex(
    error.message,
    /^No server named "a\/b" is online at the broker mqtt:\/\/127\.0\.0\.1:\d+\. Check the name, that the server is running, and that the broker lets this user read its presence/,
  );
  t.is(connector.readiness().state, 'failing');
});

mqtt('where only stale presences are left, the error says so', async (t) => {
  const at = await broker(t);
  const gone = await serve(t, at, { habits: HABITS.esp32 });
  const watcher = await serve(t, at, { serverId: 'watcher', serverName: 'other' });
  await watcher.client.subscribeAsync('$mcp-server/presence/one/a/b', { rh: 2, qos: 1 });
  await gone.vanish();
  await waitFor(() => watcher.received.some(({ packet }) => packet.payload.length === 0));
  const error = await dial(t, at, { connectTimeoutMs: 300 }).connect().listener.whenClosed();
  t.regex(error.message, /^All that claim to serve "a\/b" are gone/);
});

mqtt('a server whose id is given needs no presence', async (t) => {
  const at = await broker(t);
  const server = await serve(t, at);
  await server.publish('$mcp-server/presence/one/a/b', '', { retain: true });
  await serve(t, at, { serverId: 'two' });
  const { listener } = dial(t, at, { serverId: 'one' }).connect();
  t.is(nameOf(await listener.answerTo(1)), 'one');
});

mqtt('an id that nobody has is an error after the connect limit', async (t) => {
  const at = await broker(t);
  const error = await dial(t, at, { serverId: 'nobody', connectTimeoutMs: 300 }).connect().listener.whenClosed();
  t.is(error.code, 'ERR_UPSTREAM_CONNECT');
  t.regex(error.message, /Nobody listens as "nobody"/);
});

mqtt('the instance that has answered last is asked again although it has lost its presence', async (t) => {
  const at = await broker(t);
  const server = await serve(t, at);
  const { connect } = dial(t, at, { connectTimeoutMs: 300 });
  await connect().listener.answerTo(1);
  const { link } = connect();
  link.close(SHUTTING_DOWN);
  // It was there, and a message that clears its presence ends the session that hears of it.
  await server.publish('$mcp-server/presence/one/a/b', '', { retain: true });
  t.is(nameOf(await connect().listener.answerTo(1)), 'one');
});

for (const [how, go] of [
  ['clears its presence', (server: TestServer) => server.leave()],
  ['vanishes', (server: TestServer) => server.vanish()],
  [
    'ends the session',
    async (server: TestServer) => {
      for (const session of server.sessions.values())
        session.say({ jsonrpc: '2.0', method: 'notifications/disconnected' });
    },
  ],
] as const) {
  mqtt(`a server that ${how} ends the session, and the next one is opened with another`, async (t) => {
    const at = await broker(t);
    const server = await serve(t, at);
    const { connect } = dial(t, at);
    const { listener } = connect();
    await listener.answerTo(1);
    await serve(t, at, { serverId: 'two' });
    await go(server);
    const error = await listener.whenClosed();
    t.is(error.code, 'ERR_UPSTREAM_CLOSED');
    t.regex(error.message, /has (left the broker|ended the session)\. Calls that it had not answered may have run\.$/);
    t.is(nameOf(await connect().listener.answerTo(1)), 'two');
  });
}

test('a call of which the broker says that nobody hears it ends the session, and the next one is opened', async (t) => {
  const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'one', version: '1' } };
  const at = await startScriptedBroker(t, {
    handle: (packet, { send, packets }) => {
      if (packet.cmd !== 'publish') return false;
      const { topic, messageId = 0 } = packet;
      send({ cmd: 'puback', messageId, reasonCode: topic.startsWith('$mcp-rpc/') ? 16 : 0 });
      if (!topic.startsWith('$mcp-server/')) return true;
      const [hello] = packets;
      const rpc = `$mcp-rpc/${hello?.cmd === 'connect' ? hello.clientId : ''}/one/a/b`;
      const payload = JSON.stringify({ jsonrpc: '2.0', id: 1, result });
      send({ cmd: 'publish', topic: rpc, payload, qos: 0, dup: false, retain: false });
      return true;
    },
  });
  const { connect } = dial(t, at, { serverId: 'one' });
  const { listener, link } = connect();
  await listener.answerTo(1);
  link.send(notificationFrame('notifications/unheard'));
  link.send(requestFrame(2, 'tools/list'));
  const error = await listener.whenClosed();
  t.is(error.code, 'ERR_UPSTREAM_CLOSED');
  t.regex(error.message, /does not listen to this session anymore/);
  t.is(nameOf(await connect().listener.answerTo(1)), 'one');
});

mqtt('a broker that ends is noticed, and used again when it is back', async (t) => {
  const at = await broker(t);
  await serve(t, at);
  const { connector, connect } = dial(t, at);
  const { listener } = connect();
  await listener.answerTo(1);
  await at.end();
  t.is((await listener.whenClosed()).code, 'ERR_UPSTREAM_CLOSED');
  t.is((await connect().listener.whenClosed()).code, 'ERR_UPSTREAM_CONNECT');
  t.is(connector.readiness().state, 'failing');
  await at.restart();
  await serve(t, at);
  t.is(nameOf(await connect().listener.answerTo(1)), 'one');
  t.is(connector.readiness().state, 'ready');
});

mqtt('changes of lists and resources pass, resources only if this session has subscribed to them', async (t) => {
  const at = await broker(t);
  const server = await serve(t, at);
  const { connect } = dial(t, at);
  const { listener, link } = connect();
  await listener.answerTo(1);
  link.send(requestFrame(2, 'resources/subscribe', { uri: 'a:1' }));
  await listener.answerTo(2);
  const capability = '$mcp-server/capability/one/a/b';
  const updated = (uri: string) =>
    JSON.stringify({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } });
  await server.publish(capability, updated('a:2'));
  await server.publish(capability, updated('a:1'));
  await server.publish(capability, JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }));
  await waitFor(() => listener.frames.some(({ method }) => method === 'notifications/tools/list_changed'));
  const told = listener.frames.filter(({ kind }) => kind === 'notification').map((frame) => frame.json());
  t.deepEqual(told, [JSON.parse(updated('a:1')), { jsonrpc: '2.0', method: 'notifications/tools/list_changed' }]);
});

mqtt('a change of the roots goes to the capability topic of the client', async (t) => {
  const at = await broker(t);
  const server = await serve(t, at);
  const { listener, link } = dial(t, at).connect();
  await listener.answerTo(1);
  link.send(notificationFrame('notifications/roots/list_changed'));
  const [clientId] = server.sessions.keys();
  await waitFor(() => server.received.some(({ topic }) => topic === `$mcp-client/capability/${clientId}`));
  t.pass();
});

mqtt('a cancellation of a call whose id was replaced names the id that the server knows', async (t) => {
  const at = await broker(t);
  const server = await serve(t, at, { answer: () => undefined });
  const { listener, link } = dial(t, at).connect();
  await listener.answerTo(1);
  link.send(requestFrame(0, 'tools/call', { name: 'slow' }));
  link.send(notificationFrame('notifications/cancelled', { requestId: 0 }));
  const called = await waitFor(() => server.received.find(({ message }) => message?.method === 'tools/call'));
  const canceled = await waitFor(() =>
    server.received.find(({ message }) => message?.method === 'notifications/cancelled'),
  );
  t.deepEqual(canceled.message?.params, { requestId: called.message?.id });
});

mqtt('a server may ask while a call is open, and a question that comes again is asked once', async (t) => {
  const at = await broker(t);
  const server = await serve(t, at);
  const { listener, link } = dial(t, at).connect();
  await listener.answerTo(1);
  const [session] = server.sessions.values();
  const question = { jsonrpc: '2.0', id: 0, method: 'roots/list' };
  session?.say(question);
  session?.say(question);
  session?.say({ jsonrpc: '2.0', id: 1, method: 'roots/list' });
  await waitFor(() => listener.frames.filter(({ kind }) => kind === 'request').length === 2);
  t.deepEqual(
    listener.frames.filter(({ kind }) => kind === 'request').map(({ id }) => id),
    [0, 1],
  );
  link.send(resultFrame(0, { roots: [] }));
  await waitFor(() => server.received.some(({ message }) => message?.id === 0 && 'result' in message));
});

mqtt('a large message passes, and one over the limit fails its call alone', async (t) => {
  const at = await broker(t);
  const large = 'x'.repeat(300_000);
  const texts = [large, 'x'.repeat(600_000), large];
  await serve(t, at, { answer: () => ({ content: [{ type: 'text', text: texts.shift() }] }) });
  const { listener, link } = dial(t, at, { maxMessageBytes: 500_000 }).connect();
  await listener.answerTo(1);
  for (const id of [2, 3, 4]) {
    link.send(requestFrame(id, 'tools/call', { name: 'large', arguments: { text: large } }));
    if (id === 3) await waitFor(() => listener.faults.length === 1);
    else t.like(await listener.answerTo(id), { result: { content: [{ text: large }] } });
  }
  t.like(listener.faults[0], { id: 3, error: { code: 'ERR_UPSTREAM_TOO_LARGE' } });
});

mqtt('everything arrives of many calls at once, in both directions', async (t) => {
  const at = await broker(t);
  await serve(t, at);
  const { listener, link } = dial(t, at).connect();
  await listener.answerTo(1);
  let capacity = true;
  for (let id = 2; id < 502; id += 1) {
    if (!capacity) {
      const { drains } = listener;
      await waitFor(() => listener.drains > drains);
    }
    capacity = link.send(requestFrame(id, 'tools/call', { name: 'echo', arguments: { id } }));
  }
  for (let id = 2; id < 502; id += 1) await listener.answerTo(id);
  t.true(listener.drains > 0);
});

mqtt('a modern server is asked at the control topic until it has answered', async (t) => {
  const at = await broker(t);
  const client = await connectAsync(at.url, { protocolVersion: 5, clientId: 'modern' });
  t.teardown(() => client.endAsync(true));
  const topics: string[] = [];
  client.on('message', (topic, payload, packet) => {
    topics.push(topic);
    const clientId = String(packet.properties?.userProperties?.['MCP-MQTT-CLIENT-ID']);
    const { id } = JSON.parse(payload.toString()) as { id: number };
    const rpc = `$mcp-rpc/${clientId}/modern/a/b`;
    void client
      .subscribeAsync(rpc, { qos: 1, nl: true })
      .then(() => client.publishAsync(rpc, JSON.stringify({ jsonrpc: '2.0', id, result: { tools: [] } })));
  });
  await client.subscribeAsync('$mcp-server/modern/a/b', { qos: 1 });
  const { connector } = dial(t, at, { serverId: 'modern' });
  const listener = new RecordingServerListener();
  const link = connector.connect();
  link.listener = listener;
  const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
  link.send(requestFrame(1, 'tools/list', { _meta }));
  await listener.answerTo(1);
  link.send(requestFrame(2, 'tools/list', { _meta }));
  await listener.answerTo(2);
  t.is(topics[0], '$mcp-server/modern/a/b');
  t.regex(topics[1] ?? '', /^\$mcp-rpc\//);
});

mqtt('a call that a modern server has heard before it left is not sent to another instance', async (t) => {
  const at = await broker(t);
  const { connector } = dial(t, at);
  const listener = new RecordingServerListener();
  const first = await serve(t, at, { manner: 'mute' });
  const link = connector.connect();
  link.listener = listener;
  link.send(
    requestFrame(1, 'tools/call', { name: 'x', _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } }),
  );
  await waitFor(() => first.received.length === 1);
  const second = await serve(t, at, { serverId: 'two' });
  await first.leave();
  t.is((await listener.whenClosed()).code, 'ERR_UPSTREAM_CLOSED');
  t.deepEqual(second.received, []);
});

// ---- what others at the broker may say

mqtt('retained lies, foreign senders and presences of other ids are ignored', async (t) => {
  const at = await broker(t);
  const server = await serve(t, at);
  const liar = await connectAsync(at.url, { protocolVersion: 5, clientId: 'liar' });
  t.teardown(() => liar.endAsync(true));
  const as = (id: string) => ({ userProperties: { 'MCP-COMPONENT-TYPE': 'mcp-server', 'MCP-MQTT-CLIENT-ID': id } });
  const online = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/server/online', params: {} });
  const retained = { retain: true, qos: 1 } as const;
  // A presence in the name of another; one that says nothing; ids and names that cannot be.
  await liar.publishAsync('$mcp-server/presence/ghost/a/b', online, { ...retained, properties: as('liar') });
  await liar.publishAsync('$mcp-server/presence/junk/a/b', 'hello', retained);
  await liar.publishAsync(`$mcp-server/presence/${'x'.repeat(200)}/a/b`, online, retained);
  const { listener, link } = dial(t, at).connect();
  t.is(nameOf(await listener.answerTo(1)), 'one');
  const [clientId] = server.sessions.keys();
  const rpc = `$mcp-rpc/${clientId}/one/a/b`;
  const lie = JSON.stringify({ jsonrpc: '2.0', id: 2, result: { lie: true } });
  await liar.publishAsync(rpc, lie, { qos: 1, properties: as('liar') });
  await liar.publishAsync(rpc, JSON.stringify({ jsonrpc: '2.0', method: 'notifications/disconnected' }), {
    qos: 1,
    properties: as('liar'),
  });
  await liar.publishAsync('$mcp-server/presence/one/a/b', '', { qos: 1, properties: as('liar') });
  await liar.publishAsync(rpc, 'no json', { qos: 1 });
  link.send(requestFrame(2, 'tools/list'));
  t.like(await listener.answerTo(2), { result: { tools: [{ name: 'echo' }] } });
  t.deepEqual(listener.closings, []);
});

mqtt('a server name with wildcards in a presence of others names no instance', async (t) => {
  const at = await broker(t);
  await serve(t, at);
  const { listener } = dial(t, at, { serverName: 'a', connectTimeoutMs: 300 }).connect();
  t.is((await listener.whenClosed()).code, 'ERR_UPSTREAM_CONNECT');
});
