/** Connections of every transport to a real server, handed from one owner to the next. */
import test, { type ExecutionContext } from 'ava';
import { SHUTTING_DOWN } from '../../src/errors.ts';
import { Call } from '../../src/relay/call.ts';
import type { Connection, Connector } from '../../src/upstream/connection.ts';
import { createHttpSseConnector } from '../../src/upstream/http-sse/connector.ts';
import { createStreamableConnector } from '../../src/upstream/streamable-session/connector.ts';
import { createWebSocketConnector } from '../../src/upstream/websocket/connector.ts';
import type { JsonRpcId } from '../../src/wire/frame.ts';
import { notificationFrame, requestFrame } from '../../src/wire/write-message.ts';
import { createTestDeps } from '../process/collected-log.ts';
import { connectScript } from '../support/dialers.ts';
import { FakeLane } from '../support/fake-peers.ts';
import { startInetd } from '../support/inetd.ts';
import { type SdkHttpServer, startHttpSse, startStreamable } from '../support/sdk-servers.ts';
import { serverProgram } from '../support/server-program.ts';
import { waitFor } from '../support/wait-for.ts';
import { startWebSocketServer } from '../support/websocket-server.ts';
import { dialByteStream } from '../upstream/byte-stream/dial.ts';
import { RecordingServerListener } from '../upstream/recording-server-listener.ts';
import { dialerOptions } from '../upstream/remote-dialers.ts';

const SERVER = serverProgram(new URL('../fixtures/contract-server/server.js', import.meta.url));

interface Server {
  readonly connector: Connector;
  /** Ends the server without a word. */
  kill(connection: Connection): Promise<void> | void;
}

function overHttp(t: ExecutionContext, server: SdkHttpServer, connector: Connector): Server {
  t.teardown(async () => {
    await connector.close();
    await server.close();
  });
  return { connector, kill: () => server.stop() };
}

const TRANSPORTS: Readonly<Record<string, (t: ExecutionContext) => Promise<Server> | Server>> = {
  stdio: (t) => {
    const connector = connectScript(SERVER, { deps: createTestDeps().deps });
    t.teardown(() => connector.close());
    return { connector, kill: () => connector.killNow() };
  },
  'a byte stream': async (t) => {
    const inetd = await startInetd([process.execPath, SERVER], {});
    const { dialer: connector } = dialByteStream({ kind: 'tcp', host: '127.0.0.1', port: inetd.port, tls: 'off' });
    t.teardown(async () => {
      await connector.close();
      await inetd.stop();
    });
    return { connector, kill: () => inetd.kill() };
  },
  WebSocket: async (t) => {
    const server = await startWebSocketServer();
    const connector = createWebSocketConnector(dialerOptions(server.url));
    t.teardown(async () => {
      await connector.close();
      if (server.open.size > 0) await server.stop();
    });
    return { connector, kill: () => server.stop() };
  },
  'HTTP+SSE': async (t) => {
    const server = await startHttpSse();
    return overHttp(t, server, createHttpSseConnector(dialerOptions(server.url)));
  },
  'Streamable HTTP': async (t) => {
    const server = await startStreamable();
    return overHttp(t, server, createStreamableConnector(dialerOptions(server.url)));
  },
};

/** Its end is that of its calls, not of the session. */
const SURVIVES_ITS_SERVER = 'Streamable HTTP';

function ask(connection: Connection, id: JsonRpcId, method: string, params: object): void {
  connection.send(requestFrame(id, method, params), new Call(id, method, new FakeLane(), undefined, 0));
}

const initialize = (connection: Connection): void =>
  ask(connection, 1, 'initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  });

async function open(connector: Connector): Promise<{ connection: Connection; first: RecordingServerListener }> {
  const connection = connector.connect();
  let hasArrived = false;
  connection.onUnheard = () => {
    hasArrived = true;
    return 'kept';
  };
  initialize(connection);
  await waitFor(() => hasArrived, { message: 'the answer to the handshake' });
  const first = new RecordingServerListener();
  connection.listener = first;
  await first.answerTo(1);
  connection.send(notificationFrame('notifications/initialized'));
  return { connection, first };
}

for (const [name, start] of Object.entries(TRANSPORTS)) {
  test.serial(`${name}: an answer waits for the owner, and each owner hears what arrives in its time`, async (t) => {
    const { connector } = await start(t);
    const { connection, first } = await open(connector);
    ask(connection, 2, 'tools/call', { name: 'echo', arguments: { value: 'for the first' } });
    t.like(await first.answerTo(2), { result: { content: [{ text: 'for the first' }] } });
    connection.listener = undefined;
    let answers = 0;
    connection.onUnheard = (arrival) => {
      if (arrival.kind === 'message' && arrival.frame.isResponse) answers += 1;
      return 'kept';
    };
    ask(connection, 3, 'tools/call', { name: 'count', arguments: { to: 5 }, _meta: { progressToken: 'p' } });
    await waitFor(() => answers === 1, { message: 'the answer that nobody hears yet' });
    const second = new RecordingServerListener();
    connection.listener = second;
    ask(connection, 4, 'tools/call', { name: 'echo', arguments: { value: 'later' } });
    await second.answerTo(4);
    const told = second.frames.map((frame) => frame.json() as { id?: number; params?: { progress: number } });
    t.deepEqual(
      told.map(({ id, params }) => id ?? params?.progress),
      [1, 2, 3, 4, 5, 3, 4],
    );
    t.is(first.frames.length, 2);
    connection.close(SHUTTING_DOWN);
  });

  test.serial(`${name}: after close nobody hears anything, not even the end`, async (t) => {
    const { connector, kill } = await start(t);
    const { connection, first } = await open(connector);
    connection.close(SHUTTING_DOWN);
    await kill(connection);
    await connector.close();
    t.is(first.frames.length, 1);
    t.deepEqual(first.closings, []);
  });

  if (name === SURVIVES_ITS_SERVER) continue;
  test.serial(`${name}: the end is told to the owner of that time, once and last`, async (t) => {
    const { connector, kill } = await start(t);
    const { connection, first } = await open(connector);
    connection.listener = undefined;
    const seen: string[] = [];
    connection.onUnheard = ({ kind }) => {
      seen.push(kind);
      return 'kept';
    };
    ask(connection, 2, 'tools/call', { name: 'echo', arguments: { value: 'unheard' } });
    await waitFor(() => seen.length === 1);
    await kill(connection);
    await waitFor(() => seen.includes('end'), { message: 'the end of the server' });
    const second = new RecordingServerListener();
    connection.listener = second;
    await second.whenClosed();
    t.is(second.frames.length, 1);
    t.deepEqual([first.closings.length, second.closings.length], [0, 1]);
  });
}
