import test, { type ExecutionContext } from 'ava';
import { KEEP_ALIVE_MS } from '../../src/downstream/http/event-stream-writer.ts';
import { SOCKET_LIMITS } from '../../src/downstream/listener/http-server.ts';
import { BODIES_AT_A_TIME, FREE_BODY_BYTES } from '../../src/http/server/read-body.ts';
import { callHttp } from '../support/http-call.ts';
import {
  fixtureCertificate,
  type HttpHarness,
  type HttpHarnessOptions,
  seriousLines,
  startHttpHarness,
} from '../support/http-harness.ts';
import { initialize, openInitializedSse, POST_HEADERS } from '../support/legacy-clients.ts';
import { RawSocket } from '../support/raw-socket.ts';
import { waitFor } from '../support/wait-for.ts';

/** Real time, for Node itself looks after these; short, so that the tests are. */
const SHORT = { ...SOCKET_LIMITS, headersTimeoutMs: 1000, requestTimeoutMs: 2000, checkIntervalMs: 100 };
/** Only the limit of heads is short. */
const SHORT_HEADS = { ...SHORT, requestTimeoutMs: 60_000 };
const HEAD = 'POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n';

async function connect(t: ExecutionContext, { port }: HttpHarness): Promise<RawSocket> {
  const socket = await RawSocket.connect(port);
  t.teardown(() => socket.destroy());
  return socket.read();
}

/** A byte now and then, as a client does that wants to be taken for a slow one. */
function trickle(t: ExecutionContext, socket: RawSocket, text: string): void {
  const timer = setInterval(() => socket.isClosed || socket.write(text), 40);
  t.teardown(() => clearInterval(timer));
}

async function isServed({ port }: HttpHarness): Promise<boolean> {
  const body = JSON.stringify(initialize());
  return (await callHttp({ port, method: 'POST', path: '/mcp', headers: POST_HEADERS, body })).status === 200;
}

/** On a busy machine a short limit cuts off clients that mean well, too: they may try again. */
async function servesAnother(harness: HttpHarness): Promise<void> {
  await waitFor(() => isServed(harness).catch(() => false), { message: 'another client to be served' });
}

test('a head that comes a byte at a time is cut off with 408, and others are served meanwhile', async (t) => {
  const harness = await startHttpHarness(t, { socketLimits: SHORT_HEADS });
  const cutOff = async (): Promise<string> => {
    const socket = await connect(t, harness);
    socket.write(`${HEAD}X-Slow: `);
    trickle(t, socket, 'x');
    await servesAnother(harness);
    return socket.all();
  };
  // A byte that comes as the connection is closed resets it, and the answer may be lost with it.
  const answer = await waitFor(async () => (await cutOff()) || undefined, { message: 'an answer' });
  t.regex(answer, /^HTTP\/1\.1 408 /);
  t.deepEqual(seriousLines(harness), []);
});

test('a body that comes a byte at a time is cut off, and others are served meanwhile', async (t) => {
  const harness = await startHttpHarness(t, { socketLimits: SHORT });
  const socket = await connect(t, harness);
  socket.write(
    `${HEAD}Content-Type: application/json\r\nAccept: ${POST_HEADERS.Accept}\r\nContent-Length: 100000\r\n\r\n`,
  );
  trickle(t, socket, ' ');
  await servesAnother(harness);
  await socket.all();
  t.is(harness.sessions.size, 1, 'that of the other client');
  t.deepEqual(seriousLines(harness), []);
});

test('a connection that never says anything is closed', async (t) => {
  const socket = await connect(t, await startHttpHarness(t, { socketLimits: SHORT_HEADS }));
  await socket.all();
  t.true(socket.isClosed);
});

test('a connection that never says anything is closed before its TLS is set up, too', async (t) => {
  const certificate = fixtureCertificate();
  const socket = await connect(t, await startHttpHarness(t, { socketLimits: SHORT_HEADS, certificate }));
  await socket.all();
  t.true(socket.isClosed);
});

test('heads get ten seconds, requests five minutes, and both are looked for often enough', (t) => {
  t.deepEqual(SOCKET_LIMITS, {
    maxConnections: 8192,
    maxHeaderBytes: 16_384,
    headersTimeoutMs: 10_000,
    requestTimeoutMs: 300_000,
    checkIntervalMs: 5000,
  });
});

test('an open stream outlives the time limits of requests', async (t) => {
  const harness = await startHttpHarness(t, { socketLimits: SHORT });
  const { stream } = await waitFor(() => openInitializedSse(harness).catch(() => undefined));
  const socket = await connect(t, harness);
  socket.write(`${HEAD}X-Slow: `);
  await socket.all();
  harness.server.latest.notify('notifications/x', { late: true });
  t.like(await stream.message(), { params: { late: true } });
});

test('headers of more than 16 KiB together are answered 431, whatever else the connection would bring', async (t) => {
  const harness = await startHttpHarness(t);
  const socket = await connect(t, harness);
  socket.write(`${HEAD}X-Large: ${'x'.repeat(SOCKET_LIMITS.maxHeaderBytes)}\r\n\r\n`);
  t.regex(await socket.all(), /^HTTP\/1\.1 431 /);
  t.true(await isServed(harness));
});

test('connections beyond the most there may be are closed at once, and the log says so once', async (t) => {
  const harness = await startHttpHarness(t, { socketLimits: { ...SOCKET_LIMITS, maxConnections: 3 } });
  const open = await Promise.all([1, 2, 3].map(() => connect(t, harness)));
  const flood = await Promise.all(Array.from({ length: 20 }, () => connect(t, harness)));
  await waitFor(() => flood.every(({ isClosed }) => isClosed), { message: 'the end of the flood' });
  t.is(open.filter(({ isClosed }) => isClosed).length, 0);
  for (const socket of open) socket.destroy();
  await servesAnother(harness);
  t.is(seriousLines(harness).length, 1);
  t.regex(String(seriousLines(harness)), /connection limit \(\d+\) reached; refusing new ones/);
});

test('a peer that is gone without a word is found out by what is sent to keep its stream alive', async (t) => {
  const harness = await startHttpHarness(t);
  const socket = await connect(t, harness);
  socket.write('GET /sse HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n');
  await socket.until(/event: endpoint/);
  t.is(harness.sessions.size, 1);
  // What its machine answers to a packet of a connection it does not know (anymore).
  socket.socket.on('data', (chunk) => String(chunk).includes(': keep-alive') && socket.socket.resetAndDestroy());
  harness.clock.advance(KEEP_ALIVE_MS + 1000);
  await waitFor(() => harness.sessions.size === 0, { message: 'the end of the session' });
  t.not(harness.server.latest.closedFor, undefined);
});

interface Flood {
  readonly harness: HttpHarness;
  readonly sockets: readonly RawSocket[];
}

const MESSAGE_BYTES = 1024 * 1024;

/** Clients that send all of a large message but its last byte. */
async function withhold(t: ExecutionContext, count: number, options: HttpHarnessOptions = {}): Promise<Flood> {
  const harness = await startHttpHarness(t, { maxMessageBytes: MESSAGE_BYTES, ...options });
  const sockets = await Promise.all(Array.from({ length: count }, () => connect(t, harness)));
  for (const socket of sockets) {
    const type = `Content-Type: application/json\r\nAccept: ${POST_HEADERS.Accept}\r\n`;
    socket.write(`${HEAD}${type}Content-Length: ${MESSAGE_BYTES}\r\n\r\n${' '.repeat(MESSAGE_BYTES - 1)}`);
  }
  return { harness, sockets };
}

test('clients that withhold the end of large messages hold a bounded number of bytes; others are served', async (t) => {
  const count = 4 * BODIES_AT_A_TIME;
  const { harness, sockets } = await withhold(t, count);
  const refused = () => sockets.filter(({ received }) => received.startsWith('HTTP/1.1 503 '));
  await waitFor(() => refused().length >= count - BODIES_AT_A_TIME - 1, {
    message: () => `${refused().length} refusals`,
  });
  t.regex((await refused()[0]?.until(/ERR_SESSION_BUSY/)) ?? '', /Retry-After: 1\r\n/);
  t.true(await isServed(harness), 'small messages get in');
  t.true(FREE_BODY_BYTES > 1024);
  for (const socket of sockets) socket.destroy();
  const large = `${JSON.stringify(initialize())}${' '.repeat(MESSAGE_BYTES / 2)}`;
  const post = () => callHttp({ port: harness.port, method: 'POST', path: '/mcp', headers: POST_HEADERS, body: large });
  await waitFor(async () => (await post()).status === 200, { message: 'capacity for a large message' });
  t.pass();
});
