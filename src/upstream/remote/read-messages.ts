import { OPEN_BRACKET } from '../../wire/ascii.ts';
import { EnvelopeScanner } from '../../wire/envelope-scanner.ts';
import { Frame } from '../../wire/frame.ts';
import { toOneLine } from '../../wire/one-line.ts';
import { readMessage, SERVER_LIMITS } from '../../wire/read-message.ts';
import { isWhitespace, skipWhitespace } from '../../wire/scan-json.ts';

const BOM = Buffer.of(0xef, 0xbb, 0xbf);

/** Reads what a server wrote as JSON texts, in one answer or on one stream. */
export class ServerMessages {
  readonly #scanner = new EnvelopeScanner();
  readonly #deliver: (frame: Frame) => void;

  constructor(deliver: (frame: Frame) => void) {
    this.#deliver = deliver;
  }

  /**
   * Takes one text: a message, or an array of them, which is taken apart in its order.
   * [spec 2025-03-26 basic#batching] Owns the bytes. False: it was no message, and nothing was delivered.
   */
  take(bytes: Buffer): boolean {
    const text = toOneLine(trim(bytes));
    const envelope = this.#scanner.scan(text);
    if (envelope !== undefined) {
      this.#deliver(new Frame(text, envelope));
      return true;
    }
    if (text[0] !== OPEN_BRACKET) return false;
    const read = readMessage(text, SERVER_LIMITS);
    if (read.kind !== 'batch') return false;
    const frames = read.items.filter((item) => item instanceof Frame);
    for (const frame of frames) this.#deliver(frame);
    return frames.length > 0;
  }
}

function trim(bytes: Buffer): Buffer {
  const hasBom = bytes[0] === BOM[0] && bytes.subarray(0, BOM.length).equals(BOM);
  const start = skipWhitespace(bytes, hasBom ? BOM.length : 0);
  let end = bytes.length;
  while (end > start && isWhitespace(bytes[end - 1])) end--;
  return start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
}
