import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import type { RequestMetadata } from '../../../src/mcp/classify/request-metadata.ts';
import { MAX_CAPABILITIES_BYTES } from '../../../src/mcp/translate/capabilities.ts';
import type { Fields } from '../../../src/mcp/vocabulary/payload.ts';
import { Call, MAX_OPEN_CALLS } from '../../../src/relay/call.ts';
import { Relay } from '../../../src/relay/relay.ts';
import { notificationFrame } from '../../../src/wire/write-message.ts';
import { collectLog } from '../../process/collected-log.ts';
import { relayParts } from '../../support/calls.ts';
import { dialCall } from '../../support/dial-call.ts';
import { createFakeDeps, FakeLane, FakePeer, FakeServerListener, messagesOf } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';
import { type Message, ModernBridge, SERVER_RESULT } from './modern-bridge.ts';

const LEFT = new BridgeError('ERR_SESSION_CLOSED', 'the client left');
const META = 'io.modelcontextprotocol/';

function envelope(capabilities: object = {}): object {
  return { [`${META}protocolVersion`]: '2026-07-28', [`${META}clientCapabilities`]: capabilities };
}

/** One modern client that sends all it asks over one link. */
class PipeClient {
  readonly listener = new FakeServerListener();
  readonly link;
  /** How often it was told that it can go on. */
  drained = 0;

  constructor(bridge: ModernBridge) {
    this.listener.serverDrained = () => {
      this.drained += 1;
    };
    this.link = bridge.modern.dialCalls(this.listener, { principal: 'ada', headers: undefined });
  }

  ask(id: number, method: string, params: object = {}, capabilities: object = {}): Call {
    return this.send(id, method, { ...params, _meta: envelope(capabilities) });
  }

  send(id: number, method: string, params: object): Call {
    const call = new Call(id, method, new FakeLane(), undefined, 0);
    this.link.send(clientFrame({ id, method, params }), call);
    return call;
  }

  /** Sends a vendor's notification. */
  notify(): boolean {
    return this.link.send(clientFrame({ method: 'acme/seen', params: { _meta: envelope() } }));
  }

  /** What it was told since the last look, with the call it was told for. */
  told(): readonly { readonly message: Message; readonly call: Call | undefined }[] {
    const received = this.listener.received.splice(0);
    return received.map(({ frame, call }) => ({ message: frame.json() as Message, call }));
  }
}

test('many requests of one client are answered each on its call, whatever comes first', (t) => {
  const bridge = new ModernBridge();
  const client = new PipeClient(bridge);
  const first = client.ask(1, 'tools/call', { name: 'x' });
  const second = client.ask(2, 'tools/call', { name: 'y' });
  const [x, y] = bridge.heard();
  t.is(bridge.dialer.dialed.length, 1, 'they share a session');
  bridge.says({ id: y?.id, result: { content: [] } });
  bridge.says({ id: x?.id, result: { content: [] } });
  const told = client.told();
  t.deepEqual(
    told.map(({ message }) => message.id),
    [2, 1],
  );
  t.is(told[0]?.call, second);
  t.is(told[1]?.call, first);
});

test('each request says by itself what its client can do', (t) => {
  const bridge = new ModernBridge();
  const client = new PipeClient(bridge);
  client.ask(1, 'tools/call', { name: 'x' }, { roots: {} });
  client.ask(2, 'tools/call', { name: 'x' }, { sampling: {} });
  const declared = bridge.dialer.dialed.map(({ link }) => {
    const [hello] = link.take();
    return (hello?.frame.json() as Message).params.capabilities;
  });
  t.deepEqual(declared, [{ roots: {} }, { sampling: {} }]);
});

test('a withdrawn request of many gets no answer; the others go on', (t) => {
  const bridge = new ModernBridge();
  const client = new PipeClient(bridge);
  const withdrawn = client.ask(1, 'tools/call', { name: 'x' });
  client.ask(2, 'tools/call', { name: 'y' });
  const [x, y] = bridge.heard();
  client.link.send(notificationFrame('notifications/cancelled', { requestId: 1 }), withdrawn);
  t.is(bridge.heardOnly('notifications/cancelled').params.requestId, x?.id);
  bridge.says({ id: x?.id, result: { content: [] } });
  bridge.says({ id: y?.id, result: { content: [] } });
  t.deepEqual(
    client.told().map(({ message }) => message.id),
    [2],
  );
});

test('a call that asks, and its retry, are two of the many', (t) => {
  const bridge = new ModernBridge();
  const client = new PipeClient(bridge);
  client.ask(1, 'tools/call', { name: 'x' }, { roots: {} });
  const { id } = bridge.heardOnly('tools/call');
  bridge.says({ id: 'q', method: 'roots/list' });
  bridge.collect();
  const requestState = client.told()[0]?.message.result.requestState;
  const inputResponses = { 'roots-1': { roots: [] } };
  const retry = client.ask(2, 'tools/call', { name: 'x', requestState, inputResponses }, { roots: {} });
  t.like(bridge.heard()[0], { id: 'q', result: { roots: [] } });
  bridge.says({ id, result: { content: [] } });
  const [outcome] = client.told();
  t.is(outcome?.call, retry);
  t.is(outcome?.message.result.resultType, 'complete');
});

test('what comes for a request before its answer is told on its call', (t) => {
  const bridge = new ModernBridge();
  const client = new PipeClient(bridge);
  const listening = client.ask(1, 'subscriptions/listen', { notifications: { toolsListChanged: true } });
  client.ask(2, 'tools/list');
  bridge.says({ method: 'notifications/tools/list_changed' });
  t.deepEqual(
    client.told().map(({ message, call }) => [message.method, call === listening]),
    [
      ['notifications/subscriptions/acknowledged', true],
      ['notifications/tools/list_changed', true],
    ],
  );
});

test('a request without metadata is refused, and the server hears nothing', (t) => {
  const bridge = new ModernBridge();
  const client = new PipeClient(bridge);
  const call = client.send(1, 'tools/list', {});
  const [refusal] = client.told();
  t.is(refusal?.message.error?.code, -32602);
  t.is(refusal?.call, call);
  t.is(bridge.dialer.dialed.length, 0);
});

test("a vendor's notification without metadata goes to the session of the latest request", (t) => {
  const { log, entries } = collectLog();
  const bridge = new ModernBridge({ deps: { ...createFakeDeps(), log } });
  const client = new PipeClient(bridge);
  client.link.send(notificationFrame('acme/seen'));
  t.is(bridge.dialer.dialed.length, 0);
  t.like(entries.at(-1), { level: 20, method: 'acme/seen' }, 'there is no session that it could be for');
  client.ask(1, 'tools/list');
  bridge.heard();
  client.link.send(notificationFrame('acme/seen', { n: 1 }));
  client.link.send(notificationFrame('notifications/roots/list_changed'));
  t.like(bridge.heardOnly('acme/seen'), { params: { n: 1 } });
});

test("a vendor's notification holds its client back until the server has capacity", (t) => {
  const bridge = new ModernBridge();
  const client = new PipeClient(bridge);
  client.ask(1, 'tools/list');
  bridge.says({ id: bridge.heardOnly('tools/list').id, result: { tools: [] } });
  const { link, listener } = bridge.dialer.latest;
  t.true(client.notify());
  link.hasCapacity = false;
  t.false(client.notify());
  t.is(bridge.heard().length, 2);
  t.is(client.drained, 0);
  listener.serverDrained();
  t.is(client.drained, 1);
  listener.serverDrained();
  t.is(client.drained, 1);
});

test("a vendor's notification holds its client back until a server serves, or it is clear that none does", (t) => {
  const bridge = new ModernBridge();
  bridge.greeting = undefined;
  const client = new PipeClient(bridge);
  t.false(client.notify());
  bridge.exits();
  t.is(client.drained, 1);
  t.false(client.notify());
  bridge.clock.advance(250);
  const [hello] = bridge.dialer.latest.link.take();
  bridge.says({ id: hello?.frame.id, result: SERVER_RESULT });
  t.is(bridge.heardOnly('acme/seen').method, 'acme/seen');
  t.is(client.drained, 2);
  bridge.dialer.latest.link.hasCapacity = false;
  t.false(client.notify());
  client.link.close(LEFT);
  bridge.dialer.latest.listener.serverDrained();
  t.is(client.drained, 2, 'who has left hears nothing');
});

test('capabilities that are far too large are refused before they are read', (t) => {
  const bridge = new ModernBridge();
  const listener = new FakeServerListener();
  const metadata: RequestMetadata = {
    revision: '2026-07-28',
    capabilitiesBytes: MAX_CAPABILITIES_BYTES + 1,
    get capabilities(): Fields {
      t.fail();
      return {};
    },
    clientInfo: undefined,
    logLevel: undefined,
  };
  const link = dialCall(bridge.modern, listener, { principal: 'ada', metadata, headers: undefined });
  link.send(
    clientFrame({ id: 1, method: 'server/discover' }),
    new Call(1, 'server/discover', new FakeLane(), undefined, 0),
  );
  link.send(clientFrame({ method: 'acme/seen' }));
  t.like(messagesOf(listener.received), [{ id: 1, error: { data: { bridge: { reason: 'ERR_WIRE_MESSAGE' } } } }]);
  t.is(bridge.dialer.dialed.length, 0);
});

test('only so many requests of one client are open; an answer allows another', (t) => {
  const bridge = new ModernBridge();
  const client = new PipeClient(bridge);
  for (let id = 0; id < MAX_OPEN_CALLS; id += 1) client.ask(id, 'tools/list');
  const [first] = bridge.heard();
  client.ask(5000, 'tools/list');
  t.like(client.told()[0]?.message.error, { data: { bridge: { reason: 'ERR_SESSION_BUSY' } } });
  bridge.says({ id: first?.id, result: { tools: [] } });
  t.is(client.told().length, 1);
  client.ask(5001, 'tools/list');
  t.deepEqual(client.told(), []);
});

test('a client that leaves withdraws all it has open', (t) => {
  const bridge = new ModernBridge();
  const client = new PipeClient(bridge);
  client.ask(1, 'tools/call', { name: 'x' });
  client.ask(2, 'tools/call', { name: 'y' });
  const open = bridge.heard().map(({ id }) => id);
  client.link.close(LEFT);
  client.link.close(LEFT);
  t.deepEqual(
    bridge.heard().map(({ method, params }) => [method, params.requestId]),
    open.map((id) => ['notifications/cancelled', id]),
  );
  bridge.says({ id: open[0], result: { content: [] } });
  t.deepEqual(client.told(), []);
});

test('a call that is silent for too long fails, and is withdrawn from the server', (t) => {
  const bridge = new ModernBridge();
  const { log, clock } = bridge.deps;
  const relay = new Relay({
    log,
    ...relayParts(clock, { requestTimeoutMs: 1000 }),
    onReady: () => {},
    onEnd: () => {},
  });
  const peer = new FakePeer();
  relay.join(peer, bridge.modern.dialCalls(relay, { principal: 'ada', headers: undefined }));
  relay.fromClient(
    clientFrame({ id: 1, method: 'tools/call', params: { name: 'x', _meta: envelope() } }),
    new FakeLane(),
  );
  const { id } = bridge.heardOnly('tools/call');
  clock.advance(1000);
  relay.sweep(clock.now());
  const [failure] = messagesOf(peer.take()) as Message[];
  t.like(failure, { id: 1, error: { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_TIMEOUT' } } } });
  t.is(bridge.heardOnly('notifications/cancelled').params.requestId, id);
});
