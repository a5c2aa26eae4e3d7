import { TurnGate } from '../turn-gate.ts';

/** While so much waits for servers to take it, further bodies stay unread in their connections. */
export const MAX_BACKLOG_BYTES = 8 * 1024 * 1024;

/**
 * Requests that were read but not taken by their server yet. A call has said all it has to say, so there is nothing of
 * it to hold back; what can be held back are the calls that come after it.
 */
export class Backlog {
  readonly gate = new TurnGate();
  #bytes = 0;

  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes >= MAX_BACKLOG_BYTES) this.gate.close('server');
  }

  remove(bytes: number): void {
    this.#bytes -= bytes;
    if (this.#bytes < MAX_BACKLOG_BYTES) this.gate.open('server');
  }
}
