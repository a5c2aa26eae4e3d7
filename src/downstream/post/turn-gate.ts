import { ByteQueue } from '../../collections/byte-queue.ts';

/** Why a client's messages are held back: the server's pipe is full, or the client itself does not read. */
export type GateReason = 'server' | 'reader';

/**
 * What waits:
 * - `unread`: a request whose body has not been read; it waits for the server, and while much waits in memory.
 * - `message`: what makes the server say more; it waits for the server and for the client's own reading.
 * - `answer`: what a server waits for; a client that reads one thing after the other may send it before it reads on,
 *   so it waits for the server only.
 */
export interface Turn {
  readonly kind: 'unread' | 'message' | 'answer';
  /** Held in memory meanwhile. */
  readonly bytes: number;
  run(): void;
}

/** Turns of one client that may wait at once; each holds a connection. */
export const MAX_WAITING_TURNS = 256;
/** Once so much waits in memory, further bodies stay unread. */
export const MAX_HELD_BYTES = 1024 * 1024;
/**
 * Those whose reading had begun before may still come: any number, each as large as a message may be. So much of it is
 * taken, a burst of large calls; or one message, however large.
 */
export const MAX_BURST_BYTES = 8 * 1024 * 1024;
const LIMITS = { maxItems: MAX_WAITING_TURNS, maxBytes: MAX_BURST_BYTES };

/** Holds a client's messages back while they cannot be taken; then lets them go in order. */
export class TurnGate {
  readonly #closedFor = new Set<GateReason>();
  /** Most gates never hold anything: undefined until one does. */
  #waiting: ByteQueue<Turn> | undefined;
  #isOpenForGood = false;

  /** May what is of this kind go on now? Where not, it is held. */
  lets(kind: Turn['kind']): boolean {
    if (this.#closedFor.has('server')) return false;
    switch (kind) {
      case 'answer':
        return true;
      case 'message':
        return !this.#closedFor.has('reader');
      case 'unread':
        return this.#waiting === undefined || this.#waiting.bytes < MAX_HELD_BYTES;
    }
  }

  /** Keeps it until the gate opens for it, and runs it then. False: too many wait already, refuse this one. */
  hold(turn: Turn): boolean {
    this.#waiting ??= new ByteQueue<Turn>(LIMITS, ({ bytes }) => bytes);
    if (!mayHold(this.#waiting, turn)) return false;
    this.#waiting.add(turn);
    return true;
  }

  /** One that is held back waits no longer. */
  leave(turn: Turn): void {
    this.#waiting?.removeFirst((other) => other === turn);
  }

  close(reason: GateReason): void {
    if (!this.#isOpenForGood) this.#closedFor.add(reason);
  }

  open(reason: GateReason): void {
    this.#closedFor.delete(reason);
    this.#letPass();
  }

  /** The client is gone: those who wait find that out by themselves. */
  openForGood(): void {
    this.#isOpenForGood = true;
    this.#closedFor.clear();
    this.#letPass();
  }

  /** One that passes may close the gate again: the others then keep waiting, in order. */
  #letPass(): void {
    for (;;) {
      const turn = this.#waiting?.removeFirst(({ kind }) => this.lets(kind));
      if (turn === undefined) return;
      turn.run();
    }
  }
}

function mayHold(waiting: ByteQueue<Turn>, turn: Turn): boolean {
  if (waiting.length >= MAX_WAITING_TURNS) return false;
  return turn.bytes === 0 || waiting.bytes === 0 || waiting.fits(turn);
}
