import { ByteQueue } from '../../collections/byte-queue.ts';
import { PROGRESS } from '../../mcp/vocabulary/methods.ts';
import { ownBytes } from '../../wire/byte-collector.ts';
import { Frame } from '../../wire/frame.ts';
import type { HeldBytes } from '../parked-bytes.ts';

/** Limits the notices of one call. Clients come back within seconds; one that is away for longer reads the latest. */
export const MAX_KEPT_NOTICES = 100;
export const MAX_KEPT_NOTICE_BYTES = 64 * 1024;

/**
 * What a server says about a call while no request of its client follows it, from the oldest on. When there is no room,
 * the oldest goes; how far the call has come goes last.
 */
export class KeptNotices {
  readonly #held: HeldBytes;
  readonly #notices = new ByteQueue<Frame>(
    { maxItems: MAX_KEPT_NOTICES, maxBytes: MAX_KEPT_NOTICE_BYTES },
    ({ bytes }) => bytes.length,
  );
  #latestProgress: Frame | undefined;
  /** Lost for lack of capacity. */
  dropped = 0;

  /** `held`: where its bytes count. */
  constructor(held: HeldBytes) {
    this.#held = held;
  }

  add(notice: Frame): void {
    const { length } = notice.bytes;
    if (length > MAX_KEPT_NOTICE_BYTES) {
      // Whatever went for it, there would be no room.
      this.dropped += 1;
      return;
    }
    const kept = new Frame(ownBytes(notice.bytes), notice);
    this.#notices.add(kept);
    if (notice.method === PROGRESS) this.#latestProgress = kept;
    while (this.#notices.isExceeded || !this.#held.set(this.#notices.bytes)) this.#dropOldest();
  }

  #dropOldest(): void {
    const isLast = this.#notices.length === 1;
    this.#notices.removeFirst((notice) => isLast || notice !== this.#latestProgress);
    this.dropped += 1;
  }

  /** All of them, in their order; none is kept any more. */
  takeAll(): readonly Frame[] {
    this.#latestProgress = undefined;
    this.#held.set(0);
    return this.#notices.takeAll();
  }
}
