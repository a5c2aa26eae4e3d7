import type { Deps } from '../../../deps.ts';
import type { Implementation } from '../../../mcp/vocabulary/meta.ts';
import type { CarrierListener } from '../../duplex/carrier.ts';
import type { ChildSlot } from '../child-limit.ts';
import { ReplaceableCarrier, type RestartOutcome, type ServerProcesses } from './replaceable-carrier.ts';

/** Files that have changed together. */
export interface FileChange {
  /** One of the files, as it is shown to people. */
  readonly example: string;
  /** The number of the files. */
  readonly files: number;
}

/** Tells of changes until it is closed. */
export interface ChangeWatch {
  close(): Promise<void>;
}

/** Watches the files of a server. */
export type WatchForChanges = (changed: (change: FileChange) => void) => ChangeWatch;

export interface RestartsOptions {
  readonly watch: WatchForChanges;
  /** The name of the server in the log. */
  readonly name: string;
  /** Time for open calls to end before their process is replaced. */
  readonly graceMs: number;
  /** Time for a process to answer the handshake; 0: no limit. */
  readonly handshakeTimeoutMs: number;
  readonly clientInfo: Implementation;
  readonly deps: Pick<Deps, 'clock' | 'log' | 'randomId'>;
}

/**
 * Told of each change, before a process is started for it: earlier failures say nothing of the changed server.
 * @param restarted number of processes that are restarted
 */
export type Changed = (restarted: number) => void;

/**
 * Restarts the processes of one server when its files change. The files are watched while there are connectors, of
 * which a server with variables for its callers has several.
 */
export class Restarts {
  readonly #options: RestartsOptions;
  readonly #connectors = new Set<Changed>();
  readonly #carriers = new Set<ReplaceableCarrier>();
  #watch: ChangeWatch | undefined;
  /** The changes that the latest restart is for. Undefined when it has ended. */
  #latest: { readonly example: string; files: number } | undefined;

  constructor(options: RestartsOptions) {
    this.#options = options;
  }

  /** Adds a connector. Returns what removes it, which resolves when nothing is watched for it anymore. */
  join(connector: Changed): () => Promise<void> {
    this.#connectors.add(connector);
    this.#watch ??= this.#options.watch((change) => void this.#changed(change));
    return async () => {
      this.#connectors.delete(connector);
      if (this.#connectors.size > 0) return;
      const watch = this.#watch;
      this.#watch = undefined;
      await watch?.close();
    };
  }

  /** Carries a connection. Throws what `ServerProcesses.start` throws. */
  carry(processes: ServerProcesses, slot: ChildSlot, listener: CarrierListener): ReplaceableCarrier {
    const ended = (carrier: ReplaceableCarrier): void => void this.#carriers.delete(carrier);
    const carrier = new ReplaceableCarrier({ ...this.#options, processes, ended }, slot, listener);
    this.#carriers.add(carrier);
    return carrier;
  }

  async #changed(change: FileChange): Promise<void> {
    const { clock, log } = this.#options.deps;
    const carriers = [...this.#carriers];
    for (const connector of this.#connectors) connector(carriers.length);
    if (this.#latest !== undefined && carriers.every(({ isAboutToStart }) => isAboutToStart)) {
      this.#latest.files += change.files;
      return;
    }
    const round = { ...change };
    this.#latest = round;
    const startedMs = clock.now();
    const restarted = carriers.map((carrier) => carrier.restart());
    log.info(`${describeChange(round)}; ${this.#describeStart(restarted.length)}`);
    const outcomes = await Promise.all(restarted);
    if (this.#latest === round) this.#latest = undefined;
    this.#logOutcome(outcomes, round, Math.round(clock.now() - startedMs));
  }

  #describeStart(processes: number): string {
    const { name } = this.#options;
    if (processes === 0) return `${name} is not running, and is started for its next client`;
    return processes === 1 ? `restarting ${name}` : `restarting the ${processes} processes of ${name}`;
  }

  #logOutcome(outcomes: readonly RestartOutcome[], change: FileChange, tookMs: number): void {
    const { name, deps } = this.#options;
    const failure = outcomes.find((outcome) => outcome.kind === 'failed');
    const what = describeChange(change);
    if (failure !== undefined) {
      const { code, message } = failure.error;
      const again = 'it is started again at the next change, and for the next call';
      deps.log.warn({ code }, `${name} does not start since ${what}; ${again}. ${message}`);
    } else if (outcomes.some(({ kind }) => kind === 'ready')) {
      deps.log.info(`${name} is ready again after ${tookMs} ms, since ${what}`);
    }
  }
}

function describeChange({ example, files }: FileChange): string {
  if (files === 1) return `${example} changed`;
  return `${example} and ${files - 1} ${files === 2 ? 'other file' : 'other files'} changed`;
}
