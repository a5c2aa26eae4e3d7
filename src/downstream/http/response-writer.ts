/** Writes HTTP responses no faster than clients read them, and watches those that stay open. */
import type { ServerResponse } from 'node:http';
import { LinkedList, type ListMember } from '../../collections/short-lived-values.ts';
import type { Clock } from '../../deps.ts';
import { ReadingWatch, type Written } from '../../http/reading-watch.ts';

/** Bytes waiting for the client above which a response counts as full. */
export const FULL_BYTES = 256 * 1024;
/**
 * A client is disconnected if more than this is unsent beside the largest waiting message. That happens where the
 * sender cannot be paused (a client on a shared link) or had sent more before the pause took effect.
 */
export const MAX_QUEUED_BYTES = 8 * 1024 * 1024;
/**
 * Bytes written to the socket at a time. Not less, since each slice costs a turn of the event loop: 16 of them take
 * half as long as a whole answer of 1 MiB.
 */
export const SLICE_BYTES = 1024 * 1024;

/**
 * Writes to a response whose headers are set, no faster than the client reads. Everything written in one turn of the
 * event loop leaves together. The owner calls `tick` periodically.
 */
export class ResponseWriter {
  readonly #response: ServerResponse;
  readonly #onDrain: () => void;
  #pending: Buffer[] = [];
  /** Index of the first pending part. Earlier entries are cut off in bulk, not one by one. */
  #first = 0;
  #pendingBytes = 0;
  /** Size of the largest waiting message. */
  #largestBytes = 0;
  #givenBytes = 0;
  /**
   * - `idle`: the socket takes bytes.
   * - `scheduled`: bytes are written at the end of this turn.
   * - `blocked`: the socket is full until `drain`.
   */
  #socket: 'idle' | 'scheduled' | 'blocked' = 'idle';
  #isFull = false;
  #isEnding = false;
  readonly #openedAtMs: number;
  /** Created at the first tick, since most responses are over by then. */
  #reading: ReadingWatch | undefined;

  /** `onDrain` is called when there is capacity again after `write` has returned false. */
  constructor(response: ServerResponse, nowMs: number, onDrain: () => void) {
    this.#response = response;
    this.#onDrain = onDrain;
    this.#openedAtMs = nowMs;
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  /** Bytes the operating system has not taken yet. */
  get queuedBytes(): number {
    return this.#pendingBytes + this.#response.writableLength;
  }

  /** Queues bytes. False: full. */
  write(bytes: Buffer): boolean {
    this.#add(bytes);
    if (this.queuedBytes > MAX_QUEUED_BYTES + this.#largestBytes) this.#response.destroy();
    else if (this.#socket === 'idle') {
      this.#socket = 'scheduled';
      process.nextTick(() => this.#socket === 'scheduled' && this.#flush());
    }
    return !this.#isFull;
  }

  /** Ends the response after what was written and `last`. */
  end(last?: Buffer): void {
    this.#isEnding = true;
    if (last !== undefined) {
      if (this.#pendingBytes === 0 && last.length <= SLICE_BYTES) return this.#endAtOnce(last);
      this.#add(last);
    }
    if (this.#socket !== 'blocked') this.#flush();
  }

  #endAtOnce(body: Buffer): void {
    this.#response.end(body);
    this.hasEnded(body.length);
  }

  /**
   * Called when the response was ended with a body of this size. From then on the writer watches what the operating
   * system has not taken of it.
   */
  hasEnded(bodyBytes: number): void {
    this.#isEnding = true;
    this.#givenBytes += bodyBytes;
    if (this.queuedBytes < FULL_BYTES) return;
    this.#isFull = true;
    this.#response.once('finish', () => this.#flush());
  }

  /** Disconnects the client, whatever it has not read. */
  cut(): void {
    this.#response.destroy();
  }

  /** Disconnects the client if it has stopped reading. */
  tick(nowMs: number): void {
    const { socket } = this.#response;
    // A response without a socket is queued behind others on its connection (HTTP pipelining), so its client cannot
    // read it yet. That excuses only small responses.
    const waitsForTurn = socket === null && !this.#isFull;
    const written = waitsForTurn ? NOTHING : { bytes: this.#givenBytes, queuedBytes: this.queuedBytes, socket };
    this.#reading ??= new ReadingWatch(this.#openedAtMs);
    if (this.#reading.hasStopped(written, nowMs)) this.#response.destroy();
  }

  #add(bytes: Buffer): void {
    this.#pending.push(bytes);
    if (this.#pendingBytes === 0 || bytes.length > this.#largestBytes) this.#largestBytes = bytes.length;
    this.#pendingBytes += bytes.length;
    this.#givenBytes += bytes.length;
    if (this.queuedBytes >= FULL_BYTES) this.#isFull = true;
  }

  #flush(): void {
    if (this.#response.destroyed) return;
    this.#socket = 'idle';
    while (this.#pendingBytes > 0) {
      if (this.#response.write(this.#takeSlice())) continue;
      this.#socket = 'blocked';
      this.#response.once('drain', () => this.#flush());
      return;
    }
    if (this.#isEnding && !this.#response.writableEnded) this.#response.end();
    if (!this.#isFull) return;
    this.#isFull = false;
    this.#onDrain();
  }

  #takeSlice(): Buffer {
    const parts: Buffer[] = [];
    let length = 0;
    while (length < SLICE_BYTES && length < this.#pendingBytes) {
      const part = this.#pending[this.#first] as Buffer;
      const capacity = SLICE_BYTES - length;
      if (part.length <= capacity) this.#first += 1;
      else this.#pending[this.#first] = part.subarray(capacity);
      parts.push(part.length <= capacity ? part : part.subarray(0, capacity));
      length += Math.min(part.length, capacity);
    }
    this.#pendingBytes -= length;
    if (this.#pendingBytes === 0 || this.#first > MAX_SPENT_PARTS) {
      this.#pending = this.#pending.slice(this.#first);
      this.#first = 0;
    }
    const [only] = parts;
    return parts.length === 1 && only !== undefined ? only : Buffer.concat(parts, length);
  }
}

/**
 * Ends the response with its whole body, so that headers and body leave in one write. Returns undefined if the
 * operating system took all of it, as it usually does, and otherwise a writer for the rest.
 */
export function endWith(
  response: ServerResponse,
  body: Buffer,
  createWriter: () => ResponseWriter,
): ResponseWriter | undefined {
  if (body.length <= SLICE_BYTES) {
    response.end(body);
    if (response.writableLength === 0) return undefined;
    const writer = createWriter();
    writer.hasEnded(body.length);
    return writer;
  }
  const writer = createWriter();
  writer.end(body);
  return writer.queuedBytes === 0 ? undefined : writer;
}

const NOTHING: Written = { bytes: 0, queuedBytes: 0, socket: null };
/** Written parts that the list may still hold. */
const MAX_SPENT_PARTS = 4096;

// ---- All open responses together

/** An object with an open response that is checked once a second. */
export interface Ticking extends ListMember {
  tick(nowMs: number): void;
  /** Bytes written to the response that the operating system has not taken yet. */
  readonly unsentBytes: number;
}

const TICK_MS = 1000;

/**
 * Ticks all open responses of the HTTP server from a single timer. A tick sends keep-alive comments, disconnects
 * stalled readers, and turns long-running calls into streams. Separate timers would be two per call.
 */
export class LiveStreams {
  readonly #clock: Clock;
  #members = new LinkedList<Ticking>();
  #stop: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get nowMs(): number {
    return this.#clock.now();
  }

  /** Unsent bytes of all open responses. */
  get unsentBytes(): number {
    return this.#members.toArray().reduce((sum, member) => sum + member.unsentBytes, 0);
  }

  /** Ticks the member until it removes itself from the list. */
  add(member: Ticking): void {
    this.#stop ??= this.#clock.every(TICK_MS, () => this.#tick());
    this.#members.add(member);
  }

  close(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#members = new LinkedList();
  }

  #tick(): void {
    const now = this.#clock.now();
    for (const member of this.#members.toArray()) member.tick(now);
  }
}
