import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { HttpClient } from '../../http/client/client.ts';
import type { RequestHeaders } from '../../http/client/http-call.ts';

/** Time from a client's first message to the verdict about its server, for all attempts and pauses together. */
export const DECISION_TIMEOUT_MS = 60_000;

/** The client that a decision is made for. */
export interface Deciding extends Pick<RequestHeaders, 'forwarded'> {
  /** Signal of the client that waits. Undefined if the decision is made even if no client waits anymore. */
  readonly signal?: AbortSignal;
}

/** A signal with the time limit of a decision. */
export class Deadline {
  readonly signal: AbortSignal;
  readonly #cancel: () => void;

  /** @param name the server's name in messages */
  constructor(http: HttpClient, name: string, { forwarded, signal }: Deciding) {
    const controller = new AbortController();
    const exceeded = (): void => {
      const message = `The server at ${name} did not show within ${DECISION_TIMEOUT_MS} ms which MCP it speaks.`;
      const data = { phase: 'detection', timeoutMs: DECISION_TIMEOUT_MS };
      controller.abort(new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data }));
    };
    this.#cancel = http.afterLimit(DECISION_TIMEOUT_MS, exceeded, forwarded);
    this.signal = signal === undefined ? controller.signal : AbortSignal.any([signal, controller.signal]);
  }

  clear(): void {
    this.#cancel();
  }
}

/** Resolves after `delayMs`, or rejects with the reason of the signal if that comes first. */
export function wait(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const abort = (): void => {
      cancel();
      reject(signal.reason);
    };
    const cancel = clock.after(delayMs, () => {
      signal.removeEventListener('abort', abort);
      resolve();
    });
    signal.addEventListener('abort', abort, { once: true });
  });
}

/** Settles with the promise, or rejects with the reason of the signal if that comes first. */
export function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    const settle = (): void => signal.removeEventListener('abort', abort);
    void promise.finally(settle).then(resolve, reject);
  });
}
