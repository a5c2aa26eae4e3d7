import { waitFor } from '../support/wait-for.ts';
import { CLIENTS, type ClientName, type Front } from './clients.ts';
import type { MatrixClient } from './matrix-client.ts';
import { type RecordEntry, type RunningServer, SERVERS, type ServerName } from './servers.ts';

interface Running {
  readonly server: RunningServer;
  readonly front: Front;
}

/** One pair of client and server with the bridge between; started when the first scenario asks for a client. */
export class Cell {
  readonly title: string;
  readonly #client: ClientName;
  readonly #server: ServerName;
  #running: Promise<Running> | undefined;
  readonly #clients = new Map<string, Promise<MatrixClient>>();

  constructor(client: ClientName, server: ServerName) {
    this.#client = client;
    this.#server = server;
    this.title = `${CLIENTS[client].title} → ${SERVERS[server].title}`;
  }

  /** The client most scenarios use. Each has its own way of telling its messages from those of the others. */
  main(): Promise<MatrixClient> {
    return this.client('main');
  }

  /** Connected at the first call with this name. */
  client(name: string): Promise<MatrixClient> {
    const known = this.#clients.get(name);
    if (known !== undefined) return known;
    const connecting = this.running().then(({ front }) => front.connect(name));
    this.#clients.set(name, connecting);
    return connecting;
  }

  running(): Promise<Running> {
    this.#running ??= this.#start();
    return this.#running;
  }

  async #start(): Promise<Running> {
    const server = await SERVERS[this.#server].start();
    try {
      return { server, front: await CLIENTS[this.#client].start(server.target) };
    } catch (error) {
      await server.stop();
      throw error;
    }
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
