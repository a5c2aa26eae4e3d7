import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { CallerDialers, CallerEnvironment, DialerForCaller, UpstreamDialer } from '../../relay/ports.ts';
import type { Readiness } from '../../relay/readiness.ts';

/**
 * An unused dialer is closed after this time, the same as pooled sessions. Until then it keeps what it has learned
 * about the server and its pool.
 */
export const IDLE_DIALER_MS = 5 * 60_000;
/** Limit of dialers, because callers choose the values. */
export const MAX_DIALERS = 256;

export interface DialerByEnvironmentOptions {
  /** Creates a dialer whose processes have these variables. Dialers share nothing. */
  readonly create: (environment: CallerEnvironment) => UpstreamDialer;
  readonly clock: Clock;
}

interface Entry {
  readonly dialer: UpstreamDialer;
  links: number;
  cancelEnd: (() => void) | undefined;
}

/**
 * A server whose processes get information about their caller in environment variables. Each combination of values has
 * its own dialer.
 */
export class DialerByEnvironment implements CallerDialers {
  readonly #options: DialerByEnvironmentOptions;
  /** Dialer for callers without values. It is created at once, so that a wrong command is reported at the start. */
  readonly #nameless: UpstreamDialer;
  /** Least recently used first. */
  readonly #entries = new Map<string, Entry>();
  readonly #ending = new Map<UpstreamDialer, Promise<void>>();

  constructor(options: DialerByEnvironmentOptions) {
    this.#options = options;
    this.#nameless = options.create({});
  }

  get name(): string {
    return this.#nameless.name;
  }

  forCaller(environment: CallerEnvironment = {}): DialerForCaller {
    const key = keyOf(environment);
    if (key === NAMELESS) return this.#nameless;
    return {
      dial: (owner, session) => this.#use(key, environment, (dialer) => dialer.dial(owner, session)),
      dialCalls: (owner, context) => this.#use(key, environment, (dialer) => dialer.dialCalls(owner, context)),
      callServer: () => this.#use(key, environment, (dialer) => dialer.callServer()),
    };
  }

  /** Uses the caller's dialer, which stays open until `linkEnded`. */
  #use<Used>(key: string, environment: CallerEnvironment, use: (dialer: UpstreamDialer) => Used): Used {
    const entry = this.#entries.get(key) ?? this.#create(environment);
    entry.cancelEnd?.();
    entry.cancelEnd = undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    entry.links += 1;
    try {
      return use(entry.dialer);
    } catch (thrown) {
      this.linkEnded(environment);
      throw thrown;
    }
  }

  #create(environment: CallerEnvironment): Entry {
    if (this.#entries.size >= MAX_DIALERS) this.#evictIdle();
    return { dialer: this.#options.create(environment), links: 0, cancelEnd: undefined };
  }

  #evictIdle(): void {
    const idle = [...this.#entries].find(([, { links }]) => links === 0);
    if (idle !== undefined) return this.#end(...idle);
    const message = `${this.name} runs for ${MAX_DIALERS} different callers, the most possible; try again later.`;
    throw new BridgeError('ERR_SESSION_LIMIT', message, { retryAfterMs: 1000 });
  }

  linkEnded(environment: CallerEnvironment): void {
    const key = keyOf(environment);
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.links -= 1;
    if (entry.links > 0) return;
    entry.cancelEnd = this.#options.clock.after(IDLE_DIALER_MS, () => this.#end(key, entry));
  }

  #end(key: string, { dialer, cancelEnd }: Entry): void {
    cancelEnd?.();
    this.#entries.delete(key);
    const ended = dialer.close().finally(() => this.#ending.delete(dialer));
    this.#ending.set(dialer, ended);
  }

  /** Ready if any dialer is ready, because a failure for one caller need not affect the others. */
  readiness(): Readiness {
    const states = [this.#nameless, ...[...this.#entries.values()].map(({ dialer }) => dialer)].map((dialer) =>
      dialer.readiness(),
    );
    return states.find(({ state }) => state === 'ready') ?? this.#nameless.readiness();
  }

  async close(): Promise<void> {
    for (const entry of [...this.#entries]) this.#end(...entry);
    await Promise.all([this.#nameless.close(), ...this.#ending.values()]);
  }

  killNow(): void {
    this.#nameless.killNow();
    for (const { dialer } of this.#entries.values()) dialer.killNow();
    for (const dialer of this.#ending.keys()) dialer.killNow();
  }
}

/** The key of a caller without values. */
const NAMELESS = '[]';

function keyOf(environment: CallerEnvironment): string {
  return JSON.stringify(Object.entries(environment).sort(([one], [other]) => (one < other ? -1 : 1)));
}
