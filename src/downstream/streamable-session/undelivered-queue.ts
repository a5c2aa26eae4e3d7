import { ByteQueue, frameBytes } from '../../collections/bounded-collections.ts';
import { CANCELED, isListChanged, PROGRESS, RESOURCE_UPDATED } from '../../mcp/vocabulary/methods.ts';
import type { Call } from '../../relay/call.ts';
import type { Frame } from '../../wire/frame.ts';

/** Messages and bytes kept for a client that has no stream open. */
export const MAX_WAITING = 1000;
export const MAX_WAITING_BYTES = 1024 * 1024;
/** Time that a request of the server waits for a stream before it fails because there is none. */
export const NO_STREAM_GRACE_MS = 10_000;

interface Waiting {
  readonly frame: Frame;
  readonly sinceMs: number;
}

/**
 * Messages that a client gets once it opens a stream. A "something changed" notification is kept once, however often it
 * was sent. When the queue is full, the oldest notification is dropped.
 */
export class UndeliveredQueue {
  readonly #waiting = new ByteQueue<Waiting>({ maxItems: MAX_WAITING, maxBytes: MAX_WAITING_BYTES }, frameBytes);
  /** Notifications that were lost because the queue was full. */
  dropped = 0;

  get size(): number {
    return this.#waiting.length;
  }

  /**
   * - `added`: the message waits.
   * - `known`: an equal message waits already.
   * - `full`: the message is a request, which cannot be dropped silently.
   */
  add(frame: Frame, nowMs: number): 'added' | 'known' | 'full' {
    if (canWait(frame) && this.#waiting.some((other) => other.frame.bytes.equals(frame.bytes))) return 'known';
    const waiting = { frame, sinceMs: nowMs };
    this.#waiting.add(waiting);
    while (this.#waiting.isExceeded) {
      if (this.#waiting.removeFirst((other) => other.frame.kind === 'notification') === undefined) {
        // A request of any size may wait as long as it is the only one.
        if (this.#waiting.length === 1) return 'added';
        this.#waiting.removeFirst((other) => other === waiting);
        return 'full';
      }
      this.dropped += 1;
    }
    return 'added';
  }

  /** Notifications, in order. */
  get notifications(): readonly Frame[] {
    return this.#waiting.toArray().flatMap(({ frame }) => (frame.kind === 'notification' ? [frame] : []));
  }

  /** Returns all messages in order and empties the queue. */
  takeAll(): readonly Frame[] {
    return this.#waiting.takeAll().map(({ frame }) => frame);
  }

  /** Removes and returns the requests of the server, in order. */
  takeRequests(): readonly Frame[] {
    return this.#waiting.removeAll(({ frame }) => frame.kind === 'request').map(({ frame }) => frame);
  }

  /** Removes and returns the requests of the server that have waited too long. */
  takeOverdueRequests(nowMs: number): readonly Frame[] {
    const isOverdue = ({ frame, sinceMs }: Waiting) =>
      frame.kind === 'request' && nowMs - sinceMs >= NO_STREAM_GRACE_MS;
    if (!this.#waiting.some(isOverdue)) return [];
    return this.#waiting.removeAll(isOverdue).map(({ frame }) => frame);
  }
}

/** Returns true for notifications that lose nothing by waiting, since they only tell the client to look again. */
export function canWait(frame: Frame): boolean {
  return isListChanged(frame.method) || frame.method === RESOURCE_UPDATED;
}

/**
 * Returns true for a request of the server and for its cancellation: the server waits for the client, so they are of no
 * use later.
 */
export function isQuestion(frame: Frame): boolean {
  return frame.kind === 'request' || frame.method === CANCELED;
}

/** Returns true for progress of a call, which is useless to a client that has lost the call. */
export function isAboutCall(frame: Frame, call: Call | undefined): boolean {
  return frame.method === PROGRESS && call !== undefined;
}
