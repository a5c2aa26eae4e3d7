import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { FIRST_MESSAGE_MS, IDLE_MS } from '../../../src/downstream/byte-stream/endpoint.ts';
import { MAX_CONNECTIONS } from '../../../src/downstream/byte-stream/listener.ts';
import { BridgeError } from '../../../src/errors.ts';
import { STALL_MS } from '../../../src/http/reading-watch.ts';
import { call, initialize } from '../../support/legacy-clients.ts';
import { LineClient } from '../../support/line-client.ts';
import { waitFor } from '../../support/wait-for.ts';
import { modern } from '../stdio-endpoint.ts';
import { openStreamBridge } from './stream-bridge.ts';

const CHECK_MS = 5000;
const HANDSHAKE = { id: 0, result: { serverInfo: { name: 'fake' } } };
const DONE = { isDone: true };

test('a client that has ended its input still gets what it has asked for, and then the end', async (t) => {
  const { server, sessions, open } = await openStreamBridge(t);
  const client = await open();
  client.write(initialize());
  await client.next();
  client.write(call(1));
  client.end();
  const request = await server.latest.next('tools/call');
  server.latest.answer(request, { done: true });
  t.like(await client.nextMessage(), { id: 1, result: { done: true } });
  t.is(await client.ended, '');
  await client.gone;
  await waitFor(() => sessions.size === 0);
});

test('both eras are spoken on one connection, and one space of ids is kept', async (t) => {
  const { server, open } = await openStreamBridge(t);
  const client = await open();
  client.write(initialize());
  await client.next();
  client.write({ jsonrpc: '2.0', ...modern(1, 'tools/list') });
  await waitFor(() => server.connections.length === 2);
  const request = await server.latest.next('tools/list');
  client.write(call(1));
  t.like(await client.nextMessage(), { id: 1, error: { code: -32600 } });
  server.latest.answer(request, { tools: [] });
  t.like(await client.nextMessage(), { id: 1, result: { tools: [] } });
});

test('modern requests of two connections are of two callers: nothing of one is shown to the other', async (t) => {
  const { server, open } = await openStreamBridge(t);
  for (const client of [await open(), await open()]) client.write({ jsonrpc: '2.0', ...modern(1, 'tools/list') });
  await waitFor(() => server.connections.length === 2);
  const callers = new Set(server.connections.map(({ context }) => context?.principal));
  t.is(callers.size, 2);
});

test('what a web page has a browser send to a port closes the connection at once, whatever message follows', async (t) => {
  const { entries, server, sessions, open } = await openStreamBridge(t);
  const client = await open();
  const body = JSON.stringify(initialize());
  client.write(`POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${body.length + 1}\r\n\r\n${body}\n`);
  await client.gone;
  t.is(server.connections.length, 0);
  t.is(sessions.size, 0);
  const [warning] = entries.filter(({ level }) => level === 40);
  t.regex(warning?.msg ?? '', /not valid JSON.*closed.*web page/);
  t.is(warning?.code, 'ERR_WIRE_PARSE');
});

test('so does a line without end that is no JSON, once it is longer than a message may be', async (t) => {
  const { server, open } = await openStreamBridge(t, { maxMessageBytes: 1000 });
  const client = await open();
  client.write(`GET /${'a'.repeat(5000)}`);
  client.write(`\r\n${JSON.stringify(initialize())}\n`);
  await client.gone;
  t.is(server.connections.length, 0);
});

test('a port goes on after a message that is too large, or that is JSON and no message', async (t) => {
  const { open } = await openStreamBridge(t, { maxMessageBytes: 1000 });
  const client = await open();
  client.write({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { text: 'a'.repeat(2000) } });
  t.like(await client.nextMessage(), { id: 7, error: { code: -32600 } });
  client.write({ jsonrpc: '2.0', id: 8, method: 5 });
  t.like(await client.nextMessage(), { id: 8, error: { code: -32600 } });
  client.write(initialize());
  t.like(await client.nextMessage(), HANDSHAKE);
});

test('a connection that ends in the middle of a line takes its session and its calls along', async (t) => {
  const { server, sessions, open } = await openStreamBridge(t);
  const client = await open();
  client.write(initialize());
  await client.next();
  client.write(call(1));
  await server.latest.next('tools/call');
  client.write('{"jsonrpc":"2.0","id":2,"meth');
  await client.reset();
  await waitFor(() => sessions.size === 0);
  t.is(server.latest.closedFor?.code, 'ERR_SESSION_CLOSED');
});

test('whoever sends no message in time is told so, and let go', async (t) => {
  const { clock, open } = await openStreamBridge(t);
  const client = await open();
  // Half a message is none.
  client.write('{"jsonrpc"');
  await waitFor(() => clock.pendingTimers > 0);
  clock.advance(FIRST_MESSAGE_MS - 1);
  clock.advance(CHECK_MS);
  t.regex((await client.nextMessage()).error?.message ?? '', /No message was received within 10 s/);
  t.is(await client.ended, '');
});

test('a connection without a session that says nothing is let go, one with a session is not', async (t) => {
  const { clock, entries, open } = await openStreamBridge(t);
  const [idle, busy] = [await open(), await open()];
  busy.write(initialize());
  await busy.next();
  idle.write({ jsonrpc: '2.0', method: 'notifications/initialized' });
  await waitFor(() => entries.some(({ msg }) => msg === 'message dropped: no session is open'));
  clock.advance(IDLE_MS + 2 * CHECK_MS);
  t.regex((await idle.nextMessage()).error?.message ?? '', /without a session/);
  await idle.ended;
  clock.advance(10 * IDLE_MS);
  busy.write(call(1, 'anything'));
  t.false(busy.socket.readableEnded);
});

test('a client that reads nothing anymore is let go, and its server with it', async (t) => {
  const { clock, server, sessions, open } = await openStreamBridge(t);
  const client = await open();
  client.write(initialize());
  await client.next();
  client.socket.pause();
  const connection = server.latest;
  const line = { data: 'x'.repeat(64 * 1024) };
  // What the system keeps between the two is full when the server stays paused.
  let pausedLooks = 0;
  await waitFor(() => {
    pausedLooks = connection.isPaused ? pausedLooks + 1 : 0;
    if (!connection.isPaused) connection.notify('notifications/message', line);
    return pausedLooks > 20;
  });
  // One look sees what was written, the next that nothing of it was taken.
  for (let elapsedMs = 0; elapsedMs <= STALL_MS + 2 * CHECK_MS; elapsedMs += CHECK_MS) clock.advance(CHECK_MS);
  await waitFor(() => sessions.size === 0);
  t.is(server.latest.closedFor?.code, 'ERR_SESSION_CLOSED');
});

test('a flood of connections leaves those that are open alone, and is told why it is refused', async (t) => {
  const { entries, open } = await openStreamBridge(t);
  const clients = await Promise.all(Array.from({ length: MAX_CONNECTIONS }, () => open()));
  const [first] = clients;
  const late = await open();
  t.regex((await late.nextMessage()).error?.message ?? '', /512 connections .* the most allowed/);
  t.is(await late.ended, '');
  first?.write(initialize());
  t.like(await first?.nextMessage(), HANDSHAKE);
  t.is(entries.filter(({ msg }) => msg.startsWith('the limit of byte streams is reached')).length, 1);
  const [, second] = clients;
  second?.end();
  await second?.gone;
  const next = await open();
  next.write(initialize());
  t.like(await next.nextMessage(), HANDSHAKE);
});

test('a session over the limit is refused in the answer to initialize, and may be asked for again', async (t) => {
  const { open } = await openStreamBridge(t, { maxSessions: 1 });
  const [one, other] = [await open(), await open()];
  one.write(initialize());
  await one.next();
  other.write(initialize());
  t.regex((await other.nextMessage()).error?.message ?? '', /All 1 sessions are taken/);
  one.end();
  await one.ended;
  other.write(initialize());
  t.like(await other.nextMessage(), HANDSHAKE);
});

test('the connection ends with the server of its session, after what that leaves unanswered was said', async (t) => {
  const { server, open } = await openStreamBridge(t);
  const client = await open();
  client.write(initialize());
  await client.next();
  client.write(call(1));
  await server.latest.next('tools/call');
  server.latest.die(new BridgeError('ERR_UPSTREAM_EXITED', 'The server exited.'));
  t.like(await client.nextMessage(), { id: 1, error: { message: 'The server exited.' } });
  t.is(await client.ended, '');
});

test('a server that is replaced keeps a client until its calls are answered, and takes no other', async (t) => {
  const { clock, clients, server, open } = await openStreamBridge(t);
  const [busy, idle] = [await open(), await open()];
  for (const client of [busy, idle]) {
    client.write(initialize());
    await client.next();
  }
  const [connection] = server.connections;
  busy.write(call(1));
  const request = await connection?.next('tools/call');
  const retired = clients.retire(60_000, new BridgeError('ERR_SESSION_CLOSED', 'Connect again.'));
  await idle.ended;
  const late = await open();
  t.is((await late.nextMessage()).error?.message, 'Connect again.');
  if (request !== undefined) connection?.answer(request, DONE);
  t.like(await busy.nextMessage(), { id: 1, result: DONE });
  const ticking = setInterval(() => clock.advance(20), 5);
  await busy.ended;
  for (const client of [busy, idle, late]) client.end();
  await retired;
  clearInterval(ticking);
});

test('at the end of the bridge open calls are answered, and every connection ends', async (t) => {
  const { clients, server, listener, sessions, open } = await openStreamBridge(t);
  const client = await open();
  client.write(initialize());
  await client.next();
  client.write(call(1));
  await server.latest.next('tools/call');
  listener.stopAccepting();
  const reason = new BridgeError('ERR_SESSION_CLOSED', 'It ends.');
  sessions.close(reason);
  clients.close(reason);
  t.like(await client.nextMessage(), { id: 1, error: { message: 'It ends.' } });
  t.is(await client.ended, '');
  await t.throwsAsync(open());
});

if (process.platform !== 'win32') {
  test('a Unix socket is for who may use its file; noise on it is skipped, and the file is gone in the end', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'mcp.sock');
    const { listener, open } = await openStreamBridge(t, { address: { kind: 'socket', path, mode: 0o600 } });
    t.is(statSync(path).mode & 0o777, 0o600);
    const client = await open();
    client.write('a prompt of a shell $\n');
    client.write(initialize());
    t.like(await client.nextMessage(), HANDSHAKE);
    listener.close();
    await client.gone;
    t.throws(() => statSync(path), { code: 'ENOENT' });
  });
}

test('with a certificate a port speaks TLS, and a renewed one is used for the next connection', async (t) => {
  const read = (name: string) => readFileSync(fileURLToPath(new URL(`../../fixtures/tls/${name}`, import.meta.url)));
  const pair = { cert: read('server.pem').toString(), key: read('server-key.pem').toString() };
  let renewals = 0;
  const certificate = {
    pair,
    renewed: () => {
      renewals += 1;
      return undefined;
    },
  };
  const { port } = await openStreamBridge(t, { certificate });
  const client = await LineClient.connectTls({ port, ca: read('ca.pem'), servername: 'localhost' });
  t.teardown(() => client.socket.destroy());
  client.write(initialize());
  t.like(await client.nextMessage(), HANDSHAKE);
  client.end();
  t.is(await client.ended, '');
  t.is(renewals, 1);
  const plain = await LineClient.connect({ port });
  plain.write(initialize());
  await plain.gone;
});
