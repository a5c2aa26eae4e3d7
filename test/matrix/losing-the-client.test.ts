import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { REPOSITORY, startBridge } from '../support/bridge.ts';
import { assertGone, descendantsOf } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { seenByServer } from './cell.ts';
import { CLIENTS, type ClientKind, type ClientName } from './clients.ts';
import { type RunningServer, SERVERS, type ServerName } from './servers.ts';

const PROGRAM = fileURLToPath(new URL('./doomed-client.ts', import.meta.url));
/** Those that negotiate are one of the others by the time they are lost. */
const CLIENT_NAMES = ['stdio', 'httpSse', 'streamable', 'modernStdio', 'modernHttp'] as const satisfies ClientName[];
const SERVER_NAMES = [
  'stdio',
  'httpSse',
  'stateful',
  'stateless',
  'modernStdio',
  'modernHttp',
] as const satisfies ServerName[];

for (const client of CLIENT_NAMES) {
  for (const server of SERVER_NAMES) {
    const title = `${CLIENTS[client].title} → ${SERVERS[server].title}`;
    if (isSharedBy(client, server)) {
      test.serial(`${title}: the call of a client that is killed ends, and others go on`, async (t) => {
        const running = await SERVERS[server].start();
        t.teardown(running.stop);
        await endsItsCall(t, client, running);
      });
      continue;
    }
    test.serial(`${title}: a client that is killed during a call leaves nothing behind`, async (t) => {
      const running = await SERVERS[server].start();
      t.teardown(running.stop);
      const { kill, processes } =
        CLIENTS[client].over === 'stdio' ? await overStdio(t, client, running) : await overHttp(t, client, running);
      t.true(processes.length > 0);
      await kill();
      await assertGone(processes, { timeoutMs: 15_000 });
      await waitFor(async () => (await openSessions(running)) === 0, { message: 'the server to have no session left' });
    });
  }
}

/** What serves one client over HTTP serves the next one, too, where one of the two has no sessions. */
function isSharedBy(client: ClientName, server: ServerName): boolean {
  const { era, over }: ClientKind = CLIENTS[client];
  return over !== 'stdio' && (era === 'modern' || server === 'modernHttp') && server !== 'stateless';
}

/** The client is gone with its connection; for one with a session the request has its time. */
async function endsItsCall(t: ExecutionContext, client: ClientName, { target }: RunningServer): Promise<void> {
  const bridge = await startBridge([...SHORT_TIMES, ...target]);
  t.teardown(() => bridge.stop());
  const url = client === 'httpSse' ? bridge.sseUrl : bridge.url;
  const child = await startDoomed(t, [client, url.href]);
  await kill(child);
  const witness = await CLIENTS[client].connect({ kind: 'url', url }, { name: 'witness' });
  t.teardown(() => witness.close());
  const isIt = (value: unknown) => (value as { readonly label?: unknown } | undefined)?.label === 'to the end';
  const { value } = await seenByServer(witness, 'the end of the call', (entry) => {
    return entry.kind === 'aborted' && isIt(entry.value);
  });
  t.truthy(value);
}

/** Yet long enough for a busy machine to start a server. */
const SHORT_TIMES = ['--request-timeout', '4s', '--session-timeout', '1s'];

interface Doomed {
  /** Resolves when the client is dead. */
  kill(): Promise<void>;
  /** Those that are there for this client alone. */
  readonly processes: readonly number[];
}

/** What was asked before the end of input is answered, as far as the grace time goes: here it never is. */
async function overStdio(t: ExecutionContext, client: ClientName, { target }: RunningServer): Promise<Doomed> {
  const child = await startDoomed(t, [client, '--shutdown-grace', '200ms', ...target]);
  return { kill: () => kill(child), processes: descendantsOf(child.pid ?? Number.NaN) };
}

/**
 * A client over Streamable HTTP that is gone is one that asks nothing any more. Its call may go on for its time, then
 * the session has timed out.
 */
async function overHttp(t: ExecutionContext, client: ClientName, { target }: RunningServer): Promise<Doomed> {
  const bridge = await startBridge([...SHORT_TIMES, ...target]);
  t.teardown(() => bridge.stop());
  const url = client === 'httpSse' ? bridge.sseUrl : bridge.url;
  const child = await startDoomed(t, [client, url.href]);
  const processes = [child.pid ?? Number.NaN, ...bridge.children()];
  t.is(processes.length, target[0] === '--' ? 2 : 1);
  return { kill: () => kill(child), processes };
}

async function startDoomed(t: ExecutionContext, args: readonly string[]): Promise<ChildProcess> {
  const loader = `--import=${import.meta.resolve('tsx')}`;
  const child = spawn(process.execPath, [loader, PROGRAM, ...args], {
    cwd: REPOSITORY,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => void child.kill('SIGKILL'));
  for await (const line of createInterface({ input: child.stdout })) if (line === 'calling') return child;
  throw new Error('the client ended before its call');
}

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/** A server on stdio is gone with its processes. */
async function openSessions({ look }: RunningServer): Promise<number> {
  const { entries = [] } = (await look?.()) ?? {};
  const count = (kind: string) => entries.filter((entry) => entry.kind === kind).length;
  return count('opened') - count('closed');
}
