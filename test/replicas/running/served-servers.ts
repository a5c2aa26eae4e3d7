import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Era } from '../../matrix/matrix-client.ts';
import { inetdProgram, type RunningServer, SERVERS } from '../../matrix/servers.ts';
import { startInetd } from '../../support/inetd.ts';
import type { Seen } from './counted-runs.ts';

/** Each way in which a remote server keeps its side of a session, over each carrier. */
const REMOTE = {
  resumable: () => startListening('resumable'),
  stateless: () => startListening('stateless'),
  httpSse: () => startListening('httpSse'),
  webSocket: () => startListening('webSocket'),
  stream: () => startStream('legacy'),
  modernHttp: () => startListening('modernHttp'),
  modernWebSocket: () => startListening('modernWebSocket'),
  modernStream: () => startStream('modern'),
} as const;

/** Servers whose processes belong to a replica, and end with it. */
const COMMANDS = {
  command: () => describeCommand('legacy'),
  modernCommand: () => describeCommand('modern'),
} as const;

const SERVED = { ...REMOTE, ...COMMANDS };

export type RemoteName = keyof typeof REMOTE;
export type CommandName = keyof typeof COMMANDS;
export type ServedName = RemoteName | CommandName;
export const REMOTE_NAMES = Object.keys(REMOTE) as readonly RemoteName[];
export const COMMAND_NAMES = Object.keys(COMMANDS) as readonly CommandName[];

/** As many processes for modern clients as they need at once. */
const POOL_SIZE = 4;

interface ServedServer {
  /** What a file of servers says of it. */
  readonly entry: Readonly<Record<string, unknown>>;
  readonly era: Era;
  seen(): Promise<readonly Seen[]>;
  stop(): Promise<void>;
}

async function startListening(name: keyof typeof SERVERS): Promise<ServedServer> {
  const server: RunningServer = await SERVERS[name].start();
  const seen = async (): Promise<readonly Seen[]> => ((await server.look?.())?.entries ?? []) as readonly Seen[];
  return { entry: { url: server.target[0] ?? '' }, era: SERVERS[name].era, seen, stop: server.stop };
}

/** A process for each connection. They keep one record. */
async function startStream(era: Era): Promise<ServedServer> {
  const { folder, seen, remove } = await createRecord();
  const inetd = await startInetd(inetdProgram(era, folder));
  return { entry: { url: `tcp://127.0.0.1:${inetd.port}` }, era, seen, stop: () => inetd.stop().finally(remove) };
}

/** All processes that replicas start of it keep one record. */
async function describeCommand(era: Era): Promise<ServedServer> {
  const { folder, seen, remove } = await createRecord();
  const [command, ...args] = inetdProgram(era, folder);
  return { entry: { command, args }, era, seen, stop: remove };
}

async function createRecord() {
  const folder = await mkdtemp(join(tmpdir(), 'portage-served-'));
  return {
    folder,
    async seen(): Promise<readonly Seen[]> {
      const lines = (await readFile(join(folder, 'record'), 'utf8')).split('\n');
      return lines.filter((line) => line !== '').map((line): Seen => JSON.parse(line));
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

export interface ServedServers {
  /** What replicas are started with to serve each server under its name. */
  readonly args: readonly string[];
  seenBy(name: ServedName): Promise<readonly Seen[]>;
  stop(): Promise<void>;
}

/** Starts one of each. */
export async function startServers(names: readonly ServedName[]): Promise<ServedServers> {
  const started = new Map<ServedName, ServedServer>();
  await Promise.all(names.map(async (name) => started.set(name, await SERVED[name]())));
  const folder = await mkdtemp(join(tmpdir(), 'portage-servers-'));
  const file = join(folder, 'servers.json');
  // The era is named, since a busy machine may take longer to start a program than a probe waits for its answer.
  const entries = [...started].map(
    ([name, { entry, era }]) => [name, { ...entry, portage: { protocol: era } }] as const,
  );
  await writeFile(file, JSON.stringify({ mcpServers: Object.fromEntries(entries) }));
  return {
    args: ['--pool-size', String(POOL_SIZE), '--config', file],
    seenBy: async (name) => (await started.get(name)?.seen()) ?? [],
    async stop() {
      await Promise.all([...started.values()].map((server) => server.stop()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}
