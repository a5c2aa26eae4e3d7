/**
 * What leaves in one write is one record: its length, then what it says, sealed with AES-256-GCM. Records are counted from
 * both ends, and the number is the nonce: one that is forged, altered, repeated, left out or out of order does not open, and
 * nothing is taken after it. The key is that of one direction of one link, so no number is used twice with it.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';

/** What one record says at most. A whole frame fits in. */
export const MAX_RECORD_BYTES = 128 * 1024;
const LENGTH_BYTES = 4;
const TAG_BYTES = 16;
const NONCE_BYTES = 12;
const KEY_BYTES = 32;
/**
 * Then the key is exchanged for one made of it. With records of the largest size that are 2^33 bytes, far below what AES-GCM
 * is good for with one key. [RFC 8446 5.5]
 */
export const RECORDS_PER_KEY = 2 ** 16;
/** From here on copying costs more than a further part of a write. */
const JOIN_BELOW_BYTES = 16 * 1024;
/** Each piece that waits for the rest of its record costs more than its bytes. */
const MAX_PIECES = 256;

/** The key and the nonce of the next record of one direction; the same at both ends. */
class RecordCounter {
  key: Buffer;
  readonly nonce = Buffer.alloc(NONCE_BYTES);
  #next = 0;

  constructor(key: Buffer) {
    this.key = key;
  }

  advance(): void {
    if (this.#next === RECORDS_PER_KEY) {
      this.key = Buffer.from(hkdfSync('sha256', this.key, '', 'next key of a link', KEY_BYTES));
      this.#next = 0;
    }
    this.nonce.writeUInt32BE(this.#next, NONCE_BYTES - 4);
    this.#next += 1;
  }
}

export class RecordSealer {
  readonly #counter: RecordCounter;

  constructor(key: Buffer) {
    this.#counter = new RecordCounter(key);
  }

  /** The parts of a record, to be written one after the other. `plain` has MAX_RECORD_BYTES at most. */
  seal(plain: Buffer): readonly Buffer[] {
    const counter = this.#counter;
    counter.advance();
    const length = Buffer.allocUnsafe(LENGTH_BYTES);
    length.writeUInt32BE(plain.length + TAG_BYTES, 0);
    const cipher = createCipheriv('aes-256-gcm', counter.key, counter.nonce).setAAD(length);
    const sealed = cipher.update(plain);
    cipher.final();
    const tag = cipher.getAuthTag();
    return sealed.length < JOIN_BELOW_BYTES ? [Buffer.concat([length, sealed, tag])] : [length, sealed, tag];
  }
}

/** Opens records from bytes that come in any pieces. */
export class RecordOpener {
  readonly #counter: RecordCounter;
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(key: Buffer) {
    this.#counter = new RecordCounter(key);
  }

  /**
   * Hands over what the records say that are complete, until `take` returns false.
   * @returns false: this is none of the next record, and nothing that comes after it can be believed
   */
  push(piece: Buffer, take: (plain: Buffer) => boolean): boolean {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    if (this.#pieces.length > MAX_PIECES) this.#pieces = [Buffer.concat(this.#pieces, this.#bytes)];
    for (let length = this.#nextLength(); length !== undefined; length = this.#nextLength()) {
      if (length < TAG_BYTES || length > MAX_RECORD_BYTES + TAG_BYTES) return false;
      if (this.#bytes < LENGTH_BYTES + length) return true;
      const plain = this.#open(this.#takeBytes(LENGTH_BYTES + length));
      if (plain === undefined) return false;
      if (!take(plain)) return true;
    }
    return true;
  }

  #nextLength(): number | undefined {
    if (this.#bytes < LENGTH_BYTES) return undefined;
    if ((this.#pieces[0] as Buffer).length < LENGTH_BYTES) this.#pieces = [Buffer.concat(this.#pieces)];
    return (this.#pieces[0] as Buffer).readUInt32BE(0);
  }

  #takeBytes(length: number): Buffer {
    const [first] = this.#pieces;
    const all = this.#pieces.length === 1 && first !== undefined ? first : Buffer.concat(this.#pieces, this.#bytes);
    this.#pieces = all.length === length ? [] : [all.subarray(length)];
    this.#bytes -= length;
    return all.subarray(0, length);
  }

  #open(record: Buffer): Buffer | undefined {
    const counter = this.#counter;
    counter.advance();
    const decipher = createDecipheriv('aes-256-gcm', counter.key, counter.nonce)
      .setAAD(record.subarray(0, LENGTH_BYTES))
      .setAuthTag(record.subarray(-TAG_BYTES));
    try {
      const plain = decipher.update(record.subarray(LENGTH_BYTES, -TAG_BYTES));
      decipher.final();
      return plain;
    } catch {
      return undefined;
    }
  }
}
