import { waitFor } from '../support/wait-for.ts';
import { CLIENTS, type ClientName } from './clients.ts';
import { type Front, startFront } from './fronts.ts';
import type { ConnectOptions, Era, MatrixClient } from './matrix-client.ts';
import { type RecordEntry, type RunningServer, SERVERS, type ServerName } from './servers.ts';

export interface Running {
  readonly server: RunningServer;
  readonly front: Front;
}

/** Starts a server, and what stands between it and clients of a kind. */
export type StartPair = (client: ClientName, server: ServerName) => Promise<Running>;

/** A server that no other cell meets. */
export function besideOwnServer(start: typeof startFront): StartPair {
  return async (client, name) => {
    const server = await SERVERS[name].start();
    try {
      return { server, front: await start(client, server.target) };
    } catch (error) {
      await server.stop();
      throw error;
    }
  };
}

/** One pair of client and server with the bridge between; started when the first scenario asks for a client. */
export class Cell {
  readonly title: string;
  readonly client: ClientName;
  readonly server: ServerName;
  readonly #start: StartPair;
  #running: Promise<Running> | undefined;
  readonly #clients = new Map<string, Promise<MatrixClient>>();

  /** @param start default: the bridge, with a server of its own */
  constructor(client: ClientName, server: ServerName, start: StartPair = besideOwnServer(startFront)) {
    this.client = client;
    this.server = server;
    this.title = `${CLIENTS[client].title} → ${SERVERS[server].title}`;
    this.#start = start;
  }

  get clientEra(): Era {
    return CLIENTS[this.client].era;
  }

  get serverEra(): Era {
    return SERVERS[this.server].era;
  }

  /** Over HTTP the modern era cancels by closing a stream, which says nothing. */
  get hasMessageForCancellation(): boolean {
    const isMute = ({ era, over }: { readonly era: Era; readonly over: string }) =>
      era === 'modern' &&
      over !== 'stdio' &&
      over !== 'stream' &&
      over !== 'webSocket' &&
      over !== 'grpc' &&
      over !== 'mqtt';
    return !isMute(CLIENTS[this.client]) && !isMute(SERVERS[this.server]);
  }

  /** The client most scenarios use. Each has its own way of telling its messages from those of the others. */
  main(): Promise<MatrixClient> {
    return this.connected('main');
  }

  /** Connected at the first call with this name. */
  connected(name: string, options: Omit<ConnectOptions, 'name'> = {}): Promise<MatrixClient> {
    const known = this.#clients.get(name);
    if (known !== undefined) return known;
    const connecting = this.running().then(({ front }) => front.connect({ name, ...options }));
    this.#clients.set(name, connecting);
    return connecting;
  }

  running(): Promise<Running> {
    this.#running ??= this.#start(this.client, this.server);
    return this.#running;
  }

  /** All clients that were connected. */
  clients(): Promise<readonly MatrixClient[]> {
    return Promise.all(this.#clients.values());
  }

  /** Whatever happened before. May be called twice. */
  async stop(): Promise<void> {
    if (this.#running === undefined) return;
    const { server, front } = await this.#running;
    await Promise.allSettled([...this.#clients.values()].map(async (client) => (await client).close()));
    await front.stop().finally(server.stop);
  }
}

interface RecordPage {
  readonly session: string;
  readonly next: number;
  readonly entries: readonly RecordEntry[];
}

/** What the server saw so far, in all its sessions, and which of them is this client's. */
export async function recordOf(client: MatrixClient, since = 0): Promise<RecordPage> {
  return (await client.request('test/record', { since })) as unknown as RecordPage;
}

/** Waits until the server has seen it. */
export async function seenByServer(
  client: MatrixClient,
  what: string,
  matches: (entry: RecordEntry) => boolean,
): Promise<RecordEntry> {
  return waitFor(async () => (await recordOf(client)).entries.find(matches), { message: `the server to see ${what}` });
}
