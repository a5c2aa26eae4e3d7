/** Reads the configuration file again when it changes or on request, and updates the servers of the running bridge. */
import { stat } from 'node:fs/promises';
import type { Logger } from 'pino';
import { collectHeaders } from '../config/aggregate.ts';
import type { ServerConfig } from '../config/server.ts';
import type { Config } from '../config.ts';
import { fingerprint } from '../config.ts';
import type { Clock } from '../deps.ts';
import { toBridgeError } from '../errors.ts';
import type { RunningBridge } from './lifecycle.ts';
import type { LoadedConfig } from './load-config.ts';

/**
 * The files are polled, since watching is unreliable in containers, on network drives, and for links that are replaced.
 */
const POLL_MS = 1000;

export interface ReloadParts {
  readonly bridge: Pick<RunningBridge, 'update' | 'urls'>;
  /** The configuration that the bridge started with. */
  readonly loaded: LoadedConfig;
  readonly load: () => Promise<LoadedConfig>;
  readonly clock: Clock;
  readonly log: Logger;
}

export class Reload {
  readonly #parts: ReloadParts;
  #current: LoadedConfig;
  #seen: string | undefined;
  #read: string | undefined;
  #running: Promise<void> | undefined;
  /** The reload that starts when the running one has ended. */
  #next: Promise<void> | undefined;

  constructor(parts: ReloadParts) {
    this.#parts = parts;
    this.#current = parts.loaded;
  }

  /** Starts to poll for changes. Returns a function that stops it. */
  start(): () => void {
    const first = this.#look().then((state) => {
      this.#read = state;
      this.#seen = state;
    });
    return this.#parts.clock.every(POLL_MS, () => void first.then(() => this.#poll()));
  }

  /** Reads the file, even if it has not changed. */
  reload(): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#reload().finally(() => {
        this.#running = undefined;
      });
      return this.#running;
    }
    // The running reload may have read the file before the latest change, so another one follows. All callers share it.
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.reload();
    });
    return this.#next;
  }

  async #poll(): Promise<void> {
    const state = await this.#look();
    // A file that is being written is read once it has not changed between two polls.
    const isSettled = state === this.#seen;
    this.#seen = state;
    if (!isSettled || state === this.#read) return;
    this.#read = state;
    await this.reload();
  }

  async #look(): Promise<string> {
    const states = this.#current.files.map(async (path) => {
      const found = await stat(path).catch(() => undefined);
      return found === undefined ? 'none' : `${found.ino} ${found.size} ${found.mtimeMs} ${found.mode} ${found.uid}`;
    });
    return (await Promise.all(states)).join(', ');
  }

  async #reload(): Promise<void> {
    const { bridge, load, log } = this.#parts;
    const [file = 'the configuration file'] = this.#current.files;
    let loaded: LoadedConfig;
    try {
      loaded = await load();
    } catch (thrown) {
      const error = toBridgeError(thrown);
      log.error(
        { code: error.code },
        `${file} has mistakes, so the previous configuration stays in use: ${error.message}`,
      );
      return;
    }
    for (const warning of loaded.warnings) log.warn(warning);
    if (fingerprint(apartFromServers(loaded.config)) !== fingerprint(apartFromServers(this.#current.config))) {
      log.warn(`${file} changes options of the listener, the process or the log, which take effect at the next start.`);
    }
    loaded = withWrongServersAsTheyWere(loaded, this.#current);
    this.#current = loaded;
    const change = bridge.update?.(loaded.config.servers);
    if (change === undefined) return;
    const { added, changed, removed, unchanged } = change;
    const parts = [
      ...describe('added', added),
      ...describe('changed', changed),
      ...describe('removed', removed),
      `${unchanged} unchanged`,
    ];
    log.info(`${file} was reloaded: ${parts.join(', ')}`);
    for (const { label, url } of bridge.urls)
      if (added.includes(label)) log.info({ endpoint: { label, url } }, `${label}  ${url}`);
  }
}

/**
 * Keeps the previous configuration of servers whose entries are now wrong, just as a wrong file changes nothing: the
 * entry may be half edited, and its server may have open calls.
 */
function withWrongServersAsTheyWere(loaded: LoadedConfig, before: LoadedConfig): LoadedConfig {
  const { servers } = loaded.config;
  const [first, ...others] = servers;
  const kept = before.config.servers.filter(({ listing }) => {
    const isWrong = listing !== undefined && loaded.leftOut.includes(listing.name);
    return isWrong && !servers.some((server) => server.listing?.segment === listing.segment);
  });
  if (kept.length === 0) return loaded;
  const all: Config['servers'] = [first, ...others, ...kept];
  // The aggregate passes on what its members want to be shown, and those that stay are among them.
  const collected = (server: ServerConfig) =>
    server.target.kind === 'aggregate' ? collectHeaders(server, all) : server;
  return { ...loaded, config: { ...loaded.config, servers: [collected(first), ...others, ...kept] } };
}

function apartFromServers({ listener, limits, observation, cluster, log }: Config): Omit<Config, 'servers'> {
  // The default of `maxChildren` depends on the servers, so it is not compared.
  return { listener, limits: { ...limits, maxChildren: 0 }, observation, cluster, log };
}

function describe(what: string, names: readonly string[]): readonly string[] {
  return names.length === 0 ? [] : [`${what} ${names.join(', ')}`];
}
