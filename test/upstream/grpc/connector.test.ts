import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { constants, createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { ServerCredentials, status } from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import type { ErrorCode } from '../../../src/errors.ts';
import { CLOSE_GRACE_MS } from '../../../src/upstream/grpc/carrier.ts';
import { requestFrame } from '../../../src/wire/write-message.ts';
import { lineOf, prefixed } from '../../downstream/grpc/raw-call.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type GrpcServerOptions, startGrpcServer } from '../../support/grpc-peers.ts';
import { ownPort } from '../../support/own-port.ts';
import { waitFor } from '../../support/wait-for.ts';
import { RecordingServerListener } from '../recording-server-listener.ts';
import { dialGrpc } from './dial.ts';

type DialOptions = NonNullable<Parameters<typeof dialGrpc>[1]>;

const file = (name: string): string => fileURLToPath(new URL(`../../fixtures/tls/${name}.pem`, import.meta.url));
const pem = (name: string): Buffer => readFileSync(file(name));

/** A link that has asked something. */
function dial(t: ExecutionContext, port: number, options: DialOptions = {}) {
  const { dialer, entries } = dialGrpc(port, options);
  t.teardown(() => dialer.killNow());
  const listener = new RecordingServerListener();
  const link = dialer.connect();
  link.listener = listener;
  link.send(requestFrame(1, 'tools/list'));
  return { dialer, entries, listener, link };
}

async function serve(t: ExecutionContext, options: GrpcServerOptions) {
  const server = await startGrpcServer(options);
  t.teardown(() => server.stop());
  return server;
}

async function listen(t: ExecutionContext, server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): void => void sockets.add(socket.on('error', () => undefined));
  server.on('connection', keep).on('secureConnection', keep);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

/** A server of HTTP/2 on whose stream a test decides everything. */
function serveRaw(t: ExecutionContext, answer: (stream: ServerHttp2Stream) => void): Promise<number> {
  const server = createHttp2Server();
  server.on('stream', (stream) => {
    stream.on('error', () => undefined);
    answer(stream);
  });
  server.on('sessionError', () => undefined);
  return listen(t, server);
}

const GRPC = { ':status': 200, 'content-type': 'application/grpc' } as const;

test('where nothing listens, the error names address and cause, and the server counts as unproven', async (t) => {
  const port = await ownPort();
  const { dialer, listener } = dial(t, port);
  const error = await listener.whenClosed();
  t.is(error.code, 'ERR_UPSTREAM_CONNECT');
  t.is(
    error.message,
    `Cannot reach the server at grpc://127.0.0.1:${port}: nothing listens there. Check host and port, and that the server is running (ECONNREFUSED).`,
  );
  t.is(dialer.readiness().state, 'failing');
});

test('a server of HTTP/1.1 is told to be one, with TLS and without', async (t) => {
  const plain = await listen(
    t,
    createHttpServer((_request, response) => response.end()),
  );
  const { code, message } = await dial(t, plain).listener.whenClosed();
  t.is(code, 'ERR_UPSTREAM_CONNECT');
  t.regex(message, /does not speak HTTP\/2, which gRPC needs/);
  const encrypted = await listen(t, createHttpsServer({ cert: pem('server'), key: pem('server-key') }));
  const remote = { tls: { caFile: file('ca'), certFile: undefined, keyFile: undefined } };
  const secure = await dial(t, encrypted, { tls: 'on', remote }).listener.whenClosed();
  t.is(secure.code, 'ERR_UPSTREAM_CONNECT');
  t.regex(secure.message, /HTTP\/2/);
});

test('a port that says nothing is given up in time', async (t) => {
  const port = await listen(
    t,
    createServer(() => undefined),
  );
  const { deps } = createTestDeps();
  const clock = new FakeClock();
  const { listener } = dial(t, port, { deps: { ...deps, clock }, connectTimeoutMs: 500 });
  clock.advance(500);
  const { code, message, data } = await listener.whenClosed();
  t.is(code, 'ERR_UPSTREAM_TIMEOUT');
  t.is(data?.phase, 'connect');
  t.regex(message, /could not be connected to within 500 ms/);
});

test('the server behind the bridge itself is recognized', async (t) => {
  const server = await serve(t, {});
  const bound = () => [{ kind: 'tcp', host: '127.0.0.1', port: server.port }] as const;
  t.is((await dial(t, server.port, { bound }).listener.whenClosed()).code, 'ERR_UPSTREAM_LOOP');
});

for (const [code, expected, exit, words] of [
  [status.UNAUTHENTICATED, 'ERR_UPSTREAM_AUTH', 77, /requires authorization \(16 UNAUTHENTICATED\)\. Give it a token/],
  [
    status.PERMISSION_DENIED,
    'ERR_UPSTREAM_AUTH',
    77,
    /does not allow this \(7 PERMISSION_DENIED\)\. It says: "because"\./,
  ],
  [status.UNIMPLEMENTED, 'ERR_UPSTREAM_CONNECT', 69, /mcp\.transport\.v1\.Mcp.*model_context_protocol\.Mcp is another/],
  [status.RESOURCE_EXHAUSTED, 'ERR_UPSTREAM_CLOSED', 70, /ended the session before.*8 RESOURCE_EXHAUSTED.*"because"/],
  [status.UNAVAILABLE, 'ERR_UPSTREAM_CLOSED', 70, /14 UNAVAILABLE/],
] as const) {
  test(`status ${code} is told as ${expected}`, async (t) => {
    const server = await serve(t, {
      session: (stream) => void stream.emit('error', Object.assign(new Error(), { code, details: 'because' })),
    });
    const error = await dial(t, server.port).listener.whenClosed();
    t.is(error.code, expected);
    t.is(error.audiences.exit, exit);
    t.regex(error.message, words);
    t.is(error.data?.grpcStatus, code);
  });
}

test('what a server says of a refused token is not repeated, and the advice is another', async (t) => {
  const session: GrpcServerOptions['session'] = (stream) =>
    void stream.emit(
      'error',
      Object.assign(new Error(), { code: status.UNAUTHENTICATED, details: 'no user has s3cr3t' }),
    );
  const server = await serve(t, { session });
  const remote = { headers: new Map([['authorization', 'Bearer s3cr3t']]) };
  const { message } = await dial(t, server.port, { remote }).listener.whenClosed();
  t.regex(message, /does not accept the token it was given .*Give it another token/);
  t.notRegex(message, /s3cr3t/);
});

test('a response that is not gRPC is told by its status', async (t) => {
  const answers: readonly (readonly [number, RegExp, ErrorCode])[] = [
    [200, /answered over HTTP\/2 \(status 200\), but not with gRPC/, 'ERR_UPSTREAM_CONNECT'],
    [502, /status 502/, 'ERR_UPSTREAM_CONNECT'],
    [401, /16 UNAUTHENTICATED/, 'ERR_UPSTREAM_AUTH'],
  ];
  for (const [httpStatus, words, code] of answers) {
    const port = await serveRaw(t, (stream) => {
      stream.respond({ ':status': httpStatus, 'content-type': 'text/html' });
      stream.end('<html>');
    });
    const error = await dial(t, port).listener.whenClosed();
    t.is(error.code, code);
    t.regex(error.message, words);
  }
});

test('faults of the server end the session, and say what it sent', async (t) => {
  const faults: readonly (readonly [Buffer, ErrorCode, RegExp])[] = [
    [
      prefixed(Buffer.from('x'), { length: 0xff_ff_ff_ff }),
      'ERR_UPSTREAM_TOO_LARGE',
      /1000 bytes allowed.*--max-message/,
    ],
    [prefixed(gzipSync('x'), { flag: 1 }), 'ERR_UPSTREAM_PROTOCOL', /compressed message/],
    [Buffer.from('garbage'), 'ERR_UPSTREAM_PROTOCOL', /gRPC does not allow/],
    [prefixed(Buffer.from([0x0f])), 'ERR_UPSTREAM_PROTOCOL', /no JsonRpcLine/],
    [lineOf({ jsonrpc: '2.0', id: 1, result: { text: 'x'.repeat(1500) } }), 'ERR_UPSTREAM_TOO_LARGE', /1000 bytes/],
  ];
  for (const [bytes, code, words] of faults) {
    let reset: Promise<unknown> | undefined;
    const port = await serveRaw(t, (stream) => {
      reset = once(stream, 'close').then(() => stream.rstCode);
      stream.respond(GRPC);
      stream.write(bytes);
    });
    const error = await dial(t, port, { maxMessageBytes: 1000 }).listener.whenClosed();
    t.is(error.code, code);
    t.regex(error.message, words);
    t.is(await reset, constants.NGHTTP2_CANCEL);
  }
});

test('a stream that ends within a message is a fault of the server, and a connection that does is a broken one', async (t) => {
  const half = lineOf({ jsonrpc: '2.0', id: 1, result: {} }).subarray(0, 20);
  for (const [end, code] of [
    [(stream: ServerHttp2Stream) => stream.end(), 'ERR_UPSTREAM_PROTOCOL'],
    [(stream: ServerHttp2Stream) => stream.session?.destroy(), 'ERR_UPSTREAM_CLOSED'],
  ] as const) {
    const port = await serveRaw(t, (stream) => {
      stream.respond(GRPC);
      stream.write(half, () => end(stream));
    });
    t.is((await dial(t, port).listener.whenClosed()).code, code);
  }
});

test('a stream that is reset, or ends without a status, is a session that is over, and leaves no connection', async (t) => {
  for (const end of [
    (stream: ServerHttp2Stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
    (stream: ServerHttp2Stream) => stream.end(),
  ]) {
    let left: Promise<unknown> | undefined;
    const port = await serveRaw(t, (stream) => {
      left = stream.session && once(stream.session, 'close');
      stream.respond(GRPC);
      stream.once('data', () => end(stream));
    });
    const { dialer, listener } = dial(t, port);
    t.is((await listener.whenClosed()).code, 'ERR_UPSTREAM_CLOSED');
    await left;
    t.is(dialer.readiness().state, 'ready');
  }
});

test('a line that is no message is skipped, and warned of once', async (t) => {
  const port = await serveRaw(t, (stream) => {
    stream.respond(GRPC);
    stream.write(prefixed(Buffer.from('\x0a\x05hello')));
    stream.write(prefixed(Buffer.from('\x0a\x05hello')));
    stream.write(lineOf({ jsonrpc: '2.0', id: 1, result: { tools: [] } }));
  });
  const { listener, entries } = dial(t, port);
  await waitFor(() => listener.frames.length === 1);
  t.is(entries.filter(({ level, msg }) => level === 40 && /not a message/.test(msg)).length, 1);
});

test('the stream carries the headers of the user and the token, which is read again for each', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const bearerTokenFile = join(folder, 'token');
  writeFileSync(bearerTokenFile, 'first\n');
  const server = await serve(t, { session: () => undefined });
  const headers = new Map([
    ['x-tenant', 'blue'],
    ['te', 'gzip'],
    ['grpc-timeout', '1S'],
  ]);
  const { dialer } = dial(t, server.port, { remote: { headers, bearerTokenFile } });
  await waitFor(() => server.opened.length === 1);
  writeFileSync(bearerTokenFile, 'second one\n');
  const refused = dialer.connect();
  const listener = new RecordingServerListener();
  refused.listener = listener;
  refused.send(requestFrame(1, 'tools/list'));
  t.is((await listener.whenClosed()).code, 'ERR_UPSTREAM_AUTH', 'that is no token');
  writeFileSync(bearerTokenFile, 'second\n');
  dialer.connect().send(requestFrame(1, 'tools/list'));
  await waitFor(() => server.opened.length === 2);
  const shown = server.opened.map((metadata) => metadata.getMap());
  t.deepEqual(
    shown.map(({ authorization, 'x-tenant': tenant, 'user-agent': agent }) => [authorization, tenant, agent]),
    [
      ['Bearer first', 'blue', 'test'],
      ['Bearer second', 'blue', 'test'],
    ],
  );
  await dialer.close();
});

test('with TLS the server is verified, and gets the certificate of the client', async (t) => {
  const credentials = ServerCredentials.createSsl(
    pem('ca'),
    [{ cert_chain: pem('server'), private_key: pem('server-key') }],
    true,
  );
  const server = await serve(t, { credentials });
  const mutual = { caFile: file('ca'), certFile: file('client'), keyFile: file('client-key') };
  const { listener, dialer } = dial(t, server.port, { tls: 'on', remote: { tls: mutual } });
  await waitFor(() => listener.frames.length === 1);
  t.is(dialer.readiness().state, 'ready');
  const unknown = await dial(t, server.port, { tls: 'on' }).listener.whenClosed();
  t.is(unknown.code, 'ERR_UPSTREAM_CONNECT');
  t.regex(unknown.message, /authority that is not trusted here/);
  const anonymous = { caFile: file('ca'), certFile: undefined, keyFile: undefined };
  t.regex(
    (await dial(t, server.port, { tls: 'on', remote: { tls: anonymous } }).listener.whenClosed()).code,
    /^ERR_UPSTREAM_/,
  );
  t.regex((await dial(t, server.port).listener.whenClosed()).message, /grpcs:\/\/|HTTP\/2/);
  await dialer.close();
});

test('a server that answers no pings is given up, and one that does is not', async (t) => {
  const { deps, entries } = createTestDeps();
  const clock = new FakeClock();
  const keepAliveMs = 1000;
  const server = await serve(t, { session: () => undefined });
  const alive = dial(t, server.port, { deps: { ...deps, clock }, remote: { keepAliveMs } });
  await waitFor(() => server.opened.length === 1);
  // Settings and nothing else: no frame is ever answered.
  const mute = await listen(
    t,
    createServer((socket) => void socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]))),
  );
  const silent = dial(t, mute, { deps: { ...deps, clock }, remote: { keepAliveMs } });
  await waitFor(() => entries.filter(({ msg }) => msg === 'connected').length === 2);
  for (let count = 0; count < 8; count += 1) {
    clock.advance(keepAliveMs);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  const error = await silent.listener.whenClosed();
  t.is(error.code, 'ERR_UPSTREAM_TIMEOUT');
  t.is(error.data?.phase, 'ping');
  t.is(alive.listener.closings.length, 0);
  t.is(server.open.size, 1);
});

test('a closed link ends its half of the stream, and cancels where the server does not end its own', async (t) => {
  const { deps, entries } = createTestDeps();
  const clock = new FakeClock();
  const polite = await serve(t, {});
  const { dialer, listener } = dial(t, polite.port, { deps: { ...deps, clock } });
  await waitFor(() => listener.frames.length === 1);
  await dialer.close();
  t.is(polite.open.size, 0);
  let reset: Promise<unknown> | undefined;
  const port = await serveRaw(t, (stream) => {
    stream.respond(GRPC);
    stream.resume();
    reset = once(stream, 'close').then(() => stream.rstCode);
  });
  const rude = dial(t, port, { deps: { ...deps, clock } });
  await waitFor(() => reset !== undefined && entries.filter(({ msg }) => msg === 'connected').length === 2);
  const closing = rude.dialer.close();
  clock.advance(CLOSE_GRACE_MS);
  t.is(await reset, constants.NGHTTP2_CANCEL);
  await closing;
});

test('a server that reads nothing makes the link full, and nothing of it is lost', async (t) => {
  let unread: ServerHttp2Stream | undefined;
  let received = 0;
  const port = await serveRaw(t, (stream) => {
    stream.respond(GRPC);
    stream.on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    stream.pause();
    unread = stream;
  });
  const { link } = dial(t, port);
  const stream = await waitFor(() => unread);
  const message = requestFrame(2, 'tools/call', { text: 'x'.repeat(100_000) });
  let sent = 1;
  for (; sent < 100 && link.send(message); sent += 1) await new Promise((resolve) => setTimeout(resolve, 5));
  t.true(sent < 20, `${sent} messages of 100 kB were taken`);
  stream.resume();
  await waitFor(() => received > sent * 100_000);
});
