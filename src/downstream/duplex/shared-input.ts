import { ByteQueue } from '../../collections/byte-queue.ts';
import type { Clock } from '../../deps.ts';
import type { MessageConnection } from './message-connection.ts';

/**
 * Read of a client while it is held back: only behind what it has said can be seen that it says no more. The end of a
 * client that says more than this meanwhile is seen late; it is read on when there is capacity.
 */
export const MAX_AHEAD_BYTES = 8 * 1024 * 1024;
/** What a short piece counts as, for it costs about as much. */
const MIN_PIECE_BYTES = 1024;

export interface SharedInputOptions {
  /** Where it comes from; `read` and `over` are told what comes. */
  readonly source: Pick<MessageConnection, 'pause' | 'resume'>;
  readonly clock: Clock;
  /** After the end of input, how long nothing of what was read ahead may be taken; 0: as long as it takes. */
  readonly untakenTimeoutMs: number;
  /**
   * How long a client that is not read may have to wait until something is taken: nobody would see that it is gone. 0: as
   * long as it takes.
   */
  readonly heldTimeoutMs: number;
  readonly take: (piece: Buffer) => void;
  /** Called once. Nothing more is taken: the client has ended its input, or so many bytes have waited for too long. */
  readonly onEnd: (untakenBytes: number) => void;
}

/** `open`: more may come. `ending`: no more comes, but not all was taken. `ended`: told. */
type State = 'open' | 'ending' | 'ended';

/** The client's input while several conversations read it: it is taken when none of them holds it back. */
export class SharedInput {
  readonly #options: SharedInputOptions;
  readonly #holders = new Set<object>();
  readonly #ahead = new ByteQueue<Buffer>(
    { maxItems: Number.POSITIVE_INFINITY, maxBytes: MAX_AHEAD_BYTES },
    ({ length }) => Math.max(length, MIN_PIECE_BYTES),
  );
  #state: State = 'open';
  #isStopped = false;
  #stopWaiting = (): void => {};

  constructor(options: SharedInputOptions) {
    this.#options = options;
  }

  pauseFor(holder: object): void {
    this.#holders.add(holder);
  }

  /** What was read ahead is taken afterwards, not from within: the holder may be about to let go of its client. */
  resumeFor(holder: object): void {
    if (this.#holders.delete(holder)) process.nextTick(() => this.#takeAhead());
  }

  /** Something has come. */
  read(piece: Buffer): void {
    if (this.#state === 'ended') return;
    this.#ahead.add(piece);
    this.#takeAhead();
    if (!this.#ahead.isFull || this.#isStopped) return;
    this.#isStopped = true;
    this.#options.source.pause();
    this.#awaitProgress(this.#options.heldTimeoutMs);
  }

  #takeAhead(): void {
    const { source, take } = this.#options;
    while (this.#holders.size === 0) {
      const piece = this.#ahead.shift();
      if (piece === undefined) break;
      if (this.#state === 'ending') this.#awaitProgress(this.#options.untakenTimeoutMs);
      else if (this.#isStopped) this.#awaitProgress(this.#options.heldTimeoutMs);
      take(piece);
    }
    if (this.#state === 'ending' && this.#ahead.length === 0) this.#end();
    if (this.#ahead.isFull || !this.#isStopped) return;
    this.#isStopped = false;
    if (this.#state === 'open') this.#stopWaiting();
    source.resume();
  }

  /** No more comes. May be called several times. */
  over(): void {
    if (this.#state !== 'open') return;
    this.#state = 'ending';
    if (this.#ahead.length === 0) this.#end();
    else this.#awaitProgress(this.#options.untakenTimeoutMs);
  }

  #awaitProgress(timeoutMs: number): void {
    this.#stopWaiting();
    if (timeoutMs > 0) this.#stopWaiting = this.#options.clock.after(timeoutMs, () => this.#end());
  }

  #end(): void {
    this.#stopWaiting();
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#options.onEnd(this.#ahead.takeAll().reduce((sum, { length }) => sum + length, 0));
  }
}
