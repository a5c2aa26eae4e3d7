import type { Socket } from 'node:net';

/** A client that has read nothing for this long while bytes wait is let go. */
export const STALL_MS = 30_000;

/** How far the writing to a client has come. */
export interface Written {
  /** All bytes that were written. */
  readonly bytes: number;
  /** The part of them that the operating system has not taken yet. */
  readonly queuedBytes: number;
  readonly socket: Socket | null;
}

/** Tells by looks now and then whether a peer still reads. */
export class ReadingWatch {
  readonly #stallMs: number;
  /** What the peer's side had taken when it last took something, and when that was seen. */
  #takenBytes = 0;
  #takenAtMs: number;
  #unsentBytes = 0;

  /** @param stallMs how long a peer may take nothing of what waits for it */
  constructor(nowMs: number, stallMs = STALL_MS) {
    this.#takenAtMs = nowMs;
    this.#stallMs = stallMs;
  }

  /** There is a reason why it takes nothing: its time begins anew. */
  excuse(nowMs: number): void {
    this.#takenAtMs = nowMs;
  }

  /** True: bytes wait, and it has read nothing for too long. */
  hasStopped({ bytes, queuedBytes, socket }: Written, nowMs: number): boolean {
    const takenBytes = bytes - queuedBytes;
    const unsentBytes = countUnsent(socket);
    const isReading = takenBytes > this.#takenBytes || unsentBytes < this.#unsentBytes;
    this.#unsentBytes = unsentBytes;
    if (queuedBytes > 0 && !isReading) return nowMs - this.#takenAtMs >= this.#stallMs;
    this.#takenBytes = takenBytes;
    this.#takenAtMs = nowMs;
    return false;
  }
}

/**
 * What the operating system has not taken yet of the slice it is working on. Node counts a slice as waiting until all of
 * it is gone and keeps the finer number on the socket's handle, where its own socket timeout reads it for this very
 * purpose; without it a reader counts by the slice.
 */
function countUnsent(socket: Socket | null): number {
  const inside: { readonly _handle?: { readonly writeQueueSize?: unknown } | null } | null = socket as object;
  const size = inside?._handle?.writeQueueSize;
  return typeof size === 'number' ? size : 0;
}
