import { BACKSLASH, QUOTE, SPACE } from './ascii.ts';

/** Up to here it does not pay to prepare for reading words. */
const SHORT_BYTES = 256;
/** So much of a run is read byte by byte before it is taken for a long one. */
const NEAR_BYTES = 8;

/** 1 for each byte that a JSON string does not simply go on with: a quote, a backslash, a control character. */
const ENDS_RUN = new Uint8Array(256);
ENDS_RUN.fill(1, 0, SPACE);
ENDS_RUN[QUOTE] = 1;
ENDS_RUN[BACKSLASH] = 1;

const NO_WORDS = new Int32Array(0);

/** Finds where runs of ordinary bytes in the strings of one JSON text end; long ones are read four bytes at a time. */
export class StringRuns {
  readonly #bytes: Buffer;
  /** The aligned part of the bytes, which begins at `#lead`. */
  readonly #words: Int32Array;
  readonly #lead: number;

  constructor(bytes: Buffer) {
    const { buffer, byteOffset, length } = bytes;
    this.#bytes = bytes;
    this.#lead = (4 - (byteOffset & 3)) & 3;
    this.#words =
      length < SHORT_BYTES ? NO_WORDS : new Int32Array(buffer, byteOffset + this.#lead, (length - this.#lead) >> 2);
  }

  /** The first offset at or after `pos` that holds a quote, a backslash or a control character; else the length. */
  endOf(pos: number): number {
    const bytes = this.#bytes;
    const words = this.#words;
    const lead = this.#lead;
    const length = bytes.length;
    let at = pos;
    const near = Math.min(lead + ((pos - lead + NEAR_BYTES + 3) & ~3), length);
    for (; at < near; at += 1) if (ENDS_RUN[bytes[at] as number] === 1) return at;
    let index = (at - lead) >> 2;
    while (index < words.length && !holdsEnd(words[index] as number)) index += 1;
    at = Math.max(at, lead + index * 4);
    while (at < length && ENDS_RUN[bytes[at] as number] === 0) at += 1;
    return at;
  }
}

/**
 * Does any of the four bytes end a run? Subtracting n from each byte borrows into its top bit where it is below n and
 * the bit was clear. Bytes below 0x20 and the quote are those below 0x21 once their second lowest bit is turned over.
 */
function holdsEnd(word: number): boolean {
  const quoteOrControl = (word ^ 0x02020202) - 0x21212121;
  const backslash = (word ^ 0x5c5c5c5c) - 0x01010101;
  return ((quoteOrControl | backslash) & ~word & 0x80808080) !== 0;
}
