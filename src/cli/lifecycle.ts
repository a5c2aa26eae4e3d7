/** Supervises the bridge until the process ends: signals, fatal errors, and exit codes. */
import { constants } from 'node:os';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { type BridgeError, toBridgeError } from '../errors.ts';

/** The running bridge, as the supervising process uses it. */
export interface RunningBridge {
  /** Replaces the servers; undefined if the servers cannot change. */
  readonly update: ((servers: Config['servers']) => ListChange) | undefined;
  /** Opens the bridge's output files again, after log rotation may have moved them. */
  reopen(): void;
  /** The addresses that clients can connect to. */
  readonly urls: readonly { readonly label: string; readonly url: string }[];
  /** The served servers and their URLs. */
  readonly servers: readonly { readonly name: string; readonly url: string }[];
  /** Undefined if the status is not served. */
  readonly statusUrl: string | undefined;
  /** Stops accepting calls, lets open ones finish within the grace time, then ends streams and children. */
  shutdown(signal: Signal): Promise<void>;
  /** Kills all children synchronously, as a last resort. */
  killNow(): void;
  /** Resolves when the bridge has ended by itself: with an error, or with undefined when its work is done. */
  readonly ended: Promise<BridgeError | undefined>;
}

/** The events of `process` that are used here. Tests pass an EventEmitter. */
export interface ProcessEvents {
  on(event: string, listener: (detail: unknown) => void): unknown;
}

/** A closed terminal sends SIGHUP. Without a listener it would end this process before its children. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
type Signal = (typeof SIGNALS)[number];

const EXIT_SOFTWARE = 70;

/**
 * - `starting`: the bridge is not running yet.
 * - `abandoned`: a signal arrived during the start.
 * - `running`: the bridge serves clients.
 * - `stopping`: the bridge shuts down after a signal.
 * - `ended`: the exit code is decided.
 */
type State = 'starting' | 'abandoned' | 'running' | 'stopping' | 'ended';

/** The changes to a bridge's servers after an update, by name. */
export interface ListChange {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
  readonly unchanged: number;
}

export interface Supervision {
  readonly start: () => Promise<RunningBridge>;
  /** Called for each SIGHUP while the bridge starts or runs. `ends` shuts the bridge down as after other signals. */
  readonly hangUp: () => 'ends' | 'handled';
  /** Announces the addresses of the bridge. */
  readonly announce: (bridge: RunningBridge) => void;
  /** Calls `late` if the shutdown takes longer than all of its parts may take together. */
  readonly whenLate: (late: () => void) => void;
  readonly events: ProcessEvents;
  readonly log: Logger;
}

/** Runs the bridge until it ends or has to end. Resolves with the exit code; the caller must exit immediately. */
export function superviseBridge({ start, events, ...parts }: Supervision): Promise<number> {
  return new Promise((resolve) => new Lifecycle(parts, resolve).run(start, events));
}

/** The interruption of a job that ends by itself, but may be aborted by a signal. */
export interface Interruption {
  readonly signal: AbortSignal;
  /** The exit code after an interruption; undefined if there was none. */
  readonly exitCode: number | undefined;
}

/** The first signal aborts the job, which can then clean up. A second one exits immediately. */
export function listenForSignals(events: ProcessEvents, exitNow: (code: number) => void): Interruption {
  const controller = new AbortController();
  let exitCode: number | undefined;
  for (const signal of SIGNALS) {
    events.on(signal, () => {
      if (exitCode !== undefined) return hurries(signal) ? exitNow(exitCode) : undefined;
      exitCode = exitCodeAfter(signal);
      controller.abort();
    });
  }
  return {
    signal: controller.signal,
    get exitCode() {
      return exitCode;
    },
  };
}

/**
 * Returns true if a repeated signal means that the user wants to exit immediately. SIGHUP does not: a closing terminal
 * sends it more than once, itself and through the shell.
 */
function hurries(signal: Signal): boolean {
  return signal !== 'SIGHUP';
}

/** The exit code that shells report for a process ended by this signal. */
function exitCodeAfter(signal: Signal): number {
  return 128 + constants.signals[signal];
}

class Lifecycle {
  readonly #log: Logger;
  readonly #hangUp: Supervision['hangUp'];
  readonly #announce: Supervision['announce'];
  readonly #whenLate: Supervision['whenLate'];
  readonly #exitWith: (code: number) => void;
  #state: State = 'starting';
  #bridge: RunningBridge | undefined;
  /** The first signal, which is the one that `shutdown` gets. */
  #signal: Signal = 'SIGTERM';

  constructor(
    { log, hangUp, announce, whenLate }: Omit<Supervision, 'start' | 'events'>,
    exitWith: (code: number) => void,
  ) {
    this.#log = log;
    this.#hangUp = hangUp;
    this.#announce = announce;
    this.#whenLate = whenLate;
    this.#exitWith = exitWith;
  }

  run(start: () => Promise<RunningBridge>, events: ProcessEvents): void {
    for (const signal of SIGNALS) events.on(signal, () => this.#takeSignal(signal));
    events.on('uncaughtException', (thrown) => this.#crash(thrown, 'uncaught exception'));
    events.on('unhandledRejection', (thrown) => this.#crash(thrown, 'unhandled rejection'));
    // No child may outlive the process, regardless of why it ends.
    events.on('exit', () => this.#bridge?.killNow());
    start().then(
      (bridge) => this.#started(bridge),
      (thrown: unknown) => this.#fail(toBridgeError(thrown)),
    );
  }

  #started(bridge: RunningBridge): void {
    this.#bridge = bridge;
    if (this.#state === 'ended') return bridge.killNow();
    void bridge.ended.then((error) => this.#bridgeEnded(error));
    if (this.#state === 'abandoned') return this.#stop(bridge);
    this.#state = 'running';
    this.#announce(bridge);
  }

  #takeSignal(signal: Signal): void {
    if (this.#state === 'ended') return;
    if (this.#state === 'stopping' || this.#state === 'abandoned') {
      if (!hurries(signal)) return;
      this.#log.warn(`${signal} again: exiting now`);
      return this.#end(exitCodeAfter(signal));
    }
    if (signal === 'SIGHUP' && this.#hangUp() === 'handled') return;
    this.#signal = signal;
    this.#log.info(`${signal}: shutting down; waiting for open calls (signal again to exit now)`);
    this.#whenLate(() => this.#late());
    if (this.#bridge === undefined) this.#state = 'abandoned';
    else this.#stop(this.#bridge);
  }

  #stop(bridge: RunningBridge): void {
    this.#state = 'stopping';
    bridge.shutdown(this.#signal).then(
      () => this.#end(0),
      (thrown: unknown) => this.#fail(toBridgeError(thrown)),
    );
  }

  #late(): void {
    if (this.#state === 'ended') return;
    this.#log.fatal('the shutdown took too long; exiting now');
    this.#end(EXIT_SOFTWARE);
  }

  #bridgeEnded(error: BridgeError | undefined): void {
    if (error !== undefined) this.#fail(error);
    else if (this.#state === 'running') this.#end(0);
  }

  #fail(error: BridgeError): void {
    if (this.#state === 'ended') return;
    this.#log.fatal({ code: error.code, ...causeOf(error) }, error.message);
    this.#end(error.audiences.exit ?? EXIT_SOFTWARE);
  }

  #crash(thrown: unknown, how: string): void {
    if (this.#state === 'ended') return;
    this.#log.fatal({ code: 'ERR_INTERNAL', err: thrown }, `${how}: this is a bug in mcp-portage; please report it`);
    this.#end(EXIT_SOFTWARE);
  }

  #end(code: number): void {
    this.#state = 'ended';
    this.#bridge?.killNow();
    this.#exitWith(code);
  }
}

/** A longer list would not be read. */
const MAX_ANNOUNCED = 25;

/** Logs one line for each address, which programs can parse. */
export function announceUrls({ urls }: Pick<RunningBridge, 'urls'>, log: Logger): void {
  if (urls.length > MAX_ANNOUNCED) {
    const [first, ...others] = urls;
    log.info({ endpoint: first }, `${first?.url}, and ${others.length} more addresses; GET / lists them`);
    return;
  }
  const width = Math.max(0, ...urls.map(({ label }) => label.length));
  for (const endpoint of urls) log.info({ endpoint }, `${endpoint.label.padEnd(width)}  ${endpoint.url}`);
}

/** Logs a stack for our own bugs only; the messages of other errors are sufficient. */
export function causeOf(error: BridgeError): { readonly err?: unknown } {
  return error.code === 'ERR_INTERNAL' ? { err: error.cause ?? error } : {};
}
