import { isListChanged, RESOURCE_UPDATED } from '../../mcp/vocabulary/methods.ts';
import type { Frame } from '../../wire/frame.ts';

/** Messages and bytes kept for a client that has no stream open. */
export const MAX_WAITING = 1000;
export const MAX_WAITING_BYTES = 1024 * 1024;
/** How long a request of the server waits for a stream before the server is told that there is none. */
export const NO_STREAM_GRACE_MS = 10_000;

interface Waiting {
  readonly frame: Frame;
  readonly sinceMs: number;
}

/**
 * What a client must still be told once it opens a stream. "Something changed" is kept once however often it was
 * said; when the queue is full, the oldest notification is dropped.
 */
export class UndeliveredQueue {
  #waiting: Waiting[] = [];
  #bytes = 0;
  /** Notifications that were lost because the queue was full. */
  dropped = 0;

  get size(): number {
    return this.#waiting.length;
  }

  /** False: the queue is full, and the message is a request, which cannot be dropped silently. */
  add(frame: Frame, nowMs: number): boolean {
    if (canWait(frame) && this.#waiting.some((other) => other.frame.bytes.equals(frame.bytes))) return true;
    this.#waiting.push({ frame, sinceMs: nowMs });
    this.#bytes += frame.bytes.length;
    while (this.#waiting.length > MAX_WAITING || this.#bytes > MAX_WAITING_BYTES) {
      const oldest = this.#waiting.findIndex((other) => other.frame.kind === 'notification');
      if (oldest < 0) return this.#waiting.length === 1 || this.#refuseLatest();
      this.#remove(oldest);
      this.dropped += 1;
    }
    return true;
  }

  #refuseLatest(): false {
    this.#remove(this.#waiting.length - 1);
    return false;
  }

  /** Everything, in order; the queue is empty afterwards. */
  takeAll(): readonly Frame[] {
    const frames = this.#waiting.map((waiting) => waiting.frame);
    this.#waiting = [];
    this.#bytes = 0;
    return frames;
  }

  /** Requests of the server, in order; they leave the queue. */
  takeRequests(): readonly Frame[] {
    return this.#take(({ frame }) => frame.kind === 'request');
  }

  /** Requests of the server that have waited too long; they leave the queue. */
  takeOverdueRequests(nowMs: number): readonly Frame[] {
    return this.#take(({ frame, sinceMs }) => frame.kind === 'request' && nowMs - sinceMs >= NO_STREAM_GRACE_MS);
  }

  #take(isWanted: (waiting: Waiting) => boolean): readonly Frame[] {
    const taken = this.#waiting.filter(isWanted).map((waiting) => waiting.frame);
    if (taken.length === 0) return taken;
    this.#waiting = this.#waiting.filter((waiting) => !isWanted(waiting));
    this.#bytes = this.#waiting.reduce((sum, waiting) => sum + waiting.frame.bytes.length, 0);
    return taken;
  }

  #remove(index: number): void {
    const [removed] = this.#waiting.splice(index, 1);
    this.#bytes -= removed?.frame.bytes.length ?? 0;
  }
}

/** "Look again" loses nothing by waiting; everything else is about now. */
export function canWait(frame: Frame): boolean {
  return isListChanged(frame.method) || frame.method === RESOURCE_UPDATED;
}
