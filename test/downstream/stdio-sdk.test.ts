/** Clients made with the official SDK v2 on the pipes, before real servers of the SDK. */

import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { Client, type Transport } from '@modelcontextprotocol/client';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import test, { type ExecutionContext } from 'ava';
import { StdioEndpoint } from '../../src/downstream/stdio/endpoint.ts';
import { createModernToLegacyDialer } from '../../src/eras/modern-to-legacy/dialer.ts';
import { BridgeError } from '../../src/errors.ts';
import { forEveryCaller } from '../../src/relay/dialer-adapters.ts';
import type { CallDialer, SessionDialer } from '../../src/relay/ports.ts';
import { SessionRegistry } from '../../src/relay/sessions/session-registry.ts';
import { serveModern } from '../fixtures/modern-server/http.ts';
import { createTestDeps } from '../process/collected-log.ts';
import { createCalls } from '../support/calls.ts';
import { asUpstream, dialScript } from '../support/dialers.ts';
import { waitFor } from '../support/wait-for.ts';
import { dialStateless } from '../upstream/remote-dialers.ts';

type AnyDialer = CallDialer | SessionDialer;

const ENDED = new BridgeError('ERR_SESSION_CLOSED', 'The client ended its input.');

function dialStdio(path: string): SessionDialer {
  return dialScript(fileURLToPath(new URL(path, import.meta.url)), { deps: createTestDeps().deps });
}

/** A process of a modern server for each connection. */
const dialModern = (): SessionDialer => dialStdio('../fixtures/modern-server/stdio.js');
/** The same where the server speaks both eras. */
const dialBothEras = (): SessionDialer => dialStdio('../fixtures/servers/both-eras.js');

const SERVERS: Readonly<Record<string, (t: ExecutionContext) => AnyDialer | Promise<AnyDialer>>> = {
  'a modern server on stdio': dialModern,
  'a modern server over HTTP': async (t) => {
    const server = await serveModern();
    t.teardown(() => server.close());
    return dialStateless(server.url);
  },
  'a legacy server, translated': () =>
    createModernToLegacyDialer({
      dialer: dialBothEras(),
      deps: createTestDeps().deps,
      handshakeTimeoutMs: 10_000,
      sharing: 'by-name',
      clientInfo: { name: 'bridge', version: '0' },
    }),
};

/** A endpoint before a server, and the client's ends of its pipes. */
function openEndpoint(t: ExecutionContext, dialer: AnyDialer) {
  const { deps } = createTestDeps();
  const limits = {
    maxSessions: 2,
    sessionTimeoutMs: 60_000,
    calls: createCalls(deps.clock),
    requestTimeoutMs: 0,
  };
  const sessions = new SessionRegistry({ dialers: forEveryCaller(asUpstream(dialer)), deps, ...limits });
  const [input, output] = [new PassThrough(), new PassThrough()];
  const endpoint = new StdioEndpoint({
    input,
    output,
    sessions,
    deps,
    maxMessageBytes: 16 * 1024 * 1024,
    maxJsonDepth: 1000,
  });
  t.teardown(async () => {
    sessions.close(ENDED);
    await dialer.close();
  });
  return { endpoint, sessions, input, output };
}

async function connect(t: ExecutionContext, dialer: AnyDialer, mode: 'auto' | { pin: string } = { pin: '2026-07-28' }) {
  const { endpoint, sessions, input, output } = openEndpoint(t, dialer);
  const client = new Client(
    { name: 'sdk-v2', version: '1' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } },
  );
  const chunks: Buffer[] = [];
  output.on('data', (chunk: Buffer) => chunks.push(chunk));
  const heard = (): readonly string[] => Buffer.concat(chunks).toString().trim().split('\n');
  const faults: Error[] = [];
  client.onerror = (error) => faults.push(error);
  // A pipe is the same from either end.
  await client.connect(new StdioServerTransport(output, input) as Transport);
  t.teardown(() => client.close());
  const call = async (name: string, args: Record<string, unknown> = {}): Promise<unknown> => {
    const { content } = await client.callTool({ name, arguments: args });
    return (content[0] as { text?: unknown } | undefined)?.text;
  };
  return { client, call, endpoint, sessions, faults, heard };
}

for (const mode of ['auto', { pin: '2026-07-28' }] as const) {
  const title = typeof mode === 'string' ? 'that finds out what is spoken' : 'that speaks nothing else';
  test(`a modern client ${title} calls tools of a modern server, and is asked for input by its results`, async (t) => {
    const { client, call, faults } = await connect(t, dialModern(), mode);
    t.is(client.getProtocolEra(), 'modern');
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Bo' } }));
    t.is(await call('echo', { text: 'grüße 🙂' }), 'grüße 🙂');
    t.is(await call('ask'), 'hello Bo');
    t.deepEqual(faults, []);
  });
}

for (const [name, dial] of Object.entries(SERVERS)) {
  test(`${name} serves calls beside a subscription, which ends gracefully`, async (t) => {
    const { client, call, sessions, faults } = await connect(t, await dial(t));
    t.is(await call('echo', { text: 'grüße 🙂' }), 'grüße 🙂');
    const subscription = await client.listen({ toolsListChanged: true });
    t.is(await call('echo', { text: 'beside it' }), 'beside it');
    const drained = sessions.drain(10_000);
    t.is(await subscription.closed, 'graceful');
    await drained;
    t.deepEqual(faults, []);
  });
}

test('progress arrives, and a withdrawn call is withdrawn at the server', async (t) => {
  const { client, call, heard } = await connect(t, dialModern());
  await client.callTool({ name: 'work', arguments: { steps: 3, name: 'w' } }, { onprogress: () => {} });
  // Off the wire: the SDK drops what comes in one chunk with its answer.
  const progress = heard()
    .map((line) => JSON.parse(line))
    .filter(({ method }) => method === 'notifications/progress');
  t.deepEqual(
    progress.map(({ params }) => params.progress),
    [1, 2, 3],
  );
  const withdrawal = new AbortController();
  const waiting = client.callTool({ name: 'wait', arguments: { name: 'me' } }, { signal: withdrawal.signal });
  await call('echo', { text: 'after it' });
  withdrawal.abort();
  await t.throwsAsync(waiting);
  await waitFor(async () => (await call('withdrawn')) === 'me');
});

test('subscriptions bring changes, and end gracefully when the bridge shuts down', async (t) => {
  const { client, call, sessions } = await connect(t, dialModern());
  let changes = 0;
  client.setNotificationHandler('notifications/tools/list_changed', () => {
    changes += 1;
  });
  const subscription = await client.listen({ toolsListChanged: true });
  await call('change', { kind: 'tools' });
  await waitFor(() => changes === 1);
  const drained = sessions.drain(10_000);
  t.is(await subscription.closed, 'graceful');
  await drained;
});

test('a server that exits fails its calls and subscriptions; the next call is served by another process', async (t) => {
  const { client, call, endpoint } = await connect(t, dialModern());
  const subscription = await client.listen({ toolsListChanged: true });
  await t.throwsAsync(call('exit'), { message: /exited/ });
  t.is(await subscription.closed, 'remote');
  t.is(await waitFor(() => call('echo', { text: 'again' }).catch(() => undefined)), 'again');
  t.is(await Promise.race([endpoint.ended, 'goes on']), 'goes on');
});

test('a server of both eras answers discover and initialize that come in one breath', async (t) => {
  const { input, output } = openEndpoint(t, dialBothEras());
  let heard = '';
  output.on('data', (chunk: Buffer) => {
    heard += chunk;
  });
  const clientInfo = { name: 'both', version: '1' };
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const messages = [
    { jsonrpc: '2.0', id: 'probe', method: 'server/discover', params: { _meta } },
    {
      jsonrpc: '2.0',
      id: 'hello',
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo },
    },
  ];
  input.write(messages.map((message) => `${JSON.stringify(message)}\n`).join(''));
  await waitFor(() => heard.split('\n').length === 3);
  const answers = heard
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const find = (id: string) => answers.find((answer) => answer.id === id)?.result;
  t.deepEqual(find('probe')?.supportedVersions, ['2026-07-28']);
  t.is(find('hello')?.protocolVersion, '2025-11-25');
});
