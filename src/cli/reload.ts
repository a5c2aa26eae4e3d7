/** A running bridge is given the servers of its configuration file again when that changes, or when it is told to read it. */
import { stat } from 'node:fs/promises';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { fingerprint } from '../config.ts';
import type { Clock } from '../deps.ts';
import { toBridgeError } from '../errors.ts';
import type { RunningBridge } from './lifecycle.ts';
import type { LoadedConfig } from './load-config.ts';

/** Asking the disk is sure where watching is not: in containers, on network drives, behind links that are replaced. */
const POLL_MS = 1000;

export interface ReloadParts {
  readonly bridge: Pick<RunningBridge, 'update' | 'urls'>;
  /** What it runs on now. */
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
  /** Begins when the one that runs has ended. */
  #next: Promise<void> | undefined;

  constructor(parts: ReloadParts) {
    this.#parts = parts;
    this.#current = parts.loaded;
  }

  /** Looks for changes from now on. Returns the function that ends it. */
  start(): () => void {
    const first = this.#look().then((state) => {
      this.#read = state;
      this.#seen = state;
    });
    return this.#parts.clock.every(POLL_MS, () => void first.then(() => this.#poll()));
  }

  /** Reads the file, whether or not it seems to have changed. */
  reload(): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#reload().finally(() => {
        this.#running = undefined;
      });
      return this.#running;
    }
    // What is there now may have come after the one that runs has looked; however many ask, one more will see it.
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.reload();
    });
    return this.#next;
  }

  async #poll(): Promise<void> {
    const state = await this.#look();
    // A file that is being written is read when it has stayed the same for a while.
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
      log.error({ code: error.code }, `${file} was read again and changes nothing, for it is wrong: ${error.message}`);
      return;
    }
    for (const warning of loaded.warnings) log.warn(warning);
    if (fingerprint(apartFromServers(loaded.config)) !== fingerprint(apartFromServers(this.#current.config))) {
      log.warn(
        `${file} says something new of the listener, the process or the log: that takes effect at the next start.`,
      );
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
    log.info(`${file} was read again: ${parts.join(', ')}`);
    for (const { label, url } of bridge.urls)
      if (added.includes(label)) log.info({ endpoint: { label, url } }, `${label}  ${url}`);
  }
}

/** An entry that is wrong now changes nothing, as a file that is: its server may have calls, and the mistake be half a word. */
function withWrongServersAsTheyWere(loaded: LoadedConfig, before: LoadedConfig): LoadedConfig {
  const { servers } = loaded.config;
  const [first, ...others] = servers;
  const kept = before.config.servers.filter(({ listing }) => {
    const isWrong = listing !== undefined && loaded.leftOut.includes(listing.name);
    return isWrong && !servers.some((server) => server.listing?.segment === listing.segment);
  });
  return { ...loaded, config: { ...loaded.config, servers: [first, ...others, ...kept] } };
}

function apartFromServers({ listener, limits, observation, cluster, log }: Config): Omit<Config, 'servers'> {
  // How many processes there may be together follows from the servers, unless it is said.
  return { listener, limits: { ...limits, maxChildren: 0 }, observation, cluster, log };
}

function describe(what: string, names: readonly string[]): readonly string[] {
  return names.length === 0 ? [] : [`${what} ${names.join(', ')}`];
}
