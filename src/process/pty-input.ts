import { writeSync } from 'node:fs';
import { Writable } from 'node:stream';
import type { Clock } from '../deps.ts';

const FIRST_RETRY_MS = 1;
const MAX_RETRY_MS = 16;

/**
 * Writes to a pseudo-terminal without ever waiting for the child. The event loop's own stream for terminals would spin
 * until the child reads, and there is no event that tells when it has; so a full terminal is tried again and again, at
 * first after a millisecond. What a terminal takes at once is plenty for that.
 */
export class PtyInput extends Writable {
  /** Non-blocking, and open at least as long as this stream. */
  readonly #masterFd: number;
  readonly #clock: Clock;
  #cancelRetry: () => void = () => undefined;

  constructor(masterFd: number, clock: Clock) {
    super();
    this.#masterFd = masterFd;
    this.#clock = clock;
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#writeOn(chunk, FIRST_RETRY_MS, done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#cancelRetry();
    done(error);
  }

  #writeOn(chunk: Buffer, retryMs: number, done: (error?: Error | null) => void): void {
    let written = 0;
    try {
      while (written < chunk.length) written += writeSync(this.#masterFd, chunk, written);
    } catch (thrown) {
      if (!isFull(thrown)) return done(thrown instanceof Error ? thrown : new Error(String(thrown)));
      const nextRetryMs = written > 0 ? FIRST_RETRY_MS : Math.min(MAX_RETRY_MS, 2 * retryMs);
      this.#cancelRetry = this.#clock.after(nextRetryMs, () =>
        this.#writeOn(chunk.subarray(written), nextRetryMs, done),
      );
      return;
    }
    done();
  }
}

function isFull(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === 'EAGAIN';
}
