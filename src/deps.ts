import type { Logger } from 'pino';

/** The bridge's clock. Tests replace it. */
export interface Clock {
  /** Monotonic time in milliseconds. */
  now(): number;
  /** Runs a function after a delay. Returns the function that cancels it. The timer does not keep the process alive. */
  after(delayMs: number, run: () => void): () => void;
  every(periodMs: number, run: () => void): () => void;
}

/** All dependencies on the outside world, passed in by the composition root. */
export interface Deps {
  readonly log: Logger;
  readonly clock: Clock;
  /** Wall-clock time in milliseconds since 1970. May be set back. */
  readonly wallClock: () => number;
  /** 128 bits from the system's generator as 22 characters of base64url: session ids, stream ids. */
  readonly randomId: () => string;
}
