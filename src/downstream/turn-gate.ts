/** Why a client's messages are held back: the server's pipe is full, or the client itself does not read. */
export type GateReason = 'server' | 'reader';

/** Messages of one client that may wait at once; each holds a connection with an unread body. */
export const MAX_WAITING_TURNS = 256;

/** Holds a client's messages back, unread, while there is no room for them; then lets them go in order. */
export class TurnGate {
  readonly #closedFor = new Set<GateReason>();
  #waiting: (() => void)[] = [];

  /** Runs at once or when the gate opens. False: too many wait already, refuse this one. */
  enter(run: () => void): boolean {
    if (this.#closedFor.size === 0) {
      run();
      return true;
    }
    if (this.#waiting.length >= MAX_WAITING_TURNS) return false;
    this.#waiting.push(run);
    return true;
  }

  close(reason: GateReason): void {
    this.#closedFor.add(reason);
  }

  open(reason: GateReason): void {
    this.#closedFor.delete(reason);
    // One that enters may close the gate again: the others then keep waiting, in order.
    while (this.#closedFor.size === 0) {
      const run = this.#waiting.shift();
      if (run === undefined) return;
      run();
    }
  }

  /** The client is gone: those who wait find that out by themselves. */
  openForGood(): void {
    this.#closedFor.clear();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const run of waiting) run();
  }
}
