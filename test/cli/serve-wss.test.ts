/** WebSocket over TLS by the built program, with clients, servers and hubs of others; and hubs of a file that changes. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import test, { type ExecutionContext } from 'ava';
import { WebSocket } from 'ws';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { EVERYTHING } from '../support/config-bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { call, initialize } from '../support/legacy-clients.ts';
import { waitFor } from '../support/wait-for.ts';
import { startWebSocketServer, transportOver, type WebSocketServerOptions } from '../support/websocket-server.ts';

const tlsFile = (name: string): string => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url));
const SERVER_TLS = { cert: readFileSync(tlsFile('server.pem')), key: readFileSync(tlsFile('server-key.pem')) };
const CA = readFileSync(tlsFile('ca.pem'));
/** A server that asks for a certificate of the same authority. */
const MUTUAL_TLS = { ...SERVER_TLS, ca: CA, requestCert: true, rejectUnauthorized: true };

const EVERYTHING_COMMAND = ['--', process.execPath, EVERYTHING];

async function start(t: ExecutionContext, ...args: readonly string[]): Promise<Bridge> {
  const bridge = await startBridge(args);
  t.teardown(() => bridge.stop());
  return bridge;
}

async function startServer(t: ExecutionContext, options: WebSocketServerOptions) {
  const server = await startWebSocketServer(options);
  t.teardown(() => server.stop());
  return server;
}

async function openSession(t: ExecutionContext, url: URL) {
  const socket = new WebSocket(url, 'mcp', { ca: CA });
  t.teardown(() => socket.terminate());
  await once(socket, 'open');
  const answers: { readonly id?: unknown }[] = [];
  socket.on('message', (data) => answers.push(JSON.parse(String(data))));
  // biome-ignore lint/suspicious/noExplicitAny: tests look into results of all shapes
  const ask = (message: object & { readonly id?: unknown }): Promise<any> => {
    socket.send(JSON.stringify(message));
    return waitFor(() => answers.find(({ id }) => id === message.id), { message: 'the answer' });
  };
  const opened = await ask(initialize());
  socket.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  return { opened, ask };
}

test('reaches a wss server with --ca and a client certificate', async (t) => {
  const server = await startServer(t, { tls: MUTUAL_TLS });
  const certificate = ['--client-cert', tlsFile('client.pem'), '--client-key', tlsFile('client-key.pem')];
  const bridge = await start(t, '--ca', tlsFile('ca.pem'), ...certificate, server.url.href);
  const { opened, ask } = await openSession(t, new URL('/ws', `ws://${bridge.url.host}`));
  t.is(opened.result.serverInfo.name, 'contract-server');
  t.truthy((await ask(call(1, 'count'))).result);
});

test('does not reach one whose authority it does not know, or that wants a certificate, and says so', async (t) => {
  const server = await startServer(t, { tls: MUTUAL_TLS });
  for (const [options, expected] of [
    [[], /not trusted here.*--ca/],
    [['--ca', tlsFile('ca.pem')], /ERR_UPSTREAM/],
  ] as const) {
    const bridge = await start(t, ...options, server.url.href);
    const { opened } = await openSession(t, new URL('/ws', `ws://${bridge.url.host}`));
    t.regex(JSON.stringify(opened.error), expected);
  }
  t.is(server.asked.length, 0);
});

test('serves wss where it has a certificate', async (t) => {
  const tls = ['--tls-cert', tlsFile('server.pem'), '--tls-key', tlsFile('server-key.pem')];
  const bridge = await start(t, ...tls, ...EVERYTHING_COMMAND);
  t.true(JSON.stringify(bridge.logs).includes(`wss://${bridge.url.host}/ws`));
  const { opened, ask } = await openSession(t, new URL('/ws', `wss://${bridge.url.host}`));
  t.truthy(opened.result);
  t.truthy((await ask(call(1, 'echo'))).id);
});

test('--dial calls a hub over wss, and none whose authority it does not know', async (t) => {
  const clients: Client[] = [];
  let served = 0;
  const hub = await startServer(t, {
    tls: SERVER_TLS,
    connected(socket) {
      const client = new Client({ name: 'hub', version: '1.0.0' });
      clients.push(client);
      void client.connect(transportOver(socket) as never).then(() => {
        served += 1;
      });
    },
  });
  const other = await start(t, '--dial', hub.url.href, ...EVERYTHING_COMMAND);
  await waitFor(
    () => other.logs.some(({ msg = '' }) => /The certificate of the hub .* is not trusted here.*--dial-ca/.test(msg)),
    {
      message: () => `the certificate to be refused; it said ${JSON.stringify(other.logs)}`,
    },
  );
  t.is(hub.asked.length, 0);
  await start(t, '--dial', hub.url.href, '--dial-ca', tlsFile('ca.pem'), ...EVERYTHING_COMMAND);
  await waitFor(() => served === 1, { message: 'the hub to be called' });
  t.true(((await clients[0]?.listTools())?.tools.length ?? 0) > 0);
});

test('hubs of a file come and go with it', async (t) => {
  const [before, after] = await Promise.all([startServer(t, {}), startServer(t, {})]);
  const folder = await createConfigFolder(t);
  const fileWith = (hub: URL) => ({
    mcpServers: { everything: { command: process.execPath, args: [EVERYTHING], portage: { dial: [hub.href] } } },
  });
  const file = await folder.write('mcp.json', fileWith(before.url));
  await start(t, '--config', file);
  await waitFor(() => before.open.size === 1, { message: 'the hub of the file to be called' });
  await folder.write('mcp.json', fileWith(after.url));
  await waitFor(() => after.open.size === 1 && before.open.size === 0, {
    message: () => `the other hub alone to be called; there are ${before.open.size} and ${after.open.size} connections`,
  });
  t.is(before.ends.length, 1);
});
