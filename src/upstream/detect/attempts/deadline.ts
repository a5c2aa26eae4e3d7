import { BridgeError } from '../../../errors.ts';
import type { HttpClient } from '../../../http/client/client.ts';

/** From a client's first message to the verdict about its server, all attempts and waits together. */
export const DECISION_TIMEOUT_MS = 60_000;

/** A signal with the time limit of a decision. */
export class Deadline {
  readonly signal: AbortSignal;
  readonly #cancel: () => void;

  /**
   * @param name the server, as it may be shown
   * @param signal of the client that waits; undefined: the decision is made even if nobody waits any more
   */
  constructor(http: HttpClient, name: string, signal?: AbortSignal) {
    const controller = new AbortController();
    this.#cancel = http.afterLimit(DECISION_TIMEOUT_MS, () => {
      const message = `The server at ${name} did not show within ${DECISION_TIMEOUT_MS} ms which MCP it speaks.`;
      const data = { phase: 'detection', timeoutMs: DECISION_TIMEOUT_MS };
      controller.abort(new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data }));
    });
    this.signal = signal === undefined ? controller.signal : AbortSignal.any([signal, controller.signal]);
  }

  clear(): void {
    this.#cancel();
  }
}
