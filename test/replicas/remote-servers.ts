import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Era } from '../matrix/matrix-client.ts';
import { inetdProgram, type RunningServer, SERVERS } from '../matrix/servers.ts';
import { startInetd } from '../support/inetd.ts';
import type { Seen } from './counted-runs.ts';

/** Each way in which a remote server keeps its side of a session, over each carrier. */
export const REMOTE = {
  resumable: () => startListening('resumable'),
  stateless: () => startListening('stateless'),
  httpSse: () => startListening('httpSse'),
  webSocket: () => startListening('webSocket'),
  stream: () => startStream('legacy'),
  modernHttp: () => startListening('modernHttp'),
  modernWebSocket: () => startListening('modernWebSocket'),
  modernStream: () => startStream('modern'),
} as const;

export type RemoteName = keyof typeof REMOTE;
export const REMOTE_NAMES = Object.keys(REMOTE) as readonly RemoteName[];

interface RemoteServer {
  readonly url: string;
  readonly era: Era;
  seen(): Promise<readonly Seen[]>;
  stop(): Promise<void>;
}

async function startListening(name: keyof typeof SERVERS): Promise<RemoteServer> {
  const server: RunningServer = await SERVERS[name].start();
  const seen = async (): Promise<readonly Seen[]> => ((await server.look?.())?.entries ?? []) as readonly Seen[];
  return { url: server.target[0] ?? '', era: SERVERS[name].era, seen, stop: server.stop };
}

/** A process for each connection. They keep one record. */
async function startStream(era: Era): Promise<RemoteServer> {
  const folder = await mkdtemp(join(tmpdir(), 'portage-stream-'));
  const inetd = await startInetd(inetdProgram(era, folder));
  return {
    url: `tcp://127.0.0.1:${inetd.port}`,
    era,
    async seen() {
      const lines = (await readFile(join(folder, 'record'), 'utf8')).split('\n');
      return lines.filter((line) => line !== '').map((line): Seen => JSON.parse(line));
    },
    stop: () => inetd.stop().finally(() => rm(folder, { recursive: true, force: true })),
  };
}

export interface RemoteServers {
  /** What replicas are started with to serve each server under its name. */
  readonly args: readonly string[];
  seenBy(name: RemoteName): Promise<readonly Seen[]>;
  stop(): Promise<void>;
}

/** Starts one of each. */
export async function startRemoteServers(names: readonly RemoteName[]): Promise<RemoteServers> {
  const started = new Map<RemoteName, RemoteServer>();
  await Promise.all(names.map(async (name) => started.set(name, await REMOTE[name]())));
  const folder = await mkdtemp(join(tmpdir(), 'portage-remote-'));
  const file = join(folder, 'servers.json');
  // The era is named, since a busy machine may take longer to start a program than a probe waits for its answer.
  const entries = [...started].map(([name, { url, era }]) => [name, { url, portage: { protocol: era } }] as const);
  await writeFile(file, JSON.stringify({ mcpServers: Object.fromEntries(entries) }));
  return {
    args: ['--config', file],
    seenBy: async (name) => (await started.get(name)?.seen()) ?? [],
    async stop() {
      await Promise.all([...started.values()].map((server) => server.stop()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}
