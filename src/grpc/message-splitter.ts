import { ByteCollector } from '../wire/byte-collector.ts';

/** Each message is preceded by a byte that says if it is compressed, and by its length in 32 bits. [gRPC over HTTP2] */
export const HEADER_BYTES = 5;

/**
 * Why nothing more can be read. `compressed`: a message is compressed, though only `identity` is offered. `too-large`:
 * a message is longer than allowed. `invalid`: the first byte of a header is neither 0 nor 1.
 */
export type SplitFault = 'compressed' | 'too-large' | 'invalid';

export interface MessageSplitterOptions {
  readonly maxMessageBytes: number;
  /** Receives each message and owns its bytes. Called synchronously from `push`. */
  readonly message: (bytes: Buffer) => void;
  /** Called once, with the first fault. Everything after it is ignored. */
  readonly fault: (fault: SplitFault) => void;
}

/**
 * Splits a stream into length-prefixed messages. A length is believed only up to `maxMessageBytes`, and memory is taken
 * for bytes that have arrived, not for those that were announced.
 */
export class MessageSplitter {
  readonly #options: MessageSplitterOptions;
  /** The start of an incomplete header or message. */
  readonly #pending = new ByteCollector();
  /** The length of the message that is being read; undefined while its header is incomplete. */
  #announced: number | undefined;
  #isFaulty = false;

  constructor(options: MessageSplitterOptions) {
    this.#options = options;
  }

  /** Bytes kept of an incomplete message. */
  get pendingBytes(): number {
    return this.#pending.byteLength;
  }

  /** True if the stream must not end here. */
  get isWithinMessage(): boolean {
    return !this.#isFaulty && (this.#announced !== undefined || this.#pending.byteLength > 0);
  }

  /** Drops the bytes of an incomplete message. Nothing is read afterward. */
  forget(): void {
    this.#isFaulty = true;
    this.#pending.clear();
  }

  /** Takes the whole chunk, or only its first `maxMessages` messages. Returns the number of bytes taken. */
  push(chunk: Buffer, maxMessages = Number.POSITIVE_INFINITY): number {
    let offset = 0;
    let left = maxMessages;
    while (!this.#isFaulty && left > 0) {
      const wanted = (this.#announced ?? HEADER_BYTES) - this.#pending.byteLength;
      const end = offset + wanted;
      if (end > chunk.length) break;
      const bytes = this.#complete(chunk.subarray(offset, end));
      offset = end;
      if (this.#announced === undefined) this.#header(bytes);
      else {
        this.#announced = undefined;
        left -= 1;
        this.#options.message(bytes);
      }
    }
    if (this.#isFaulty) return chunk.length;
    if (left <= 0) return offset;
    if (offset < chunk.length) this.#pending.append(chunk.subarray(offset));
    return chunk.length;
  }

  #complete(part: Buffer): Buffer {
    if (this.#pending.byteLength === 0) return part;
    this.#pending.append(part);
    return this.#pending.take();
  }

  #header(header: Buffer): void {
    const [flag = 0] = header;
    const length = header.readUInt32BE(1);
    if (flag > 1) return this.#fail('invalid');
    if (flag === 1) return this.#fail('compressed');
    if (length > this.#options.maxMessageBytes) return this.#fail('too-large');
    this.#announced = length;
  }

  #fail(fault: SplitFault): void {
    this.forget();
    this.#options.fault(fault);
  }
}
