import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import test, { type ExecutionContext } from 'ava';
import { type LogLine, REPOSITORY, readLog, startBridge } from '../support/bridge.ts';
import { PATIENT_BROKER, startMosquitto, WHY_NO_MOSQUITTO } from '../support/mosquitto.ts';
import { assertGone, descendantsOf } from '../support/processes.ts';
import { says } from '../support/says.ts';
import { serverProgram } from '../support/server-program.ts';
import { TYPESCRIPT } from '../support/typescript.ts';
import { waitFor } from '../support/wait-for.ts';
import { seenByServer } from './cell.ts';
import { CLIENTS, type ClientKind, type ClientName, endpointAt } from './clients.ts';
import { optionsFor, urlFor } from './fronts.ts';
import { type RunningServer, SERVERS, type ServerName } from './servers.ts';

const PROGRAM = serverProgram(new URL('./doomed-client.ts', import.meta.url));
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

const AT_A_BROKER: readonly (readonly [ClientName, ServerName])[] = [
  ['mqtt', 'stdio'],
  ['modernMqtt', 'modernStdio'],
  ['stdio', 'mqtt'],
  ['streamable', 'mqtt'],
  ['modernHttp', 'mqtt'],
  ['mqtt', 'mqtt'],
];

/** Clients on each carrier, and servers behind each, with one of each kind: what they are joined with changes nothing. */
const CARRIED: readonly (readonly [ClientName, ServerName])[] = [
  ['socket', 'stdio'],
  ['webSocket', 'stdio'],
  ['stream', 'modernStdio'],
  ['modernWebSocket', 'modernStdio'],
  ['stdio', 'webSocket'],
  ['stdio', 'stream'],
  ['streamable', 'socket'],
  ['streamable', 'modernWebSocket'],
  ['modernHttp', 'webSocket'],
  ['modernHttp', 'modernStream'],
  ['grpc', 'stdio'],
  ['modernGrpc', 'modernStdio'],
  ['stdio', 'grpc'],
  ['streamable', 'modernGrpc'],
  ['modernHttp', 'grpc'],
  ['grpc', 'grpc'],
  ...(WHY_NO_MOSQUITTO === undefined ? AT_A_BROKER : []),
];
const PAIRS = [
  ...CLIENT_NAMES.flatMap((client) => SERVER_NAMES.map((server) => [client, server] as const)),
  ...CARRIED,
];

for (const [client, server] of PAIRS) {
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
    const { kill, processes, log } =
      CLIENTS[client].over === 'stdio' ? await overStdio(t, client, running) : await overServe(t, client, running);
    t.true(processes.length > 0);
    await kill();
    await assertGone(processes);
    await waitFor(async () => (await openSessions(running)) === 0, { message: 'the server to have no session left' });
    says(t, { logs: await log() }, []);
  });
}

/** What serves one client over HTTP serves the next one, too, where one of the two has no sessions. */
function isSharedBy(client: ClientName, server: ServerName): boolean {
  const { era, over }: ClientKind = CLIENTS[client];
  return over !== 'stdio' && (era === 'modern' || server === 'modernHttp') && server !== 'stateless';
}

/** The client is gone with its connection; for one with a session the request has its time. */
async function endsItsCall(t: ExecutionContext, client: ClientName, { target }: RunningServer): Promise<void> {
  const { bridge, address } = await serve(t, client, target);
  const { child } = await startDoomed(t, [client, address]);
  await kill(child);
  const witness = await CLIENTS[client].connect(endpointAt(address), { name: 'witness' });
  t.teardown(() => witness.close());
  const isIt = (value: unknown) => (value as { readonly label?: unknown } | undefined)?.label === 'to the end';
  const { value } = await seenByServer(witness, 'the end of the call', (entry) => {
    return entry.kind === 'aborted' && isIt(entry.value);
  });
  t.truthy(value);
  await witness.close();
  await bridge.stop();
  says(t, bridge, []);
}

/** Yet long enough for a busy machine to start a server, and for clients that are held up between two messages. */
const SHORT_TIMES = ['--request-timeout', '8s', '--session-timeout', '4s'];

interface Doomed {
  /** Resolves when the client is dead. */
  kill(): Promise<void>;
  /** Those that are there for this client alone. */
  readonly processes: readonly number[];
  /** Of the bridge, when it has ended. */
  log(): Promise<readonly LogLine[]>;
}

/** The bridge sees that its parent is gone; what was asked is answered as far as the grace time goes: here it never is. */
async function overStdio(t: ExecutionContext, client: ClientName, { target }: RunningServer): Promise<Doomed> {
  const { child, logs, read } = await startDoomed(t, [client, '--shutdown-grace', '200ms', ...target]);
  return {
    kill: () => kill(child),
    processes: descendantsOf(child.pid ?? Number.NaN),
    log: () => read.then(() => logs),
  };
}

/**
 * A client over Streamable HTTP that is gone is one that asks nothing anymore. Its call may go on for its time, then
 * the session has timed out.
 */
async function overServe(t: ExecutionContext, client: ClientName, { target }: RunningServer): Promise<Doomed> {
  const { bridge, address } = await serve(t, client, target);
  const { child } = await startDoomed(t, [client, address]);
  const processes = [child.pid ?? Number.NaN, ...bridge.children()];
  t.is(processes.length, target[0] === '--' ? 2 : 1);
  const log = () => bridge.stop().then(() => bridge.logs);
  return { kill: () => kill(child), processes, log };
}

/** The bridge where clients of this kind look for it. */
async function serve(t: ExecutionContext, client: ClientName, target: readonly string[]) {
  const kind: ClientKind = CLIENTS[client];
  if (kind.over === 'mqtt') {
    const broker = await startMosquitto(PATIENT_BROKER);
    t.teardown(broker.stop);
    const address = `${broker.url}/matrix/bridge`;
    const bridge = await startBridge([...SHORT_TIMES, '--dial', address, ...target]);
    t.teardown(() => bridge.stop());
    return { bridge, address };
  }
  if (kind.over !== 'socket') {
    const bridge = await startBridge([...SHORT_TIMES, ...optionsFor(kind), ...target]);
    t.teardown(() => bridge.stop());
    return { bridge, address: (await urlFor(kind, bridge)).href };
  }
  const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-socket-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'mcp.sock');
  const bridge = await startBridge([...SHORT_TIMES, '--socket', path, ...target]);
  t.teardown(() => bridge.stop());
  return { bridge, address: `unix://${path}#/mcp` };
}

type DoomedProcess = ChildProcessByStdio<null, Readable, Readable>;

interface Started {
  readonly child: DoomedProcess;
  /** What it says on stderr, and the bridge that it starts, if it does. */
  readonly logs: readonly LogLine[];
  /** All of it is there. */
  readonly read: Promise<void>;
}

async function startDoomed(t: ExecutionContext, args: readonly string[]): Promise<Started> {
  const words = PROGRAM.endsWith('.ts') ? [TYPESCRIPT, PROGRAM] : [PROGRAM];
  const child = spawn(process.execPath, [...words, ...args], {
    cwd: REPOSITORY,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => void child.kill('SIGKILL'));
  const logs: LogLine[] = [];
  const read = readLog(child.stderr, logs);
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === 'calling') return { child, logs, read };
  }
  throw new Error(`the client ended before its call; it said ${JSON.stringify(logs)}`);
}

async function kill(child: DoomedProcess): Promise<void> {
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
