import test, { type ExecutionContext } from 'ava';
import type { LogLine } from '../support/bridge.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { WHY_NO_MOSQUITTO } from '../support/mosquitto.ts';
import { assertGone } from '../support/processes.ts';
import { says } from '../support/says.ts';
import { waitFor } from '../support/wait-for.ts';
import { recordOf, seenByServer } from './cell.ts';
import { CLIENTS, type ClientKind, type ClientName } from './clients.ts';
import { type Front, startFront } from './fronts.ts';
import { type ConnectOptions, fromServer, type MatrixClient } from './matrix-client.ts';
import { MORTALS } from './mortal-servers.ts';
import { fence, updatesOf } from './scenarios/between-calls.ts';
import { methodOf } from './scenarios/calls.ts';
import { SERVERS, startLegacyHttp } from './servers.ts';

/** Those that negotiate are one of the others by the time they can lose anything. */
const CLIENT_NAMES = ['stdio', 'httpSse', 'streamable', 'modernStdio', 'modernHttp'] as const satisfies ClientName[];
const URI = 'test://numbered/1';

type RemoteName = keyof typeof MORTALS;

/** Servers whose connection is the session, as the stream of HTTP+SSE is. */
const ON_A_CONNECTION: readonly RemoteName[] = [
  'httpSse',
  'webSocket',
  'stream',
  'grpc',
  'modernWebSocket',
  'modernStream',
  'modernGrpc',
];
/** Of which nobody can tell whether it has run a call that was not answered. */
const isStateless = (server: RemoteName): boolean => server === 'modernHttp' || server === 'modernSocket';

const AT_A_BROKER: readonly (readonly [RemoteName, ClientName])[] = [
  ['mqtt', 'stdio'],
  ['mqtt', 'streamable'],
  ['mqtt', 'modernHttp'],
  ['stateful', 'mqtt'],
  ['modernHttp', 'modernMqtt'],
  ['mqtt', 'mqtt'],
];

/** The transports of MCP with each other, and the carriers beside them with one of each kind. */
const PAIRS: readonly (readonly [RemoteName, ClientName])[] = [
  ...(['stateful', 'stateless', 'httpSse', 'modernHttp'] as const).flatMap((server) =>
    CLIENT_NAMES.map((client) => [server, client] as const),
  ),
  ...(['webSocket', 'stream'] as const).flatMap((server) =>
    (['stdio', 'streamable', 'modernHttp'] as const).map((client) => [server, client] as const),
  ),
  ['modernWebSocket', 'streamable'],
  ['modernWebSocket', 'modernHttp'],
  ['modernStream', 'stdio'],
  ['modernStream', 'modernHttp'],
  ['socket', 'streamable'],
  ['modernSocket', 'modernHttp'],
  ['stateful', 'socket'],
  ['stateful', 'webSocket'],
  ['modernHttp', 'modernWebSocket'],
  ['httpSse', 'stream'],
  ['webSocket', 'webSocket'],
  ['grpc', 'stdio'],
  ['grpc', 'streamable'],
  ['grpc', 'modernHttp'],
  ['modernGrpc', 'stdio'],
  ['modernGrpc', 'modernHttp'],
  ['stateful', 'grpc'],
  ['modernHttp', 'modernGrpc'],
  ['grpc', 'grpc'],
  ...(WHY_NO_MOSQUITTO === undefined ? AT_A_BROKER : []),
];

/**
 * `goes on`: with the next call. `goes on after a pause`: a session that could not be opened anew is not tried again at
 * once. `is over`: the client is told, and a new session works at once.
 */
type Fate = 'goes on' | 'goes on after a pause' | 'is over';

/**
 * The SDK's client opens another stream some seconds after the loss, and posts to that without a new handshake. On a
 * connection of its own it is told by the end of that.
 */
const IS_OVER = /session does not exist|session has not begun|Connection closed|Not connected/;

/** What a client is told that calls while the server is gone. */
const MEANWHILE: Readonly<Record<Fate, RegExp>> = {
  'goes on': /nothing listens there|All that claim to serve ".*" are gone/,
  'goes on after a pause': /nothing listens there|broke in the middle/,
  'is over': IS_OVER,
};

/**
 * Such a connection is the session. A client over HTTP is told so; one whose pipe is its session cannot be, and one
 * without sessions need not be.
 */
function fateOf(client: ClientName, server: RemoteName): Fate {
  const { era, over }: ClientKind = CLIENTS[client];
  if (!ON_A_CONNECTION.includes(server)) return 'goes on';
  // Requests of the modern era go on with another connection.
  if (era === 'modern') return SERVERS[server].era === 'modern' ? 'goes on' : 'goes on after a pause';
  return over === 'stdio' ? 'goes on' : 'is over';
}

/** A server that has left a broker may come back, and is waited for so long. */
const optionsFor = (server: RemoteName): readonly string[] => (server === 'mqtt' ? ['--connect-timeout', '2s'] : []);

/** What the calls of these tests say. */
const PAYLOADS = /in flight|anybody there|welcome|worth waiting for/;

/**
 * The loss; the withdrawal of the call, where that is a message; the call meanwhile. Where the stream is the session,
 * those who are told so ask no more; for the others a connection is tried.
 */
function logOf(client: ClientName, server: RemoteName): readonly string[] {
  if (isStateless(server)) return ['error ERR_UPSTREAM_DELIVERY', 'error ERR_UPSTREAM_CONNECT'];
  if (server === 'mqtt') return ['warn ERR_UPSTREAM_CLOSED', ...Array(2).fill('warn ERR_UPSTREAM_CONNECT')];
  if (!ON_A_CONNECTION.includes(server)) {
    return ['error ERR_UPSTREAM_CLOSED', 'warn ERR_UPSTREAM_CONNECT', 'error ERR_UPSTREAM_CONNECT'];
  }
  const isOver = fateOf(client, server) === 'is over';
  const saysSoItself = ['stream', 'grpc'].includes(SERVERS[server].over);
  const attempt = Array(saysSoItself ? 2 : 1).fill('warn ERR_UPSTREAM_CONNECT');
  return ['warn ERR_UPSTREAM_CLOSED', ...(isOver ? [] : attempt)];
}

/** One that failed. Of some transports the connection says so itself, too. */
const isAttempt = ({ msg }: LogLine): boolean =>
  /^not reconnected|^the shared server did not start|^Cannot reach the server at (?:tcp|grpc):|^All that claim to serve/.test(
    String(msg),
  );

/** How many attempts there are is a matter of time; each has its line. */
function isNoRepetition(line: LogLine, index: number, logs: readonly LogLine[]): boolean {
  return !isAttempt(line) || logs.findIndex(({ msg }) => msg === line.msg) === index;
}

for (const [server, client] of PAIRS) {
  const fate = fateOf(client, server);
  const title = `${CLIENTS[client].title} → ${SERVERS[server].title}: a call fails when the server dies`;
  test.serial(`${title}; when it is back, the session ${fate}`, async (t) => {
    const first = await MORTALS[server]();
    t.teardown(first.stop);
    const { front, main, connectAnew, ends } = await connect(t, client, [...optionsFor(server), first.target]);
    const hasChanges = server !== 'stateless';
    if (hasChanges) {
      await main.watchLists();
      await main.subscribe(URI);
    }

    const failure = await failureWhen(main, first.kill);
    const reason = isStateless(server) ? 'ERR_UPSTREAM_DELIVERY' : 'ERR_UPSTREAM_CLOSED';
    t.like(failure, { code: -32603, data: { bridge: { reason } } });
    t.true(String(failure).includes(first.shownAs), 'it says which server');
    const meanwhile = await rejection(main.callTool('echo', { value: 'anybody there?' }));
    t.regex(String(meanwhile), MEANWHILE[fate]);

    if (fate === 'goes on after a pause')
      await waitFor(() => front.logs.some(isAttempt), { message: 'the server to be looked for' });
    const second = await first.startAgain();
    t.teardown(second.stop);
    if (fate === 'is over') {
      t.regex(String(await rejection(main.ping())), IS_OVER);
      const anew = await connectAnew();
      t.is((await anew.callTool('echo', { value: 'welcome' })).text, 'welcome');
      return ends(logOf(client, server));
    }
    if (fate === 'goes on after a pause')
      await waitFor(() => isServed(main), { message: 'the server to be found again' });
    t.is((await main.callTool('echo', { value: 'welcome back' })).text, 'welcome back');
    if (!hasChanges) return ends(logOf(client, server));
    // What may have changed while nobody was there to tell.
    const news = () => fromServer(main, 'notifications/tools/list_changed').length > 0;
    await waitFor(news, { message: 'the news that something may have changed' });
    await t.notThrowsAsync(fence(main));
    const before = updatesOf(main).length;
    await main.callTool('touch', { uri: URI });
    await waitFor(() => updatesOf(main).length > before, { message: 'an update after the loss' });
    if (SERVERS[server].era === 'legacy') t.is(await sessionsSeen(main), 1, 'the server has been given one session');
    await ends(logOf(client, server));
  });
}

for (const client of CLIENT_NAMES) {
  const title = `${CLIENTS[client].title} → ${SERVERS.resumable.title}`;
  test.serial(`${title}: a call goes on when only the connection is lost, and misses nothing`, async (t) => {
    const server = await startLegacyHttp('stateful-resumable');
    t.teardown(server.stop);
    const network = await startCuttingProxy(server.url);
    t.teardown(network.close);
    const { main, ends } = await connect(t, client, [network.through(server.url).href]);
    let hasBegun = false;
    const onProgress = () => {
      hasBegun = true;
    };
    const call = main.callTool('hold', { value: 'worth waiting for' }, { onProgress });
    await waitFor(() => hasBegun, { message: 'the first event of the call' });
    await network.cut();
    t.is((await main.callTool('release', { value: 'worth waiting for' })).text, 'true');
    t.is((await call).text, 'worth waiting for');
    const { entries } = await recordOf(main);
    // On stdio the SDK v2 finds out with a bridge of its own what is spoken.
    t.is(await sessionsSeen(main), client === 'modernStdio' ? 2 : 1);
    t.is(entries.filter(({ value }) => JSON.stringify(value ?? '').includes('"hold"')).length, 1);
    await ends([]);
  });
}

for (const server of ['stdio', 'modernStdio'] as const) {
  for (const client of CLIENT_NAMES) {
    // Only a legacy client has a session, and that has a process of its own.
    const fate = CLIENTS[client].era === 'legacy' ? 'is over' : 'goes on';
    const title = `${CLIENTS[client].title} → ${SERVERS[server].title}`;
    test.serial(`${title}: a call fails when the server exits, and the session ${fate}`, async (t) => {
      const { target } = await SERVERS[server].start();
      // A client that can be asked something has a process for each of its calls, and only one of them would exit.
      const { front, main, connectAnew, ends } = await connect(t, client, target, { capabilities: {} });
      const processes = front.processes();
      const failure = await failureWhen(main, () => void main.callTool('exit', { code: 3 }).catch(() => undefined));
      t.like(failure, { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_EXITED', exitCode: 3 } } });
      t.regex(String(failure), /exited with code 3/);
      if (fate === 'goes on') {
        t.is((await main.callTool('echo', { value: 'welcome back' })).text, 'welcome back');
        return ends(['warn ERR_UPSTREAM_EXITED']);
      }
      await t.throwsAsync(main.callTool('echo', { value: 'anybody there?' }));
      // The client's pipe is its session, so there is nothing left to do.
      const isLeft = CLIENTS[client].over === 'stdio';
      if (isLeft) await assertGone(processes);
      const anew = await connectAnew();
      t.is((await anew.callTool('echo', { value: 'welcome' })).text, 'welcome');
      await ends(['warn ERR_UPSTREAM_EXITED', ...(isLeft ? ['fatal ERR_UPSTREAM_EXITED'] : [])]);
      if (isLeft) t.regex(JSON.stringify(front.logs), /"fatal".*exited with code 3/);
    });
  }
}

const isServed = (client: MatrixClient): Promise<boolean> =>
  client.callTool('echo', { value: 'anybody there?' }).then(
    () => true,
    () => false,
  );

/** How often somebody has opened one at this server. */
async function sessionsSeen(client: MatrixClient): Promise<number> {
  const { entries } = await recordOf(client);
  return entries.filter(({ kind, value }) => kind === 'message' && methodOf(value) === 'initialize').length;
}

interface Connected {
  readonly front: Front;
  readonly main: MatrixClient;
  connectAnew(): Promise<MatrixClient>;
  /** The clients leave, the bridge ends, and this is what its log says, all in all. */
  ends(log: readonly string[]): Promise<void>;
}

async function connect(
  t: ExecutionContext,
  client: ClientName,
  target: readonly string[],
  options: Omit<ConnectOptions, 'name'> = {},
): Promise<Connected> {
  const front = await startFront(client, target);
  const clients: MatrixClient[] = [];
  const stop = (): Promise<void> =>
    Promise.allSettled(clients.splice(0).map((connected) => connected.close())).then(() => front.stop());
  t.teardown(stop);
  const connectAs = async (name: string): Promise<MatrixClient> => {
    const connected = await front.connect({ name, ...options });
    clients.push(connected);
    return connected;
  };
  const ends = async (log: readonly string[]): Promise<void> => {
    await stop();
    says(t, { logs: front.logs.filter(isNoRepetition) }, log);
    t.notRegex(JSON.stringify(front.logs), PAYLOADS, 'no message is in the log');
  };
  return { front, main: await connectAs('main'), connectAnew: () => connectAs('anew'), ends };
}

/** What becomes of a call during which the server is ended. */
async function failureWhen(client: MatrixClient, end: () => unknown): Promise<unknown> {
  const failure = rejection(client.callTool('wait', { label: 'in flight' }));
  await seenByServer(client, 'the call', ({ value }) => JSON.stringify(value ?? '').includes('in flight'));
  await end();
  return failure;
}

const rejection = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    (answer) => Promise.reject(new Error(`answered with ${JSON.stringify(answer)}`)),
    (error: unknown) => error,
  );
