import test, { type ExecutionContext } from 'ava';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { assertGone } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { recordOf, seenByServer } from './cell.ts';
import { CLIENTS, type ClientKind, type ClientName } from './clients.ts';
import { type Front, startFront } from './fronts.ts';
import { fromServer, type MatrixClient } from './matrix-client.ts';
import { fence, updatesOf } from './scenarios/between-calls.ts';
import { methodOf } from './scenarios/calls.ts';
import { SERVERS, startLegacyHttp, startModernHttp } from './servers.ts';

/** Those that negotiate are one of the others by the time they can lose anything. */
const CLIENT_NAMES = ['stdio', 'httpSse', 'streamable', 'modernStdio', 'modernHttp'] as const satisfies ClientName[];
const URI = 'test://numbered/1';

const REMOTE = {
  stateful: (port?: number) => startLegacyHttp('stateful', port),
  stateless: (port?: number) => startLegacyHttp('stateless', port),
  httpSse: (port?: number) => startLegacyHttp('http-sse', port),
  modernHttp: startModernHttp,
} as const;

type RemoteName = keyof typeof REMOTE;

/**
 * `goes on`: with the next call. `goes on after a pause`: a session that could not be opened anew is not tried again at
 * once. `is over`: the client is told, and a new session works at once.
 */
type Fate = 'goes on' | 'goes on after a pause' | 'is over';

/** What a client is told that calls while the server is gone. */
const MEANWHILE: Readonly<Record<Fate, RegExp>> = {
  'goes on': /nothing listens there/,
  'goes on after a pause': /nothing listens there|broke in the middle/,
  'is over': /session does not exist/,
};

/**
 * The stream of HTTP+SSE is the session. A client over HTTP is told so; one whose pipe is its session cannot be, and one
 * without sessions need not be.
 */
function fateOf(client: ClientName, server: RemoteName): Fate {
  const { era, over }: ClientKind = CLIENTS[client];
  if (server !== 'httpSse') return 'goes on';
  if (era === 'modern') return 'goes on after a pause';
  return over === 'stdio' ? 'goes on' : 'is over';
}

for (const server of Object.keys(REMOTE) as RemoteName[]) {
  for (const client of CLIENT_NAMES) {
    const fate = fateOf(client, server);
    const title = `${CLIENTS[client].title} → ${SERVERS[server].title}: a call fails when the server dies`;
    test.serial(`${title}; when it is back, the session ${fate}`, async (t) => {
      const start = REMOTE[server];
      const first = await start();
      t.teardown(first.stop);
      const { main, connectAnew } = await connect(t, client, [first.url.href]);
      const hasChanges = server !== 'stateless';
      if (hasChanges) {
        await main.watchLists();
        await main.subscribe(URI);
      }

      const failure = await failureWhen(main, first.kill);
      // Of a modern server nobody can tell whether it has run the call.
      const reason = SERVERS[server].era === 'modern' ? 'ERR_UPSTREAM_DELIVERY' : 'ERR_UPSTREAM_CLOSED';
      t.like(failure, { code: -32603, data: { bridge: { reason } } });
      t.true(String(failure).includes(first.url.origin), 'it says which server');
      const meanwhile = await rejection(main.callTool('echo', { value: 'anybody there?' }));
      t.regex(String(meanwhile), MEANWHILE[fate]);

      const second = await start(Number(first.url.port));
      t.teardown(second.stop);
      if (fate === 'is over') {
        t.regex(String(await rejection(main.ping())), /session does not exist/);
        const anew = await connectAnew();
        t.is((await anew.callTool('echo', { value: 'welcome' })).text, 'welcome');
        return;
      }
      if (fate === 'goes on after a pause')
        await waitFor(() => isServed(main), { message: 'the server to be found again' });
      t.is((await main.callTool('echo', { value: 'welcome back' })).text, 'welcome back');
      if (!hasChanges) return;
      // What may have changed while nobody was there to tell.
      const news = () => fromServer(main, 'notifications/tools/list_changed').length > 0;
      await waitFor(news, { message: 'the news that something may have changed' });
      await t.notThrowsAsync(fence(main));
      const before = updatesOf(main).length;
      await main.callTool('touch', { uri: URI });
      await waitFor(() => updatesOf(main).length > before, { message: 'an update after the loss' });
      if (SERVERS[server].era === 'legacy') t.is(await sessionsSeen(main), 1, 'the server has been given one session');
    });
  }
}

for (const client of CLIENT_NAMES) {
  const title = `${CLIENTS[client].title} → ${SERVERS.resumable.title}`;
  test.serial(`${title}: a call goes on when only the connection is lost, and misses nothing`, async (t) => {
    const server = await startLegacyHttp('stateful-resumable');
    t.teardown(server.stop);
    const network = await startCuttingProxy(server.url);
    t.teardown(network.close);
    const { main } = await connect(t, client, [network.through(server.url).href]);
    let hasBegun = false;
    const onProgress = () => {
      hasBegun = true;
    };
    const call = main.callTool('later', { value: 'worth waiting for', ms: 600 }, { onProgress });
    await waitFor(() => hasBegun, { message: 'the first event of the call' });
    network.cut();
    t.is((await call).text, 'worth waiting for');
    const { entries } = await recordOf(main);
    // On stdio the SDK v2 finds out with a bridge of its own what is spoken.
    t.is(await sessionsSeen(main), client === 'modernStdio' ? 2 : 1);
    t.is(entries.filter(({ value }) => JSON.stringify(value ?? '').includes('worth waiting for')).length, 1);
  });
}

for (const server of ['stdio', 'modernStdio'] as const) {
  for (const client of CLIENT_NAMES) {
    // Only a legacy client has a session, and that has a process of its own.
    const fate = CLIENTS[client].era === 'legacy' ? 'is over' : 'goes on';
    const title = `${CLIENTS[client].title} → ${SERVERS[server].title}`;
    test.serial(`${title}: a call fails when the server exits, and the session ${fate}`, async (t) => {
      const { target } = await SERVERS[server].start();
      const { front, main, connectAnew } = await connect(t, client, target);
      const processes = front.processes();
      const failure = await failureWhen(main, () => void main.callTool('exit', { code: 3 }).catch(() => undefined));
      t.like(failure, { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_EXITED', exitCode: 3 } } });
      t.regex(String(failure), /exited with code 3/);
      if (fate === 'goes on') {
        t.is((await main.callTool('echo', { value: 'welcome back' })).text, 'welcome back');
        return;
      }
      await t.throwsAsync(main.callTool('echo', { value: 'anybody there?' }));
      if (CLIENTS[client].over === 'stdio') {
        // The client's pipe is its session, so there is nothing left to do.
        await assertGone(processes);
        t.regex(JSON.stringify(front.logs), /"fatal".*exited with code 3/);
      }
      const anew = await connectAnew();
      t.is((await anew.callTool('echo', { value: 'welcome' })).text, 'welcome');
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
}

async function connect(t: ExecutionContext, client: ClientName, target: readonly string[]): Promise<Connected> {
  const front = await startFront(client, target);
  t.teardown(() => front.stop());
  const connectAs = async (name: string): Promise<MatrixClient> => {
    const connected = await front.connect({ name });
    t.teardown(() => connected.close());
    return connected;
  };
  return { front, main: await connectAs('main'), connectAnew: () => connectAs('anew') };
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
