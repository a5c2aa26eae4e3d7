import type { HttpCall } from '../../http/client.ts';

type ReadResult = { done: false; value: Uint8Array } | { done: true };

/**
 * A response body for a reader that pulls: the form in which the `eventsource` package takes it. While nobody pulls,
 * or while paused, the connection is not read, so that at most a few chunks wait here.
 */
export class PulledBody {
  readonly #http: () => HttpCall | undefined;
  #chunks: Buffer[] = [];
  /** How the body ended, once it has. */
  #end: { readonly error: Error | undefined } | undefined;
  #waiting: { resolve: (result: ReadResult) => void; reject: (error: Error) => void } | undefined;
  #isPaused: boolean;

  constructor(http: () => HttpCall | undefined, isPaused: boolean) {
    this.#http = http;
    this.#isPaused = isPaused;
  }

  getReader(): { read: () => Promise<ReadResult>; cancel: () => Promise<void> } {
    return {
      read: () =>
        new Promise((resolve, reject) => {
          this.#waiting = { resolve, reject };
          this.#serve();
        }),
      cancel: () => {
        this.#http()?.abort();
        return Promise.resolve();
      },
    };
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#serve();
    if (this.#chunks.length > 0) this.#http()?.pause();
  }

  end(error?: Error): void {
    this.#end ??= { error };
    this.#serve();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#serve();
  }

  #serve(): void {
    const waiting = this.#waiting;
    if (waiting === undefined || this.#isPaused) return;
    const chunk = this.#chunks.shift();
    if (chunk === undefined && this.#end === undefined) return this.#http()?.resume();
    this.#waiting = undefined;
    if (chunk !== undefined) waiting.resolve({ done: false, value: chunk });
    else if (this.#end?.error === undefined) waiting.resolve({ done: true });
    else waiting.reject(this.#end.error);
  }
}
