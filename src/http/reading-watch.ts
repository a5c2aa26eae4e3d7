import type { Socket } from 'node:net';

/** A client that reads nothing for this long while bytes are waiting is disconnected. */
export const STALL_MS = 30_000;

/**
 * The progress of writing to a client: all bytes written so far, and how many of them the operating system has not
 * accepted yet.
 */
export interface Written {
  readonly bytes: number;
  readonly queuedBytes: number;
  readonly socket: Socket | null;
}

/** Detects by polling whether a peer still reads. */
export class ReadingWatch {
  readonly #stallMs: number;
  /** Bytes that were accepted at the latest progress, and the time when it was seen. */
  #takenBytes = 0;
  #takenAtMs: number;
  #unsentBytes = 0;

  /** @param stallMs time without progress, while bytes are waiting, after which a peer counts as stopped */
  constructor(nowMs: number, stallMs = STALL_MS) {
    this.#takenAtMs = nowMs;
    this.#stallMs = stallMs;
  }

  /** Restarts the time limit, if there is a known reason why the peer reads nothing. */
  excuse(nowMs: number): void {
    this.#takenAtMs = nowMs;
  }

  /** Returns true if bytes are waiting and the peer has read nothing for too long. */
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
 * Returns how much of the chunk being written the operating system has not accepted yet. Node counts a chunk as waiting
 * until all of it is written and keeps the exact number on the socket's handle, where its own socket timeout reads it
 * for the same purpose. Without it, progress is only visible per chunk.
 */
function countUnsent(socket: Socket | null): number {
  const inside: { readonly _handle?: { readonly writeQueueSize?: unknown } | null } | null = socket as object;
  const size = inside?._handle?.writeQueueSize;
  return typeof size === 'number' ? size : 0;
}
