import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import test, { type ExecutionContext } from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import type { SessionDialer } from '../../../src/relay/ports.ts';
import { Relay } from '../../../src/relay/relay.ts';
import { SharedModernServer } from '../../../src/relay/shared/modern/modern-era.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { relayParts } from '../../support/calls.ts';
import { FakeLane, FakePeer } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';
import { type ConnectOptions, connectClient, type SdkClient } from '../../support/sdk-client.ts';
import { waitFor } from '../../support/wait-for.ts';
import { dialModernHttp, dialModernStdio, translate } from './modern-servers.ts';

/** What an official client of the legacy era speaks through: a relay in the same process. */
class RelayTransport {
  onmessage: ((message: unknown) => void) | undefined;
  onclose: (() => void) | undefined;
  readonly #relay: Relay;
  readonly #peer = new FakePeer();

  constructor(dialer: SessionDialer) {
    const { deps } = createTestDeps();
    const { log, clock } = deps;
    this.#relay = new Relay({ log, ...relayParts(clock), onReady: () => {}, onEnd: () => this.onclose?.() });
    this.#relay.join(this.#peer, dialer.dial(this.#relay));
    // One at a time, as they come from a socket: the SDK handles progress a little later than results.
    this.#peer.onSend = ({ frame }) => void setImmediate(() => this.onmessage?.(frame.json()));
  }

  async start(): Promise<void> {}

  async send(message: object): Promise<void> {
    this.#relay.fromClient(clientFrame(message), new FakeLane());
  }

  async close(): Promise<void> {
    this.#relay.close(new BridgeError('ERR_SESSION_CLOSED', 'the client left'));
  }
}

type Connect = (options?: ConnectOptions) => Promise<SdkClient>;

/** Where the server runs: in one process for all clients, in one for each, or behind HTTP. */
type Kind = 'shared' | 'exclusive' | 'over HTTP';

/** Legacy clients of a server made with the official SDK v2. */
async function serve(t: ExecutionContext, kind: Kind): Promise<Connect> {
  const upstream = translate(t, kind === 'over HTTP' ? await dialModernHttp(t) : dialProcess(kind));
  return async (options) => {
    const connected = await connectClient(new RelayTransport(upstream), options);
    t.teardown(() => connected.close());
    return connected;
  };
}

function dialProcess(kind: 'shared' | 'exclusive'): SessionDialer {
  const dialer = dialModernStdio();
  const { deps } = createTestDeps();
  return kind === 'shared' ? new SharedModernServer({ dialer, deps, prewarm: false }) : dialer;
}

async function callText(client: Client, name: string, args: Record<string, unknown> = {}): Promise<string | undefined> {
  const { content } = await client.callTool({ name, arguments: args });
  return (content as readonly { text?: string }[])[0]?.text;
}

for (const kind of ['shared', 'exclusive', 'over HTTP'] as const) {
  test(`an SDK v1 client takes all that a modern server (${kind}) answers`, async (t) => {
    const { client } = await (await serve(t, kind))();
    t.deepEqual(client.getServerVersion(), { name: 'modern', version: '1.0.0' });
    t.truthy(client.getServerCapabilities()?.logging);
    const { tools } = await client.listTools();
    t.true(tools.some(({ name }) => name === 'echo'));
    t.is(await callText(client, 'echo', { text: 'hi' }), 'hi');
    t.deepEqual(await client.ping(), {});
    t.deepEqual(await client.setLoggingLevel('info'), {});
    t.deepEqual(await client.subscribeResource({ uri: 'test://a' }), {});
    t.deepEqual(await client.unsubscribeResource({ uri: 'test://a' }), {});
  });

  test(`a modern server (${kind}) asks a legacy client for what it needs`, async (t) => {
    const answers = [{ action: 'accept', content: { name: 'Bo' } }] as const;
    const { client } = await (await serve(t, kind))({
      capabilities: { elicitation: {} },
      handlers: (sdk) => sdk.setRequestHandler(ElicitRequestSchema, async () => answers[0]),
    });
    t.is(await callText(client, 'ask'), 'hello Bo');
  });

  test(`a modern server (${kind}) does not ask a client that cannot be asked`, async (t) => {
    const { client } = await (await serve(t, kind))();
    const error = await t.throwsAsync(client.callTool({ name: 'ask' }));
    t.is((error as { code?: number }).code, -32021);
  });

  test(`progress and log messages of a modern server (${kind}) reach the client that called`, async (t) => {
    const { client, notifications } = await (await serve(t, kind))();
    await client.setLoggingLevel('debug');
    const progress: unknown[] = [];
    await client.callTool({ name: 'work', arguments: { steps: 3, name: 'w' } }, undefined, {
      onprogress: ({ progress: step }) => void progress.push(step),
    });
    t.deepEqual(progress, [1, 2, 3]);
    t.deepEqual(
      notifications.filter(({ method }) => method === 'notifications/message').map(({ params }) => params?.data),
      ['w 1', 'w 2', 'w 3'],
    );
  });

  test(`a call that its client withdraws stops at a modern server (${kind})`, async (t) => {
    const { client } = await (await serve(t, kind))();
    const abort = new AbortController();
    const waiting = client.callTool({ name: 'wait', arguments: { name: 'mine' } }, undefined, { signal: abort.signal });
    // A call that is withdrawn before its tool runs leaves no trace in it.
    await waitFor(async () => (await callText(client, 'waiting')) === 'mine');
    abort.abort('enough');
    await t.throwsAsync(waiting);
    await waitFor(async () => (await callText(client, 'withdrawn')) === 'mine');
    t.pass();
  });

  test(`a legacy client hears of changes at a modern server (${kind}) while it subscribes to more`, async (t) => {
    const { client, notifications } = await (await serve(t, kind))();
    await client.subscribeResource({ uri: 'test://a' });
    await Promise.all(['test://b', 'test://c'].map((uri) => client.subscribeResource({ uri })));
    await callText(client, 'change', { kind: 'test://a' });
    await callText(client, 'change', { kind: 'tools' });
    const has = (method: string) => notifications.some((notification) => notification.method === method);
    await waitFor(() => has('notifications/resources/updated') && has('notifications/tools/list_changed'));
    const updates = notifications.filter(({ method }) => method === 'notifications/resources/updated');
    t.deepEqual(
      updates.map(({ params }) => params),
      [{ uri: 'test://a' }],
    );
  });
}

test('legacy clients that share a modern server each have their own answers and changes', async (t) => {
  const connect = await serve(t, 'shared');
  const [a, b] = await Promise.all([connect(), connect()]);
  await a.client.subscribeResource({ uri: 'test://a' });
  const texts = await Promise.all([a, b].map(({ client }, n) => callText(client, 'echo', { text: `${n}` })));
  t.deepEqual(texts, ['0', '1']);
  await callText(b.client, 'change', { kind: 'test://a' });
  await waitFor(() => a.notifications.length > 0);
  t.is(await callText(b.client, 'echo', { text: 'after' }), 'after');
  t.deepEqual(b.notifications, []);
});

test('a shared modern server that dies takes calls with it, but neither the session nor its subscriptions', async (t) => {
  const connect = await serve(t, 'shared');
  const { client, notifications } = await connect();
  await client.subscribeResource({ uri: 'test://a' });
  await t.throwsAsync(client.callTool({ name: 'exit' }));
  t.is(await callText(client, 'echo', { text: 'again' }), 'again');
  const has = (method: string) => notifications.some((notification) => notification.method === method);
  await waitFor(() => has('notifications/tools/list_changed') && has('notifications/resources/updated'));
  const before = notifications.length;
  await callText(client, 'change', { kind: 'test://a' });
  await waitFor(() => notifications.length > before);
  t.deepEqual(notifications.at(-1)?.params, { uri: 'test://a' });
});
