import { once } from 'node:events';
import { constants } from 'node:http2';
import { gzipSync } from 'node:zlib';
import { status } from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import { LAST_WORDS_MS } from '../../../src/downstream/grpc/connection.ts';
import {
  FIRST_STREAM_MS,
  IDLE_MS,
  MAX_CONNECTIONS,
  MAX_STREAMS_PER_CONNECTION,
  PING_MS,
} from '../../../src/downstream/grpc/listener.ts';
import { seriousLines } from '../../support/http-harness.ts';
import { call, initialize } from '../../support/legacy-clients.ts';
import { RawSocket } from '../../support/raw-socket.ts';
import { waitFor } from '../../support/wait-for.ts';
import { openGrpcBridge } from './grpc-bridge.ts';
import {
  END_HEADERS,
  FRAME_TYPES,
  lineOf,
  openCall,
  openConnection,
  openFrames,
  prefixed,
  SESSION_HEADERS,
  sessionHeaders,
} from './raw-call.ts';

type Bridge = Awaited<ReturnType<typeof openGrpcBridge>>;

/** An honest client is served all the same. */
async function isServed(t: ExecutionContext, { open }: Bridge): Promise<void> {
  const client = open();
  client.send(initialize());
  t.like(await client.nextMessage(), { id: 0, result: { serverInfo: { name: 'fake' } } });
  client.close();
}

const FAULTS: readonly (readonly [what: string, bytes: Buffer, code: number])[] = [
  ['a message of four gigabytes', prefixed(Buffer.from('x'), { length: 0xff_ff_ff_ff }), status.RESOURCE_EXHAUSTED],
  ['a compressed message', prefixed(gzipSync(Buffer.alloc(1 << 20)), { flag: 1 }), status.UNIMPLEMENTED],
  ['a length prefix with another flag', prefixed(Buffer.from('x'), { flag: 7 }), status.INTERNAL],
  ['garbage in place of a message', prefixed(Buffer.from([0x0f, 0xff])), status.INVALID_ARGUMENT],
];

for (const [what, bytes, code] of FAULTS) {
  test(`${what} ends the stream with status ${code}, and no other stream`, async (t) => {
    const bridge = await openGrpcBridge(t);
    const session = openConnection(t, bridge.port);
    const other = openCall(session);
    other.stream.write(lineOf(initialize()));
    await waitFor(() => bridge.sessions.size === 1);
    const { stream, ended } = openCall(session, { 'grpc-encoding': 'gzip' });
    stream.write(bytes);
    await waitFor(() => seriousLines(bridge).length > 0);
    stream.end();
    const { headers, trailers } = await ended;
    t.is(headers['grpc-accept-encoding'], 'identity');
    t.is(trailers['grpc-status'], String(code));
    t.false(other.stream.closed);
    t.is(bridge.sessions.size, 1);
    await isServed(t, bridge);
  });
}

test('a stream that ends within a message has status 3', async (t) => {
  const bridge = await openGrpcBridge(t);
  const { stream, ended } = openCall(openConnection(t, bridge.port));
  stream.end(lineOf(initialize()).subarray(0, 20));
  t.is((await ended).trailers['grpc-status'], String(status.INVALID_ARGUMENT));
});

test('a client that cancels its stream or is gone within a message has left, and nothing is said of the message', async (t) => {
  const bridge = await openGrpcBridge(t);
  const half = lineOf(call(1)).subarray(0, 20);
  for (const how of ['cancels', 'is gone'] as const) {
    const { socket, frame } = await openFrames(bridge.port);
    t.teardown(() => socket.destroy());
    socket.write(frame(FRAME_TYPES.headers, END_HEADERS, 1, sessionHeaders(bridge.port)));
    socket.write(frame(FRAME_TYPES.data, 0, 1, lineOf(initialize())));
    socket.write(frame(FRAME_TYPES.data, 0, 1, half));
    await waitFor(() => bridge.sessions.size === 1);
    if (how === 'is gone') socket.destroy();
    else socket.write(frame(FRAME_TYPES.rstStream, 0, 1, Buffer.from([0, 0, 0, constants.NGHTTP2_CANCEL])));
    await waitFor(() => bridge.sessions.size === 0);
  }
  t.deepEqual(seriousLines(bridge), []);
});

test('what is no gRPC is told so: another method, another content, another path, another timeout', async (t) => {
  const bridge = await openGrpcBridge(t);
  const session = openConnection(t, bridge.port);
  const answers = [
    openCall(session, { ':method': 'GET' }),
    openCall(session, { 'content-type': 'application/json' }),
    openCall(session, { 'content-type': 'application/grpc-web+proto' }),
    openCall(session, { ':path': '/mcp.transport.v1.Mcp/Other' }),
    openCall(session, { ':path': '/model_context_protocol.Mcp/ListTools' }),
    openCall(session, { 'grpc-timeout': 'soon' }),
  ];
  const ends = await Promise.all(answers.map(({ ended }) => ended));
  t.deepEqual(
    ends.map(({ headers }) => [headers[':status'], headers['grpc-status']]),
    [
      [405, undefined],
      [415, undefined],
      [415, undefined],
      [200, String(status.UNIMPLEMENTED)],
      [200, String(status.UNIMPLEMENTED)],
      [200, String(status.INVALID_ARGUMENT)],
    ],
  );
  t.is(bridge.server.connections.length, 0);
});

test('a client that sends on after it was refused is reset after a while, once it has its answer', async (t) => {
  const bridge = await openGrpcBridge(t);
  const stream = openConnection(t, bridge.port).request({ ...SESSION_HEADERS, ':path': '/mcp.transport.v1.Mcp/Other' });
  const closed = new Promise((resolve) => stream.on('close', () => resolve(stream.rstCode)));
  stream.write('x'.repeat(100_000));
  const [answer] = (await once(stream, 'response')) as [Record<string, unknown>];
  t.is(answer['grpc-status'], String(status.UNIMPLEMENTED));
  stream.resume();
  bridge.clock.advance(LAST_WORDS_MS);
  t.is(await closed, 0);
});

test('HTTP/1.1 on the port is refused, and so is anything else that is not HTTP/2', async (t) => {
  const bridge = await openGrpcBridge(t);
  for (const text of [
    `POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n${JSON.stringify(initialize())}`,
    '\x16\x03\x01\0\0',
  ]) {
    const socket = (await RawSocket.connect(bridge.port)).read();
    socket.write(`${text}${'\0'.repeat(64)}`);
    await waitFor(() => socket.isClosed);
  }
  t.is(bridge.server.connections.length, 0);
  await isServed(t, bridge);
});

test('a connection without a stream is closed: at once if it never had one, else after a while', async (t) => {
  const bridge = await openGrpcBridge(t);
  const silent = (await RawSocket.connect(bridge.port)).read();
  const idle = openConnection(t, bridge.port);
  await openCall(idle, { ':path': '/a/b' }).ended;
  bridge.clock.advance(FIRST_STREAM_MS);
  bridge.clock.advance(5000);
  await waitFor(() => silent.isClosed);
  t.false(idle.closed);
  bridge.clock.advance(IDLE_MS);
  await waitFor(() => idle.closed);
});

test('streams that are reset as soon as they are opened start no server, and end the connection', async (t) => {
  const bridge = await openGrpcBridge(t, { maxSessions: 10 });
  const { socket, frame, isClosed } = await openFrames(bridge.port);
  const headers = sessionHeaders(bridge.port);
  const cancel = Buffer.from([0, 0, 0, constants.NGHTTP2_CANCEL]);
  for (let stream = 1; stream < 20_000 && !isClosed(); stream += 2) {
    socket.write(
      Buffer.concat([
        frame(FRAME_TYPES.headers, END_HEADERS, stream, headers),
        frame(FRAME_TYPES.rstStream, 0, stream, cancel),
      ]),
    );
    if (stream % 500 === 1) await new Promise((resolve) => setImmediate(resolve));
  }
  // HTTP/2 takes no more streams of it from some point on, and without streams it is closed.
  const hasEnded = (): boolean => {
    bridge.clock.advance(5000);
    return isClosed();
  };
  await waitFor(hasEnded, { message: 'the connection to be closed' });
  t.is(bridge.sessions.size, 0);
  t.is(bridge.server.connections.length, 0);
  await isServed(t, bridge);
});

for (const [name, type, payload] of [
  ['SETTINGS', FRAME_TYPES.settings, 0],
  ['PING', FRAME_TYPES.ping, 8],
] as const) {
  test(`a flood of ${name} whose answers nobody reads ends the connection`, async (t) => {
    const bridge = await openGrpcBridge(t);
    const { socket, frame, isClosed } = await openFrames(bridge.port);
    socket.pause();
    const batch = Buffer.concat(Array.from({ length: 2000 }, () => frame(type, 0, 0, Buffer.alloc(payload))));
    for (let count = 0; count < 2000 && !socket.destroyed; count += 1) {
      if (!socket.write(batch)) await new Promise((resolve) => setImmediate(resolve));
      if (socket.writableLength > 1 << 20) break;
    }
    socket.resume();
    await waitFor(isClosed, { message: 'the connection to be closed' });
    await isServed(t, bridge);
  });
}

test('a connection has a limited number of streams; further ones are refused', async (t) => {
  const bridge = await openGrpcBridge(t, { maxSessions: 10_000 });
  const { socket, frame } = await openFrames(bridge.port);
  const headers = sessionHeaders(bridge.port);
  for (let index = 0; index < 3 * MAX_STREAMS_PER_CONNECTION; index += 1) {
    const stream = 2 * index + 1;
    socket.write(Buffer.concat([frame(FRAME_TYPES.headers, END_HEADERS, stream, headers)]));
    socket.write(frame(FRAME_TYPES.data, 0, stream, lineOf(initialize())));
  }
  await waitFor(() => bridge.sessions.size >= MAX_STREAMS_PER_CONNECTION);
  await isServed(t, bridge);
  t.true(bridge.sessions.size <= MAX_STREAMS_PER_CONNECTION + 1);
  socket.destroy();
  await waitFor(() => bridge.sessions.size === 0);
});

test('a port has a limited number of connections; further ones are closed at once', async (t) => {
  const refused: string[] = [];
  const bridge = await openGrpcBridge(t, { onRefused: (reason) => void refused.push(reason) });
  const sockets = await Promise.all(Array.from({ length: MAX_CONNECTIONS }, () => RawSocket.connect(bridge.port)));
  t.teardown(() => {
    for (const { socket } of sockets) socket.destroy();
  });
  const further = (await RawSocket.connect(bridge.port)).read();
  await waitFor(() => further.isClosed);
  t.deepEqual(refused, ['connections']);
  for (const { socket } of sockets) socket.destroy();
  await waitFor(async () => {
    const client = bridge.open();
    client.send(initialize());
    const outcome = await Promise.race([client.nextMessage(), client.ended]);
    client.close();
    return 'result' in outcome;
  });
});

test('a client that answers no pings is given up, and one that does is not', async (t) => {
  const bridge = await openGrpcBridge(t);
  const alive = bridge.open();
  alive.send(initialize());
  await alive.next();
  const { socket, frame, isClosed } = await openFrames(bridge.port);
  socket.write(frame(FRAME_TYPES.headers, END_HEADERS, 1, sessionHeaders(bridge.port)));
  socket.write(frame(FRAME_TYPES.data, 0, 1, lineOf(initialize())));
  await waitFor(() => bridge.sessions.size === 2);
  for (let waitedMs = 0; waitedMs < 4 * PING_MS; waitedMs += 5000) {
    bridge.clock.advance(5000);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await waitFor(isClosed);
  await waitFor(() => bridge.sessions.size === 1);
  alive.send({ jsonrpc: '2.0', id: 1, method: 'ping' });
  await bridge.server.connections[0]?.next('ping');
  t.false(alive.stream.destroyed);
});
