import type { Clock } from '../deps.ts';

/** What one session keeps for clients that lost a connection. */
export interface ReplayLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
}

/** Enough to survive a change of network; the newest event stays even if it alone exceeds `maxBytes`. */
export const REPLAY_LIMITS: ReplayLimits = { maxEvents: 1000, maxBytes: 5 * 1024 * 1024, maxAgeMs: 5 * 60_000 };

/** An event's place: which stream of the session, and the how manieth of it, from 1. */
export interface EventPosition {
  readonly stream: number;
  readonly sequence: number;
}

interface StoredEvent extends EventPosition {
  /** Encoded for the wire. */
  readonly bytes: Buffer;
  readonly storedAtMs: number;
}

/**
 * The recent events of all streams of one session, oldest first. An event id names stream and place, so resuming
 * replays exactly the stream that broke. [spec 2025-11-25 transports#resumability-and-redelivery]
 */
export class ReplayBuffer {
  readonly #clock: Clock;
  readonly #limits: ReplayLimits;
  #events: StoredEvent[] = [];
  /** Index of the oldest event; what lies before it is cut off now and then, not one by one. */
  #first = 0;
  #bytes = 0;

  constructor(clock: Clock, limits: ReplayLimits = REPLAY_LIMITS) {
    this.#clock = clock;
    this.#limits = limits;
  }

  add(position: EventPosition, bytes: Buffer): void {
    this.#events.push({ ...position, bytes, storedAtMs: this.#clock.now() });
    this.#bytes += bytes.length;
    this.#evict();
  }

  /**
   * What followed on that stream. Undefined: something that followed is gone, and to leave it out would be a silent
   * loss. `lastSequence` is the stream's newest event where the caller knows it.
   */
  after(position: EventPosition, lastSequence: number | undefined): readonly Buffer[] | undefined {
    this.#evict();
    const events: Buffer[] = [];
    let newest = 0;
    for (let index = this.#first; index < this.#events.length; index += 1) {
      const event = this.#events[index] as StoredEvent;
      if (event.stream !== position.stream) continue;
      newest = event.sequence;
      if (event.sequence > position.sequence) events.push(event.bytes);
    }
    const last = lastSequence ?? newest;
    return position.sequence <= last && events.length === last - position.sequence ? events : undefined;
  }

  #evict(): void {
    const oldest = this.#clock.now() - this.#limits.maxAgeMs;
    for (;;) {
      const count = this.#events.length - this.#first;
      const event = this.#events[this.#first];
      if (event === undefined || count <= 1) break;
      const fits = count <= this.#limits.maxEvents && this.#bytes <= this.#limits.maxBytes;
      if (fits && event.storedAtMs >= oldest) break;
      this.#bytes -= event.bytes.length;
      this.#first += 1;
    }
    if (this.#first > this.#limits.maxEvents) {
      this.#events = this.#events.slice(this.#first);
      this.#first = 0;
    }
  }
}

/** Visible ASCII, unique in the session. [spec 2025-11-25 transports#resumability-and-redelivery] */
export function formatEventId(position: EventPosition): string {
  return `${position.stream}-${position.sequence}`;
}

export function parseEventId(id: string): EventPosition | undefined {
  const match = /^(\d{1,15})-(\d{1,15})$/.exec(id);
  return match === null ? undefined : { stream: Number(match[1]), sequence: Number(match[2]) };
}
