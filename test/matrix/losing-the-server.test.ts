import test, { type ExecutionContext } from 'ava';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { assertGone } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { recordOf, seenByServer } from './cell.ts';
import { CLIENTS, type ClientName, type Front } from './clients.ts';
import { fromServer, type MatrixClient } from './matrix-client.ts';
import { fence, updatesOf } from './scenarios/between-calls.ts';
import { type LegacyHttpKind, SERVERS, startLegacyHttp } from './servers.ts';

const CLIENT_NAMES = Object.keys(CLIENTS) as ClientName[];
const URI = 'test://numbered/1';

/** `goes on`: with the next call. `is over`: the client is told, and a new session works at once. */
type Fate = 'goes on' | 'is over';

const REMOTE: readonly {
  readonly server: 'stateful' | 'stateless' | 'httpSse';
  readonly kind: LegacyHttpKind;
  readonly fate: Readonly<Record<ClientName, Fate>>;
}[] = [
  { server: 'stateful', kind: 'stateful', fate: { stdio: 'goes on', httpSse: 'goes on', streamable: 'goes on' } },
  { server: 'stateless', kind: 'stateless', fate: { stdio: 'goes on', httpSse: 'goes on', streamable: 'goes on' } },
  // Its stream is the session. A client over HTTP is told so; one whose pipe is its session cannot be.
  { server: 'httpSse', kind: 'http-sse', fate: { stdio: 'goes on', httpSse: 'is over', streamable: 'is over' } },
];

for (const { server, kind, fate } of REMOTE) {
  for (const client of CLIENT_NAMES) {
    const title = `${CLIENTS[client].title} → ${SERVERS[server].title}: a call fails when the server dies`;
    test.serial(`${title}; when it is back, the session ${fate[client]}`, async (t) => {
      const first = await startLegacyHttp(kind);
      t.teardown(first.stop);
      const { main, connectAnew } = await connect(t, client, [first.url.href]);
      const hasSession = kind !== 'stateless';
      if (hasSession) await main.subscribe(URI);

      const failure = await failureWhen(main, first.kill);
      t.like(failure, { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_CLOSED' } } });
      t.true(String(failure).includes(first.url.origin), 'it says which server');
      const meanwhile = await rejection(main.callTool('echo', { value: 'anybody there?' }));
      t.regex(String(meanwhile), fate[client] === 'goes on' ? /nothing listens there/ : /session does not exist/);

      const second = await startLegacyHttp(kind, Number(first.url.port));
      t.teardown(second.stop);
      if (fate[client] === 'is over') {
        t.regex(String(await rejection(main.ping())), /session does not exist/);
        const anew = await connectAnew();
        t.is((await anew.callTool('echo', { value: 'welcome' })).text, 'welcome');
        return;
      }
      t.is((await main.callTool('echo', { value: 'welcome back' })).text, 'welcome back');
      if (!hasSession) return;
      await t.notThrowsAsync(fence(main));
      const before = updatesOf(main).length;
      await main.callTool('touch', { uri: URI });
      await waitFor(() => updatesOf(main).length > before, { message: 'an update in the new session' });
      // What may have changed while nobody was there to tell.
      t.true(fromServer(main, 'notifications/tools/list_changed').length > 0);
      const { entries } = await recordOf(main);
      t.is(entries.filter(({ kind }) => kind === 'opened').length, 1, 'the server has been given one session');
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
    t.is(entries.filter(({ kind }) => kind === 'opened').length, 1);
    t.is(entries.filter(({ value }) => JSON.stringify(value ?? '').includes('worth waiting for')).length, 1);
  });
}

for (const client of CLIENT_NAMES) {
  const title = `${CLIENTS[client].title} → stdio`;
  test.serial(`${title}: a call fails when the server exits, and the session is over`, async (t) => {
    const { target } = await SERVERS.stdio.start();
    const { front, main, connectAnew } = await connect(t, client, target);
    const processes = front.processes();
    const failure = await failureWhen(main, () => void main.callTool('exit', { code: 3 }).catch(() => undefined));
    t.like(failure, { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_EXITED', exitCode: 3 } } });
    t.regex(String(failure), /exited with code 3/);
    await t.throwsAsync(main.ping());
    if (client === 'stdio') {
      // The client's pipe is its session, so there is nothing left to do.
      await assertGone(processes);
      t.regex(JSON.stringify(front.logs), /"fatal".*exited with code 3/);
    }
    const anew = await connectAnew();
    t.is((await anew.callTool('echo', { value: 'welcome' })).text, 'welcome');
  });
}

interface Connected {
  readonly front: Front;
  readonly main: MatrixClient;
  connectAnew(): Promise<MatrixClient>;
}

async function connect(t: ExecutionContext, client: ClientName, target: readonly string[]): Promise<Connected> {
  const front = await CLIENTS[client].start(target);
  t.teardown(() => front.stop());
  const connectAs = async (name: string): Promise<MatrixClient> => {
    const connected = await front.connect(name);
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
