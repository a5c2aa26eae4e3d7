import type { Logger } from 'pino';

/** Time as the bridge sees it; tests pass a fake one. */
export interface Clock {
  /** Monotonic, milliseconds. */
  now(): number;
  /** Never keeps the process alive by itself. Returns the function that clears it. */
  after(delayMs: number, run: () => void): () => void;
  every(periodMs: number, run: () => void): () => void;
}

/** Everything that touches the world outside, handed in from the composition root. */
export interface Deps {
  readonly log: Logger;
  readonly clock: Clock;
  /** Milliseconds since 1970, as calendars and other programs count; may be set back. */
  readonly wallClock: () => number;
  /** 128 bits from the system's generator as 22 characters of base64url: session ids, stream ids. */
  readonly randomId: () => string;
}
