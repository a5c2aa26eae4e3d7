import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StartPair } from '../../matrix/cell.ts';
import { CLIENTS } from '../../matrix/clients.ts';
import { type RunningServer, SERVERS, type ServerName } from '../../matrix/servers.ts';
import { urlOf } from './balancer.ts';
import { startTestBed, type TestBed } from './test-bed.ts';

/** As many processes for modern clients as a scenario needs at once, as with one bridge. */
const POOL = ['--pool-size', '8'];

/** Nobody leaves here, and a busy machine must not look like one. */
const LEASE_MS = 30_000;

interface Started {
  readonly servers: ReadonlyMap<ServerName, RunningServer>;
  readonly bed: TestBed;
  stop(): Promise<void>;
}

/**
 * Three replicas behind a balancer that takes turns, in place of the one bridge. They serve all these servers, each under its
 * name, since to start three of them for each server takes longer than most of what is tried there.
 */
export class ClusterFront {
  readonly #names: readonly ServerName[];
  #started: Promise<Started> | undefined;
  /** Cells that have not stopped. The last one to do so ends all that runs here. */
  readonly #open = new Set<ServerName>();

  constructor(names: readonly ServerName[]) {
    this.#names = names;
  }

  /** Everything runs from the first cell on. */
  readonly start: StartPair = async (client, name) => {
    this.#open.add(name);
    this.#started ??= startAll(this.#names);
    const { servers, bed } = await this.#started;
    const server = servers.get(name);
    if (server === undefined) throw new Error(`${name} is none of ${this.#names.join(', ')}`);
    const endpoint = { kind: 'url', url: urlOf(client, name, bed.balancer) } as const;
    const bridges = bed.places.map(({ bridge }) => bridge);
    return {
      // It ends after the replicas, which would look for it otherwise.
      server: { ...server, stop: async () => {} },
      front: {
        get logs() {
          return bridges.flatMap(({ logs }) => logs);
        },
        connect: (options) => CLIENTS[client].connect(endpoint, options),
        processes: () => bridges.flatMap(({ pid, children }) => [pid, ...children()]),
        stop: () => this.#leave(name),
      },
    };
  };

  async #leave(name: ServerName): Promise<void> {
    if (this.#open.delete(name) && this.#open.size === 0) await (await this.#started)?.stop();
  }
}

async function startAll(names: readonly ServerName[]): Promise<Started> {
  const folder = await mkdtemp(join(tmpdir(), 'portage-servers-'));
  const servers = new Map<ServerName, RunningServer>();
  const stopServers = async (): Promise<void> => {
    await Promise.all([...servers.values()].map((server) => server.stop()));
    await rm(folder, { recursive: true, force: true });
  };
  try {
    for (const name of names) servers.set(name, await SERVERS[name].start());
    const file = join(folder, 'servers.json');
    const entries = [...servers].map(([name, { target }]) => [name, entryOf(target)] as const);
    await writeFile(file, JSON.stringify({ mcpServers: Object.fromEntries(entries) }));
    const bed = await startTestBed({ args: [...POOL, '--config', file], leaseMs: LEASE_MS });
    return { servers, bed, stop: () => bed.stop().finally(stopServers) };
  } catch (error) {
    await stopServers();
    throw error;
  }
}

/** What a file of servers says of what else is an argument: a URL, or `--` and a command. */
function entryOf([first = '', command = '', ...args]: readonly string[]): Readonly<Record<string, unknown>> {
  return first === '--' ? { command, args } : { url: first };
}
