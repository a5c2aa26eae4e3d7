/** Logs the clients that still use a transport with an announced end. */
import type { Logger } from 'pino';
import type { Deps } from '../deps.ts';
import type { ErrorCode } from '../errors.ts';
import { toPrintable } from '../printable.ts';
import type { ClientOrigin, ObservedClient, Observer, OnClientLeft } from '../relay/observer.ts';

export interface SunsetLogOptions extends Pick<Deps, 'log' | 'clock' | 'wallClock'> {
  readonly sunset: AnnouncedEnd;
}

/** The announced end of HTTP+SSE. */
export interface AnnouncedEnd {
  readonly date: string;
  /** Milliseconds since 1970. */
  readonly atMs: number;
}

/** Limit of the clients named per day, since clients can choose any number of names. */
const MAX_CLIENTS = 1000;
/** Longer names of peers are cut. */
const MAX_LENGTH = 100;
const DAY_MS = 24 * 60 * 60_000;
/** Interval at which a new day is detected, to name the clients that are still connected. */
const CHECK_MS = 10 * 60_000;

/** A client that was logged on the current day. */
interface SeenClient {
  readonly message: string;
  readonly fields: object;
  /** Number of the client's open sessions. */
  connected: number;
}

/** Logs one line per client and day, also for clients that stay connected from one day to the next. */
export class SunsetLog implements Observer {
  readonly seesCalls = false;
  readonly #log: Logger;
  readonly #wallClock: () => number;
  readonly #sunset: AnnouncedEnd;
  readonly #seen = new Map<string, SeenClient>();
  /** Current day as of the last check, in days since 1970 UTC. */
  #day: number;
  /** True once it was logged today that there are too many clients to name each. */
  #isFullToday = false;
  readonly #stop: () => void;

  constructor({ log, clock, wallClock, sunset }: SunsetLogOptions) {
    this.#log = log;
    this.#wallClock = wallClock;
    this.#sunset = sunset;
    this.#day = dayOf(wallClock());
    this.#stop = clock.every(CHECK_MS, () => this.#look());
  }

  opened(): undefined {}

  used(): void {}

  connected({ transport, server, name, version }: ObservedClient): OnClientLeft | undefined {
    if (transport !== 'http-sse') return undefined;
    const shownName = toPrintable(`${name ?? ''} ${version ?? ''}`.trim() || 'a client without a name', MAX_LENGTH);
    const message = `${shownName} uses ${toPrintable(server, MAX_LENGTH)} by HTTP+SSE, which ${this.#ends()}; it has to use Streamable HTTP`;
    const fields = { client: name && toPrintable(name, MAX_LENGTH), server, sunset: this.#sunset.date };
    const seen = this.#see(JSON.stringify([server, name, version]), message, fields);
    if (seen === undefined) return undefined;
    seen.connected += 1;
    return () => {
      seen.connected -= 1;
    };
  }

  /** Logs a rejected client, which has not given its name yet. */
  refused({ transport, server }: ClientOrigin, reason: ErrorCode): void {
    if (transport !== 'http-sse' || reason !== 'ERR_HTTP_GONE') return;
    const message = `clients of HTTP+SSE still come to ${toPrintable(server, MAX_LENGTH)} and are refused: it has ended (${this.#sunset.date})`;
    this.#see(JSON.stringify([server]), message, { server, code: reason, sunset: this.#sunset.date });
  }

  close(): void {
    this.#stop();
  }

  /** Logs the client unless that was done today. Undefined: too many clients were logged today. */
  #see(key: string, message: string, fields: object): SeenClient | undefined {
    this.#look();
    const known = this.#seen.get(key);
    if (known !== undefined) return known;
    if (this.#seen.size >= MAX_CLIENTS) {
      if (!this.#isFullToday) this.#log.warn('too many clients use HTTP+SSE to name them all; no more are named today');
      this.#isFullToday = true;
      return undefined;
    }
    const seen = { message, fields, connected: 0 };
    this.#seen.set(key, seen);
    this.#log.warn(fields, message);
    return seen;
  }

  /** On a new day, logs the clients that are still connected and forgets the others. */
  #look(): void {
    const today = dayOf(this.#wallClock());
    if (today === this.#day) return;
    this.#day = today;
    this.#isFullToday = false;
    for (const [key, seen] of this.#seen) {
      if (seen.connected === 0) this.#seen.delete(key);
      else this.#log.warn(seen.fields, seen.message);
    }
  }

  #ends(): string {
    const { date, atMs } = this.#sunset;
    return this.#wallClock() <= atMs ? `ends here (${date})` : `should have ended here (${date})`;
  }
}

function dayOf(timeMs: number): number {
  return Math.floor(timeMs / DAY_MS);
}
