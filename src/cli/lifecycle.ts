/** From the start of the bridge to the end of the process: signals, fatal errors, exit codes. */
import { constants } from 'node:os';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { type BridgeError, toBridgeError } from '../errors.ts';

/** The running bridge, as the process sees it. */
export interface RunningBridge {
  /** Serves these from now on; undefined: what it serves cannot change. */
  readonly update: ((servers: Config['servers']) => ListChange) | undefined;
  /** Files that it writes may have been moved away: it opens them again. */
  reopen(): void;
  /** Where clients can connect. */
  readonly urls: readonly { readonly label: string; readonly url: string }[];
  /** What is served, and where clients find it. */
  readonly servers: readonly { readonly name: string; readonly url: string }[];
  /** Undefined: nobody can look at it. */
  readonly statusUrl: string | undefined;
  /** Stops accepting, lets calls finish within the grace time, ends streams and children. */
  shutdown(signal: Signal): Promise<void>;
  /** Last resort, synchronous. */
  killNow(): void;
  /** Resolves when the bridge has ended by itself: with what went wrong, or undefined when its work is done. */
  readonly ended: Promise<BridgeError | undefined>;
}

/** What of `process` is listened to; tests pass an EventEmitter. */
export interface ProcessEvents {
  on(event: string, listener: (detail: unknown) => void): unknown;
}

/** Hanging up is what a closed terminal sends; without a listener it would end us before our children. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
type Signal = (typeof SIGNALS)[number];

const EXIT_SOFTWARE = 70;

/**
 * `starting` the bridge is not up yet · `abandoned` a signal came before it was · `running` · `stopping` it is winding
 * down after a signal · `ended` the exit code is decided.
 */
type State = 'starting' | 'abandoned' | 'running' | 'stopping' | 'ended';

/** What has become of the servers of a bridge, by name. */
export interface ListChange {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
  readonly unchanged: number;
}

export interface Supervision {
  readonly start: () => Promise<RunningBridge>;
  /** What a hang-up means, other than the end of it all; asked when it comes. */
  readonly hangUp: () => 'ends' | 'handled';
  /** Tells where the bridge can be reached. */
  readonly announce: (bridge: RunningBridge) => void;
  /** Calls `late` when the end has taken longer than all its parts may. */
  readonly whenLate: (late: () => void) => void;
  readonly events: ProcessEvents;
  readonly log: Logger;
}

/** Runs the bridge until it or the process has to end. Resolves with the exit code, which the caller has to exit with at once. */
export function superviseBridge({ start, events, ...parts }: Supervision): Promise<number> {
  return new Promise((resolve) => new Lifecycle(parts, resolve).run(start, events));
}

/** A job that ends by itself, but may be told to end sooner. */
export interface Interruption {
  readonly signal: AbortSignal;
  /** What the process should exit with; undefined: nobody interrupted it. */
  readonly exitCode: number | undefined;
}

/** The first signal asks for the end, so that nothing is left behind; a second one has it at once. */
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

/** A terminal that closes says so more than once, itself and through the shell: nobody has lost patience. */
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
  /** The first one. */
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
    // Whatever ends the process, no child may outlive it.
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
      this.#log.warn(`${signal} again: exiting at once`);
      return this.#end(exitCodeAfter(signal));
    }
    if (signal === 'SIGHUP' && this.#hangUp() === 'handled') return;
    this.#signal = signal;
    this.#log.info(`${signal}: shutting down, running calls may finish (once more to exit at once)`);
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
    this.#log.fatal('the bridge has not ended in time after the signal: exiting, whatever it waits for');
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
    this.#log.fatal({ code: 'ERR_INTERNAL', err: thrown }, `${how}: this is a bug in mcp-portage, please report it`);
    this.#end(EXIT_SOFTWARE);
  }

  #end(code: number): void {
    this.#state = 'ended';
    this.#bridge?.killNow();
    this.#exitWith(code);
  }
}

/** More lines would be read by nobody. */
const MAX_ANNOUNCED = 25;

/** One line an endpoint, for programs. */
export function announceUrls({ urls }: Pick<RunningBridge, 'urls'>, log: Logger): void {
  if (urls.length > MAX_ANNOUNCED) {
    const [first, ...others] = urls;
    log.info({ endpoint: first }, `${first?.url}, and ${others.length} more addresses, which GET / lists`);
    return;
  }
  const width = Math.max(0, ...urls.map(({ label }) => label.length));
  for (const endpoint of urls) log.info({ endpoint }, `${endpoint.label.padEnd(width)}  ${endpoint.url}`);
}

/** A stack is shown for our own bugs only; other errors explain themselves. */
function causeOf(error: BridgeError): { readonly err?: unknown } {
  return error.code === 'ERR_INTERNAL' ? { err: error.cause ?? error } : {};
}
