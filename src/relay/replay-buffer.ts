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
  #events: (StoredEvent | undefined)[] = [];
  /** Index of the oldest event; the places before it are cut off now and then, not one by one. */
  #first = 0;
  #bytes = 0;

  constructor(clock: Clock, limits: ReplayLimits = REPLAY_LIMITS) {
    this.#clock = clock;
    this.#limits = limits;
  }

  add(position: EventPosition, bytes: Buffer): void {
    const nowMs = this.#clock.now();
    const { stream, sequence } = position;
    this.#events.push({ stream, sequence, bytes, storedAtMs: nowMs });
    this.#bytes += bytes.length;
    this.#evict(nowMs);
  }

  /**
   * What followed on that stream. Undefined: something that followed is gone, and to leave it out would be a silent
   * loss. `lastSequence` is the stream's newest event where the caller knows it.
   */
  after(position: EventPosition, lastSequence: number | undefined): readonly Buffer[] | undefined {
    this.#evict(this.#clock.now());
    const events: Buffer[] = [];
    let newest = 0;
    for (const event of this.#events) {
      if (event?.stream !== position.stream) continue;
      newest = event.sequence;
      if (event.sequence > position.sequence) events.push(event.bytes);
    }
    const last = lastSequence ?? newest;
    return position.sequence <= last && events.length === last - position.sequence ? events : undefined;
  }

  #evict(nowMs: number): void {
    const { maxEvents, maxBytes, maxAgeMs } = this.#limits;
    for (;;) {
      const event = this.#events[this.#first];
      const count = this.#events.length - this.#first;
      if (event === undefined || count === 1) return;
      if (count <= maxEvents && this.#bytes <= maxBytes && event.storedAtMs >= nowMs - maxAgeMs) return;
      this.#events[this.#first] = undefined;
      this.#first += 1;
      this.#bytes -= event.bytes.length;
      if (this.#first >= MAX_SPENT_PLACES) this.#cutOff();
    }
  }

  #cutOff(): void {
    this.#events = this.#events.slice(this.#first);
    this.#first = 0;
  }
}

/** Places of events that are gone which the list may still hold. */
const MAX_SPENT_PLACES = 1024;

/** Visible ASCII, unique in the session. [spec 2025-11-25 transports#resumability-and-redelivery] */
export function formatEventId(position: EventPosition): string {
  return `${position.stream}-${position.sequence}`;
}

/** Undefined for everything `formatEventId` does not write. */
export function parseEventId(id: string): EventPosition | undefined {
  const match = /^(0|[1-9]\d{0,14})-([1-9]\d{0,14})$/.exec(id);
  return match === null ? undefined : { stream: Number(match[1]), sequence: Number(match[2]) };
}
