import { ByteCollector, SkippedBytes, type SkippedEnds } from './byte-collector.ts';
import { CR, LF } from './json/ascii.ts';
import { isWhitespace, toOneLine } from './json/scan-json.ts';

const BOM = Buffer.of(0xef, 0xbb, 0xbf);
const EMPTY = Buffer.alloc(0);

/** Called by LineSplitter, synchronously from `push` and `end`. */
export interface LineSink {
  /**
   * Receives a line without the whitespace around it, never empty and without CR or LF. The receiver owns the bytes.
   */
  line(bytes: Buffer): void;
  /** A line over the limit was dropped. */
  oversized(line: OversizedLine): void;
}

/** A line that was too long to keep, reduced to its ends. */
export interface OversizedLine extends SkippedEnds {
  /** Length of the whole line without its newline. */
  readonly byteLength: number;
}

/**
 * Splits a byte stream into lines. It owns the chunks, and returns a line inside one chunk without copying it. Memory
 * is limited to `maxLineBytes` plus one chunk, however long a line gets.
 *
 * A raw CR inside a line becomes a space: JSON treats it as whitespace, but in an event stream it would end the line,
 * so a frame must not contain one.
 */
export class LineSplitter {
  readonly #sink: LineSink;
  readonly #maxLineBytes: number;
  /** The start of an incomplete line; undefined until a chunk ends inside a line. */
  #pending: ByteCollector | undefined = undefined;
  /** Set while the rest of an oversized line is skipped. */
  #skipped: SkippedBytes | undefined;
  /** True if the last chunk ended inside a line, whose start is pending or skipped. */
  #isWithinLine = false;
  #isFirstLine = true;
  /** True if the pending bytes or the current chunk contain a CR. Usually false, which saves a search per line. */
  #mayHoldCr = false;

  constructor(sink: LineSink, maxLineBytes: number) {
    this.#sink = sink;
    this.#maxLineBytes = maxLineBytes;
  }

  /** Bytes kept of an incomplete line. */
  get pendingBytes(): number {
    return this.#pending?.byteLength ?? 0;
  }

  /** Drops the bytes of an incomplete line. */
  forget(): void {
    this.#pending?.clear();
  }

  /**
   * Takes the whole chunk, or only its first `maxLines` lines.
   *
   * @returns the number of bytes taken; the caller must push the rest before any other chunk
   */
  push(chunk: Buffer, maxLines = Number.POSITIVE_INFINITY): number {
    if (!this.#isWithinLine) this.#mayHoldCr = false;
    this.#mayHoldCr ||= chunk.includes(CR);
    let start = 0;
    for (let lines = 0; lines < maxLines; lines += 1) {
      start = this.#skipEmptyLines(chunk, start);
      const newline = chunk.indexOf(LF, start);
      if (newline === -1) {
        this.#keepRest(chunk, start);
        return chunk.length;
      }
      this.#finishLine(chunk.subarray(start, newline));
      start = newline + 1;
    }
    return start;
  }

  #keepRest(chunk: Buffer, start: number): void {
    if (start === chunk.length) return;
    this.#keep(chunk.subarray(start));
    this.#isWithinLine = true;
  }

  /** Ends the stream: a last line without a newline counts as a line. */
  end(): void {
    this.#finishLine(EMPTY);
  }

  /** Skips empty lines in a loop without subarrays, because there may be a million of them. */
  #skipEmptyLines(chunk: Buffer, start: number): number {
    if (this.#isWithinLine) return start;
    let at = start;
    while (chunk[at] === LF) at++;
    if (at > start) this.#isFirstLine = false;
    return at;
  }

  #keep(part: Buffer): void {
    if (this.#skipped === undefined) {
      this.#pending ??= new ByteCollector();
      if (this.#pending.byteLength + part.length <= this.#maxLineBytes) {
        this.#pending.append(part);
        return;
      }
      this.#skipped = new SkippedBytes();
      this.#skipped.append(this.#pending.take());
    }
    this.#skipped.append(part);
  }

  #finishLine(lastPart: Buffer): void {
    if (!this.#isWithinLine && lastPart.length <= this.#maxLineBytes) {
      this.#emit(lastPart);
      return;
    }
    this.#isWithinLine = false;
    this.#keep(lastPart);
    const skipped = this.#skipped;
    this.#skipped = undefined;
    if (skipped === undefined) {
      this.#emit(this.#pending?.take() ?? EMPTY);
    } else {
      const { tail, byteLength } = skipped;
      const head = this.#withoutBom(skipped.head);
      this.#isFirstLine = false;
      this.#sink.oversized({ head, tail, byteLength });
    }
  }

  #emit(raw: Buffer): void {
    const line = trim(this.#withoutBom(raw));
    this.#isFirstLine = false;
    if (line.length > 0) this.#sink.line(this.#mayHoldCr ? toOneLine(line) : line);
  }

  #withoutBom(line: Buffer): Buffer {
    return this.#isFirstLine && line.subarray(0, BOM.length).equals(BOM) ? line.subarray(BOM.length) : line;
  }
}

function trim(line: Buffer): Buffer {
  let start = 0;
  let end = line.length;
  while (start < end && isWhitespace(line[start])) start++;
  while (end > start && isWhitespace(line[end - 1])) end--;
  return start === 0 && end === line.length ? line : line.subarray(start, end);
}
