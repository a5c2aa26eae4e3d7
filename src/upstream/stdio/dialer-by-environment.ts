import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { PassingLink } from '../../relay/passing-link.ts';
import type {
  CallerDialers,
  CallerEnvironment,
  LinkOwner,
  Readiness,
  UpstreamDialer,
  UpstreamLink,
} from '../../relay/ports.ts';

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

/** A combination of values, with its key in the map. */
interface Caller {
  readonly key: string;
  readonly environment: CallerEnvironment;
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

  forCaller(environment: CallerEnvironment = {}): Pick<UpstreamDialer, 'dial' | 'dialCalls'> {
    const variables = Object.entries(environment).sort(([one], [other]) => (one < other ? -1 : 1));
    if (variables.length === 0) return this.#nameless;
    const key = JSON.stringify(variables);
    const caller: Caller = { key, environment };
    return {
      dial: (listener) => this.#count(caller, listener, (dialer, own) => dialer.dial(own)),
      dialCalls: (listener, context) => this.#count(caller, listener, (dialer, own) => dialer.dialCalls(own, context)),
    };
  }

  /** Dials with the caller's dialer, and keeps that dialer open as long as the link. */
  #count(
    { key, environment }: Caller,
    listener: LinkOwner,
    dial: (dialer: UpstreamDialer, own: LinkOwner) => UpstreamLink,
  ): UpstreamLink {
    const entry = this.#entries.get(key) ?? this.#create(environment);
    entry.cancelEnd?.();
    entry.cancelEnd = undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    entry.links += 1;
    try {
      return new CountedLink(
        listener,
        (own) => dial(entry.dialer, own),
        () => this.#linkEnded(key, entry),
      );
    } catch (thrown) {
      this.#linkEnded(key, entry);
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

  #linkEnded(key: string, entry: Entry): void {
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

/** A link that calls `onEnd` once when either end has ended it. */
class CountedLink extends PassingLink {
  protected link: UpstreamLink;
  #onEnd: (() => void) | undefined;

  constructor(listener: LinkOwner, dial: (own: LinkOwner) => UpstreamLink, onEnd: () => void) {
    super(listener);
    this.link = dial(this);
    this.#onEnd = onEnd;
  }

  override close(reason: BridgeError): void {
    super.close(reason);
    this.#ended();
  }

  override serverClosed(reason: BridgeError): void {
    this.#ended();
    super.serverClosed(reason);
  }

  #ended(): void {
    const onEnd = this.#onEnd;
    this.#onEnd = undefined;
    onEnd?.();
  }
}
