import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import type { StreamAddress } from '../../../src/config/server.ts';
import { CLOSE_GRACE_MS } from '../../../src/upstream/byte-stream/carrier.ts';
import type { ByteStreamConnectorOptions } from '../../../src/upstream/byte-stream/connector.ts';
import { requestFrame } from '../../../src/wire/write-message.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { createFakeDeps } from '../../support/fake-peers.ts';
import { ownPort } from '../../support/own-port.ts';
import { resetSocket } from '../../support/reset-socket.ts';
import { waitFor } from '../../support/wait-for.ts';
import { RecordingServerListener } from '../recording-server-listener.ts';
import { dialByteStream } from './dial.ts';

const tcp = (port: number): StreamAddress => ({ kind: 'tcp', host: '127.0.0.1', port, tls: 'off' });

async function listen(t: ExecutionContext, server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

/** A server that does this with each connection, and a link to it that has asked something. */
async function dialTo(
  t: ExecutionContext,
  serve: (socket: Socket) => void,
  options: Partial<ByteStreamConnectorOptions> = {},
) {
  const port = await listen(t, createServer({ allowHalfOpen: true }, serve));
  return dial(t, tcp(port), options);
}

function dial(t: ExecutionContext, address: StreamAddress, options: Partial<ByteStreamConnectorOptions> = {}) {
  const { dialer, entries } = dialByteStream(address, options);
  t.teardown(() => dialer.killNow());
  const listener = new RecordingServerListener();
  const link = dialer.connect();
  link.listener = listener;
  link.send(requestFrame(1, 'tools/list'));
  return { dialer, entries, listener, link };
}

test('where nothing listens, the error names address and cause, and the server counts as unproven', async (t) => {
  const port = await ownPort();
  const { dialer, listener } = dial(t, tcp(port));
  const error = await listener.whenClosed();
  t.is(error.code, 'ERR_UPSTREAM_CONNECT');
  t.is(
    error.message,
    `Cannot reach the server at tcp://127.0.0.1:${port}: nothing listens there. Check host and port, and that the server is running (ECONNREFUSED).`,
  );
  t.is(dialer.readiness().state, 'failing');
});

test('a server that could not be reached stays failed until it answers again, for which it is tried', async (t) => {
  const port = await ownPort();
  const { deps, entries } = createTestDeps();
  const clock = new FakeClock();
  const trialClient = { name: 'test', version: '1' };
  const { dialer, listener } = dial(t, tcp(port), { deps: { ...deps, clock }, trialClient });
  await listener.whenClosed();
  clock.advance(10_000);
  await waitFor(() => entries.filter(({ code }) => code === 'ERR_UPSTREAM_CONNECT').length === 2);
  t.is(dialer.readiness().state, 'failing');
  const said: string[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined).on('data', (chunk) => said.push(chunk.toString()));
  });
  server.listen(port, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  clock.advance(20_000);
  await waitFor(() => dialer.readiness().state === 'ready' && said.length > 0);
  t.regex(said.join(''), /"method":"initialize"/);
  t.true(entries.some(({ msg }) => /answers again, after 30 s/.test(msg)));
  await dialer.close();
});

test('a socket that does not exist is told by its path', async (t) => {
  const { listener } = dial(t, { kind: 'socket', path: '/nowhere/mcp.sock' });
  t.is(
    (await listener.whenClosed()).message,
    'Cannot reach the server at unix:///nowhere/mcp.sock: there is no such socket. Check the path, and that the server is running (ENOENT).',
  );
});

test('a connection that is not made in time is given up', async (t) => {
  const deps = createFakeDeps();
  // An address that is for documentation leads nowhere; where it is refused at once, that is told instead.
  const { listener } = dial(
    t,
    { kind: 'tcp', host: '192.0.2.1', port: 9, tls: 'off' },
    { deps, connectTimeoutMs: 500 },
  );
  deps.clock.advance(500);
  const { code, message } = await listener.whenClosed();
  t.is(code, 'ERR_UPSTREAM_TIMEOUT');
  t.regex(message, /tcp:\/\/192\.0\.2\.1:9 could not be connected to within 500 ms/);
});

test('a server that hangs up has answered or not, and the error says which', async (t) => {
  const early = await dialTo(t, (socket) => void socket.end());
  const { code, message } = await early.listener.whenClosed();
  t.is(code, 'ERR_UPSTREAM_CLOSED');
  t.regex(message, /^The server at tcp:\/\/127\.0\.0\.1:\d+ closed the connection before it answered anything\.$/);
  const late = await dialTo(t, (socket) => void socket.end('{"jsonrpc":"2.0","id":1,"result":{}}\n'));
  t.regex((await late.listener.whenClosed()).message, /closed the connection\.$/);
  t.is(late.listener.frames.length, 1);
});

test('a connection that is reset in the middle of a message is told as broken, and the half message to nobody', async (t) => {
  const { listener } = await dialTo(t, (socket) => {
    socket.write('{"jsonrpc":"2.0","id":1,"resu', () => setImmediate(() => void resetSocket(socket)));
  });
  const { code, message } = await listener.whenClosed();
  t.is(code, 'ERR_UPSTREAM_CLOSED');
  // Systems differ in whether the end or the reset is seen.
  t.regex(
    message,
    /^The (?:connection to the )?server at tcp:\S+ (?:broke|closed the connection) before it answered anything(?: \(E[A-Z]+\))?\.$/,
  );
  t.is(listener.frames.length, 0);
});

test('a server that speaks HTTP is recognized by what it says', async (t) => {
  const { listener, entries } = await dialTo(t, (socket) =>
    socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')),
  );
  const { message } = await listener.whenClosed();
  t.regex(message, /What it said was not MCP: HTTP\/1\.1 400 Bad Request \| Connection: close\. It speaks HTTP/);
  t.is(entries.filter(({ msg }) => msg.startsWith('the server sends something that is not MCP')).length, 1);
});

test('noise between messages is skipped, and a message that is too large fails its call only', async (t) => {
  const { listener } = await dialTo(
    t,
    (socket) => {
      const big = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { text: 'x'.repeat(3000) } });
      socket.write(`welcome!\r\n{"broken\n${big}\n{"jsonrpc":"2.0","id":2,"result":{}}\n`);
    },
    { maxMessageBytes: 1000 },
  );
  await listener.answerTo(2);
  t.deepEqual(
    listener.faults.map(({ id, error }) => [id, error.code]),
    [[1, 'ERR_UPSTREAM_TOO_LARGE']],
  );
  t.is(listener.closings.length, 0);
});

test('a server that takes nothing makes the link full, and is heard again when it does', async (t) => {
  let accepted: Socket | undefined;
  const { link, listener } = await dialTo(t, (socket) => {
    accepted = socket.pause();
  });
  const line = requestFrame(2, 'tools/call', { text: 'x'.repeat(256 * 1024) });
  let fulls = 0;
  await waitFor(() => {
    fulls = link.send(line) ? 0 : fulls + 1;
    return fulls > 50;
  });
  const before = listener.drains;
  accepted?.resume();
  await waitFor(() => listener.drains > before);
  t.is(listener.closings.length, 0);
});

test('what was sent last still leaves when the link is closed, and a peer that keeps its half open is cut', async (t) => {
  const deps = createFakeDeps();
  let received = '';
  let isEnded = false;
  let isClosed = false;
  const { link, dialer, listener } = await dialTo(
    t,
    (socket) => {
      socket.on('data', (chunk) => {
        received += chunk.toString();
      });
      socket.on('end', () => {
        isEnded = true;
      });
      socket.on('close', () => {
        isClosed = true;
      });
    },
    { deps },
  );
  await waitFor(() => received.includes('tools/list'));
  link.send(requestFrame(2, 'ping'));
  const closed = dialer.close();
  await waitFor(() => isEnded);
  t.true(received.includes('"ping"'));
  t.false(isClosed);
  deps.clock.advance(CLOSE_GRACE_MS);
  await closed;
  t.is(listener.closings.length, 0);
  t.throws(() => dialer.connect(), { code: 'ERR_SESSION_CLOSED' });
});

const read = (name: string) => readFileSync(fileURLToPath(new URL(`../../fixtures/tls/${name}`, import.meta.url)));
const fixture = (name: string) => fileURLToPath(new URL(`../../fixtures/tls/${name}`, import.meta.url));

test('over TLS a certificate of a trusted authority is wanted', async (t) => {
  const pair = { cert: read('server.pem'), key: read('server-key.pem') };
  const port = await listen(
    t,
    createTlsServer(pair, (socket) => void socket.write('{"jsonrpc":"2.0","id":1,"result":{}}\n')),
  );
  const address: StreamAddress = { kind: 'tcp', host: 'localhost', port, tls: 'on' };
  const tls = { caFile: fixture('ca.pem'), certFile: undefined, keyFile: undefined };
  const trusted = dial(t, { ...address, host: '127.0.0.1' }, { tls });
  t.like(await trusted.listener.answerTo(1), { id: 1 });
  const untrusted = dial(t, { ...address, host: '127.0.0.1' });
  t.regex(
    (await untrusted.listener.whenClosed()).message,
    /^Cannot reach the server at tls:\/\/127\.0\.0\.1:\d+: its certificate .* --ca/,
  );
  const plain = await listen(
    t,
    createServer((socket) => void socket.end('hello\n')),
  );
  const wrong = dial(t, { ...address, host: '127.0.0.1', port: plain }, { tls });
  t.regex((await wrong.listener.whenClosed()).message, /it does not speak TLS on this port\. .*tcp:\/\//);
});
