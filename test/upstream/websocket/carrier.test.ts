import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { createRemoteWebSocketConnector } from '../../../src/upstream/websocket/connector.ts';
import { requestFrame } from '../../../src/wire/write-message.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { REMOTE } from '../../support/remote-config.ts';
import { waitFor } from '../../support/wait-for.ts';
import {
  type RunningWebSocketServer,
  startWebSocketServer,
  type WebSocketServerOptions,
} from '../../support/websocket-server.ts';
import { RecordingServerListener } from '../recording-server-listener.ts';
import { type DialOptions, dialWebSocket } from '../remote-dialers.ts';

async function start(t: ExecutionContext, options: WebSocketServerOptions = {}): Promise<RunningWebSocketServer> {
  const server = await startWebSocketServer(options);
  t.teardown(() => server.stop());
  return server;
}

/** A link that has sent its first request. */
function dial(t: ExecutionContext, url: URL, options: DialOptions & { readonly pingMs?: number } = {}) {
  const dialer = dialWebSocket(url, options);
  const listener = new RecordingServerListener();
  const link = dialer.dial(listener);
  t.teardown(() => dialer.close());
  link.send(requestFrame(1, 'ping', {}));
  return { dialer, listener, link };
}

async function failureOf(t: ExecutionContext, url: URL, options: DialOptions = {}): Promise<BridgeError> {
  return dial(t, url, options).listener.whenClosed();
}

test('opens no connection before there is something to send', async (t) => {
  const server = await start(t);
  const dialer = dialWebSocket(server.url);
  t.teardown(() => dialer.close());
  const listener = new RecordingServerListener();
  const link = dialer.dial(listener);
  t.is(server.asked.length, 0);
  link.send(requestFrame(1, 'ping', {}));
  await waitFor(() => listener.frames.length === 1);
  t.is(server.asked.length, 1);
});

test('offers the subprotocol, no compression, and what the user has configured', async (t) => {
  const server = await start(t);
  const headers = new Map([
    ['x-api-key', 'k'],
    ['authorization', 'Bearer secret'],
  ]);
  const { listener } = dial(t, server.url, { client: { headers } });
  await waitFor(() => listener.frames.length === 1);
  const sent = server.asked[0]?.headers;
  t.is(sent?.['sec-websocket-protocol'], 'mcp');
  t.is(sent?.['sec-websocket-extensions'], undefined);
  t.is(sent?.['x-api-key'], 'k');
  t.is(sent?.authorization, 'Bearer secret');
  t.is(sent?.origin, undefined);
  t.truthy(sent?.['user-agent']);
});

test('takes a server that chooses no subprotocol', async (t) => {
  const server = await start(t, { handleProtocols: () => false });
  const { listener } = dial(t, server.url);
  await waitFor(() => listener.frames.length === 1);
  t.is(listener.closings[0], undefined);
});

test('refuses a server that chooses another subprotocol', async (t) => {
  const server = await start(t, { handleProtocols: () => 'chat' });
  const { code, message } = await failureOf(t, server.url);
  t.is(code, 'ERR_UPSTREAM_PROTOCOL');
  t.regex(message, /did not complete the WebSocket handshake/);
});

test('names the server, without its query, and the way out where the handshake is refused', async (t) => {
  const refuse = () => ({ status: 401, headers: { 'WWW-Authenticate': 'Bearer' }, body: 'no' });
  const server = await start(t, { refuse });
  const { code, message, data } = await failureOf(t, new URL('?key=secret', server.url));
  t.is(code, 'ERR_UPSTREAM_AUTH');
  t.is(data?.status, 401);
  t.true(message.includes(`ws://${server.url.host}`));
  t.regex(message, /--bearer-token-file/);
  t.notRegex(message, /secret/);
});

for (const [status, pattern] of [
  [404, /answered 404.*Check that the URL leads to its WebSocket endpoint/],
  [405, /answered 405.*use http or https/],
  [503, /answered 503 Service Unavailable: busy/],
] as const) {
  test(`tells that the handshake was answered with ${status}`, async (t) => {
    const server = await start(t, { refuse: () => ({ status, body: 'busy' }) });
    const { code, message, data } = await failureOf(t, server.url);
    t.is(code, 'ERR_UPSTREAM_HTTP');
    t.is(data?.status, status);
    t.regex(message, pattern);
  });
}

test('tells of a server that answers as if it had been asked for a page', async (t) => {
  const http = createHttpServer((_request, response) => void response.end('<title>Hello</title>'));
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  t.teardown(() => http.close());
  const { message } = await failureOf(t, new URL(`ws://127.0.0.1:${(http.address() as AddressInfo).port}/`));
  t.regex(message, /answered 200 OK.*no WebSocket/);
  http.closeAllConnections();
});

test('follows a redirect within the origin, and none to another', async (t) => {
  const server = await start(t, {
    refuse: ({ url }) => (url === '/mcp' ? { status: 307, headers: { Location: '/moved' } } : undefined),
  });
  const { listener } = dial(t, server.url, { client: { headers: new Map([['authorization', 'Bearer x']]) } });
  await waitFor(() => listener.frames.length === 1);
  t.deepEqual(
    server.asked.map(({ url }) => url),
    ['/mcp', '/moved'],
  );
  const away = await start(t, { refuse: () => ({ status: 302, headers: { Location: 'http://other.example/mcp' } }) });
  const { code, message } = await failureOf(t, away.url);
  t.is(code, 'ERR_UPSTREAM_HTTP');
  t.regex(message, /redirect to another origin, http:\/\/other\.example/);
});

test('tells that nothing listens, and that it is unproven then', async (t) => {
  const server = await startWebSocketServer();
  await server.stop();
  const { dialer, listener } = dial(t, server.url);
  await waitFor(() => listener.closings[0] !== undefined);
  t.is(listener.closings[0]?.code, 'ERR_UPSTREAM_CONNECT');
  t.regex(listener.closings[0]?.message ?? '', /nothing listens there/);
  t.is(dialer.readiness().state, 'failing');
});

test('a server that refuses connections stays failed until it takes one again, for which it is tried', async (t) => {
  let status: number | undefined = 503;
  const server = await start(t, { refuse: () => (status === undefined ? undefined : { status }) });
  const { deps, entries } = createTestDeps();
  const clock = new FakeClock();
  const trialClient = { name: 'test', version: '1' };
  const target = { kind: 'url', url: server.url, socketPath: undefined } as const;
  const connector = createRemoteWebSocketConnector({
    target,
    remote: REMOTE,
    maxMessageBytes: 1024 * 1024,
    clientInfo: trialClient,
    credentials: undefined,
    trialClient,
    deps: { ...deps, clock },
  });
  t.teardown(() => connector.close());
  const listener = new RecordingServerListener();
  const connection = connector.connect();
  connection.listener = listener;
  connection.send(requestFrame(1, 'ping', {}));
  await listener.whenClosed();
  t.is(connector.readiness().state, 'failing');
  clock.advance(10_000);
  await waitFor(() => server.asked.length === 2);
  await new Promise((resolve) => setTimeout(resolve, 100));
  t.is(connector.readiness().state, 'failing');
  status = undefined;
  clock.advance(20_000);
  await waitFor(() => connector.readiness().state === 'ready');
  await waitFor(() => server.open.size === 0, { message: 'the connection of the trial is closed' });
  t.true(entries.some(({ msg }) => /answers again, after 30 s/.test(msg)));
});

test('a server that refuses a client without a login was reached', async (t) => {
  const server = await start(t, { refuse: () => ({ status: 401 }) });
  const { dialer, listener } = dial(t, server.url);
  t.is((await listener.whenClosed()).code, 'ERR_UPSTREAM_AUTH');
  t.is(dialer.readiness().state, 'ready');
});

test('waits for the answer to a handshake no longer than is usual', async (t) => {
  const clock = new FakeClock();
  const silent = createTcpServer((socket) => socket.on('error', () => undefined));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  t.teardown(() => silent.close());
  const url = new URL(`ws://127.0.0.1:${(silent.address() as AddressInfo).port}/`);
  const { listener } = dial(t, url, { clock });
  await waitFor(
    () => {
      clock.advance(1000);
      return listener.closings[0] !== undefined;
    },
    { message: 'the time limit' },
  );
  t.is(listener.closings[0]?.code, 'ERR_UPSTREAM_TIMEOUT');
});

test('goes through the proxy of the environment by a tunnel, also without TLS', async (t) => {
  const server = await start(t);
  const asked: string[] = [];
  const proxy = createHttpServer();
  proxy.on('connect', (request, client, head) => {
    asked.push(String(request.url));
    const onward = connect(Number(server.url.port), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      onward.write(head);
      onward.pipe(client).pipe(onward);
    });
    for (const end of [onward, client]) end.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.teardown(() => proxy.close());
  const { port } = proxy.address() as AddressInfo;
  const url = new URL(`ws://server.example:${server.url.port}/mcp`);
  const { listener, dialer } = dial(t, url, { client: { proxyEnv: { http_proxy: `http://127.0.0.1:${port}` } } });
  await waitFor(() => listener.frames.length === 1);
  t.deepEqual(asked, [`server.example:${server.url.port}`]);
  await dialer.close();
});

test('renews its credentials when the handshake is refused for them', async (t) => {
  let token = 'old';
  const server = await start(t, {
    refuse: ({ headers }) => (headers.authorization === 'Bearer new' ? undefined : { status: 401 }),
  });
  const accepted: string[] = [];
  const credentials = {
    show: () => ({ authorization: `Bearer ${token}` }),
    close: () => undefined,
    renewal: {
      lastUnderWayMs: undefined,
      beforeRequest: () => undefined,
      accepted: (authorization: string) => void accepted.push(authorization),
      takesNonce: () => false,
      refused: async () => {
        token = 'new';
        return { kind: 'renewed' as const };
      },
    },
  };
  const { listener } = dial(t, server.url, { client: { credentials } });
  await waitFor(() => listener.frames.length === 1);
  t.is(server.asked.length, 2);
  t.deepEqual(accepted, ['Bearer new']);
});

test('says why the connection ended', async (t) => {
  const ends: readonly [(server: RunningWebSocketServer) => void, RegExp][] = [
    [
      ({ open }) => open.forEach((socket) => void socket.close(4403, 'key revoked')),
      /closed the connection \(4403: key revoked\)/,
    ],
    [({ cut }) => cut(), /broke\.$/],
    [
      ({ open }) => open.forEach((socket) => void socket.send('x'.repeat(2000))),
      /more than the 1000 bytes allowed.*--max-message-bytes/,
    ],
  ];
  for (const [end, pattern] of ends) {
    const server = await start(t);
    const { listener } = dial(t, server.url, { maxMessageBytes: 1000 });
    await waitFor(() => listener.frames.length === 1);
    end(server);
    await waitFor(() => listener.closings[0] !== undefined);
    t.regex(listener.closings[0]?.message ?? '', pattern);
  }
});

test('gives a server up that answers no pings', async (t) => {
  const clock = new FakeClock();
  const server = await start(t, { connected: (socket) => void socket.once('message', () => socket.pause()) });
  const { listener, link } = dial(t, server.url, { clock, pingMs: 1000 });
  await waitFor(() => server.open.size === 1);
  link.send(requestFrame(2, 'ping', {}));
  await waitFor(
    () => {
      clock.advance(1000);
      return listener.closings[0] !== undefined;
    },
    { message: 'the end of patience' },
  );
  t.is(listener.closings[0]?.code, 'ERR_UPSTREAM_TIMEOUT');
  t.is(listener.closings[0]?.data?.phase, 'ping');
});

test('gives a server up that talks, and takes nothing of what waits for it', async (t) => {
  const clock = new FakeClock();
  const server = await start(t, { connected: (socket) => void socket.once('message', () => socket.pause()) });
  const { listener, link } = dial(t, server.url, { clock, pingMs: 1000 });
  await waitFor(() => server.open.size === 1);
  // More than the system takes on the way.
  link.send(requestFrame(2, 'x'.repeat(32 * 1024 * 1024), {}));
  const [socket] = server.open;
  for (let second = 1; second <= 10 && listener.closings[0] === undefined; second += 1) {
    const heard = listener.frames.length;
    socket?.send('{"jsonrpc":"2.0","method":"notifications/x"}');
    await waitFor(() => listener.frames.length > heard || listener.closings[0] !== undefined);
    clock.advance(1000);
  }
  t.is(listener.closings[0]?.code, 'ERR_UPSTREAM_TIMEOUT');
  t.is(listener.closings[0]?.data?.phase, 'turn');
  t.regex(listener.closings[0]?.message ?? '', /took nothing of what was sent/);
});

test('tells the server that it leaves', async (t) => {
  const server = await start(t);
  const { listener, link } = dial(t, server.url);
  await waitFor(() => listener.frames.length === 1);
  link.close(new BridgeError('ERR_SESSION_CLOSED', 'The client has left.'));
  await waitFor(() => server.ends.length === 1);
  t.is(server.ends[0]?.code, 1000);
  t.is(listener.closings[0], undefined);
});

test('has its handshake aborted by whoever leaves before it is done', async (t) => {
  const server = await start(t);
  const { link, listener } = dial(t, server.url);
  link.close(new BridgeError('ERR_SESSION_CLOSED', 'The client has left.'));
  const { listener: other } = dial(t, server.url);
  await waitFor(() => other.frames.length === 1);
  t.is(listener.closings[0], undefined);
  t.true(server.open.size <= 1);
});
