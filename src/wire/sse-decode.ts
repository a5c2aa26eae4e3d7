/** Reads event streams as bytes. [spec WHATWG HTML server-sent events#event-stream-interpretation] */

import { ByteCollector, SkippedBytes, type SkippedEnds } from './byte-collector.ts';
import { COLON, CR, LF, SPACE } from './json/ascii.ts';

/**
 * Lines up to this length are read even in an event that is over the limit: an `id` among them must count, or a
 * client that resumes would be sent the same event for ever.
 */
const SHORT_LINE_BYTES = 1024;

const DATA_FIELD = 'data:';
const MESSAGE = 'message';
const NEWLINE = Buffer.of(LF);
const EMPTY = Buffer.alloc(0);

export interface DecodedEvent {
  /** Event type, `message` unless the stream says otherwise. */
  readonly event: string;
  /** The `id` field of this very event. */
  readonly id: string | undefined;
  /**
   * Its data lines joined by LF. The receiver owns the bytes. For JSON the LF may become a space (toOneLine): it can
   * only stand between tokens, for JSON strings hold no raw newline.
   */
  readonly data: Buffer;
}

/** Called by SseDecoder, synchronously from `push`. */
export interface EventSink {
  event(event: DecodedEvent): void;
  /** The server asks to wait this long before reconnecting; any size, so the receiver sets its own bound. */
  retry(ms: number): void;
  /** An event over the limit went by. `byteLength` counts its lines without their ends; `ends` are those of its data. */
  oversized(byteLength: number, ends: SkippedEnds): void;
}

type SkippedLine = 'skipped' | 'dropped' | 'comment';

/**
 * Decodes one response body. It owns the chunks it is given and hands out parts of them uncopied when an event's data
 * is one line within one chunk. Memory stays within `maxEventBytes` plus one chunk.
 *
 * Departs from the standard in one point: an event whose data is empty is not handed out, only its id is kept. No
 * message is empty, and MCP sends such events for their id alone.
 */
export class SseDecoder {
  readonly #sink: EventSink;
  readonly #maxEventBytes: number;
  #lastEventId: string | undefined;

  /** The line being read, as far as earlier chunks brought it; undefined until a chunk ends within a line. */
  #line: ByteCollector | undefined = undefined;
  #lineLength = 0;
  /**
   * - `kept`: as far as it is known.
   * - `skipped`: data too long for what its event may still hold; all but its ends is counted and not kept.
   * - `dropped`: too long and no data.
   * - `comment`: too long and no part of its event.
   */
  #lineState: 'kept' | SkippedLine = 'kept';
  #isFirstLine = true;
  /** The last chunk ended with CR: an LF at the start of the next one belongs to it. */
  #endedWithCr = false;

  #eventLength = 0;
  #eventType = '';
  #eventId: string | undefined;
  /** The first data line, uncopied. */
  #data: Buffer | undefined = undefined;
  /** All data lines of an event that has more than one. */
  #dataLines: ByteCollector | undefined = undefined;
  /** What is kept of the data once it is too long. */
  #skippedData: SkippedBytes | undefined = undefined;

  /** @param lastEventId in force when the stream broke that this one resumes */
  constructor(sink: EventSink, maxEventBytes: number, lastEventId?: string) {
    this.#sink = sink;
    this.#maxEventBytes = maxEventBytes;
    this.#lastEventId = lastEventId;
  }

  /** For `Last-Event-ID`: the id in force after the last complete event; undefined when there is none to send. */
  get lastEventId(): string | undefined {
    return this.#lastEventId;
  }

  push(chunk: Buffer): void {
    let start = this.#endedWithCr && chunk[0] === LF ? 1 : 0;
    if (chunk.length > 0) this.#endedWithCr = false;
    let lf = chunk.indexOf(LF, start);
    let cr = chunk.indexOf(CR, start);
    while (lf !== -1 || cr !== -1) {
      const end = lf === -1 || (cr !== -1 && cr < lf) ? cr : lf;
      this.#finishLine(chunk, start, end);
      start = end + 1;
      if (end === cr) {
        if (start === chunk.length) this.#endedWithCr = true;
        if (lf === start) start++;
        // Each search goes on from where it stopped, so a chunk is searched once for either byte.
        cr = chunk.indexOf(CR, start);
      }
      if (lf !== -1 && lf < start) lf = chunk.indexOf(LF, start);
    }
    if (start < chunk.length) this.#keepPart(chunk, start, chunk.length);
  }

  /** The stream is over: an event that no empty line ended does not count. */
  end(): void {
    this.#resetLine();
    this.#resetEvent();
  }

  #keepPart(chunk: Buffer, start: number, end: number): void {
    this.#lineLength += end - start;
    const part = chunk.subarray(start, end);
    if (this.#lineState === 'skipped') this.#skippedData?.append(part);
    if (this.#lineState !== 'kept') return;
    this.#line ??= new ByteCollector();
    this.#line.append(part);
    if (this.#hasCapacityFor(this.#lineLength)) return;
    this.#lineState = this.#skipLine(this.#line.take());
  }

  /** Takes the beginning of a line that is too long. */
  #skipLine(bytes: Buffer): SkippedLine {
    if (bytes[0] === COLON) return 'comment';
    if (!isText(bytes, 0, DATA_FIELD.length, DATA_FIELD)) return 'dropped';
    this.#skipData(bytes.subarray(valueAfter(bytes, DATA_FIELD.length - 1, bytes.length)));
    return 'skipped';
  }

  #hasCapacityFor(lineLength: number): boolean {
    return lineLength <= SHORT_LINE_BYTES || this.#eventLength + lineLength <= this.#maxEventBytes;
  }

  /** Works with offsets: most lines are read where they lie, and a subarray costs more than reading one. */
  #finishLine(chunk: Buffer, start: number, end: number): void {
    if (this.#lineLength > 0) {
      this.#keepPart(chunk, start, end);
      if (this.#lineState === 'kept') this.#readLine(this.#line?.take() ?? EMPTY, 0, this.#lineLength);
      else if (this.#lineState !== 'comment') this.#countLine(this.#lineLength);
      this.#resetLine();
    } else if (this.#hasCapacityFor(end - start)) {
      this.#readLine(chunk, start, end);
    } else {
      const state = this.#skipLine(chunk.subarray(start, end));
      if (state !== 'comment') this.#countLine(end - start);
    }
    this.#isFirstLine = false;
  }

  #resetLine(): void {
    this.#line?.clear();
    this.#lineLength = 0;
    this.#lineState = 'kept';
  }

  #readLine(bytes: Buffer, lineStart: number, end: number): void {
    const start = this.#isFirstLine && startsWithBom(bytes, lineStart, end) ? lineStart + 3 : lineStart;
    if (start === end) {
      this.#dispatch();
    } else if (bytes[start] !== COLON) {
      this.#countLine(end - start);
      this.#readField(bytes, start, end);
    } // else a comment
  }

  #countLine(length: number): void {
    this.#eventLength += length;
    if (this.#isOversized) this.#skipData(EMPTY);
  }

  get #isOversized(): boolean {
    return this.#eventLength > this.#maxEventBytes;
  }

  #readField(bytes: Buffer, start: number, end: number): void {
    let nameEnd = start;
    while (nameEnd < end && bytes[nameEnd] !== COLON) nameEnd++;
    const valueStart = valueAfter(bytes, nameEnd, end);
    if (isText(bytes, start, nameEnd, 'data')) {
      if (this.#isOversized) this.#skipData(bytes.subarray(valueStart, end));
      else this.#addData(bytes.subarray(valueStart, end));
    } else if (isText(bytes, start, nameEnd, 'event')) {
      // Nearly every event of MCP says so, which saves the decoding.
      const isMessage = isText(bytes, valueStart, end, MESSAGE);
      this.#eventType = isMessage ? MESSAGE : bytes.toString('utf8', valueStart, end);
    } else if (isText(bytes, start, nameEnd, 'id')) {
      const id = bytes.toString('utf8', valueStart, end);
      if (!id.includes('\0')) this.#eventId = id;
    } else if (isText(bytes, start, nameEnd, 'retry')) {
      const digits = bytes.toString('latin1', valueStart, end);
      if (/^\d+$/.test(digits)) this.#sink.retry(Math.min(Number(digits), Number.MAX_SAFE_INTEGER));
    }
  }

  #addData(value: Buffer): void {
    if (this.#data === undefined) {
      this.#data = value;
      return;
    }
    if (this.#dataLines === undefined) {
      this.#dataLines = new ByteCollector();
      this.#dataLines.append(this.#data);
    }
    this.#dataLines.append(NEWLINE);
    this.#dataLines.append(value);
  }

  /** Keeps no more than the ends of this value and of what came before it. */
  #skipData(value: Buffer): void {
    const skipped = this.#skippedData ?? new SkippedBytes();
    this.#skippedData = skipped;
    const kept = this.#dataLines?.take() ?? this.#data;
    if (kept !== undefined) skipped.append(kept);
    this.#data = undefined;
    this.#dataLines = undefined;
    skipped.append(value);
  }

  #dispatch(): void {
    const id = this.#eventId;
    if (id !== undefined) this.#lastEventId = id === '' ? undefined : id;
    const event = this.#eventType === '' ? MESSAGE : this.#eventType;
    const data = this.#dataLines?.take() ?? this.#data ?? EMPTY;
    const skipped = this.#skippedData;
    const byteLength = this.#eventLength;
    this.#resetEvent();
    if (skipped !== undefined) this.#sink.oversized(byteLength, skipped);
    else if (data.length > 0) this.#sink.event({ event, id, data });
  }

  #resetEvent(): void {
    this.#eventLength = 0;
    this.#eventType = '';
    this.#eventId = undefined;
    this.#data = undefined;
    this.#dataLines = undefined;
    this.#skippedData = undefined;
  }
}

/** The value follows the colon and one optional space; a field without colon has an empty value. */
function valueAfter(bytes: Buffer, nameEnd: number, end: number): number {
  const colon = Math.min(nameEnd + 1, end);
  return colon < end && bytes[colon] === SPACE ? colon + 1 : colon;
}

function startsWithBom(bytes: Buffer, start: number, end: number): boolean {
  return end - start >= 3 && bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf;
}

function isText(bytes: Buffer, start: number, end: number, expected: string): boolean {
  if (end - start !== expected.length) return false;
  for (let index = 0; index < expected.length; index++) {
    if (bytes[start + index] !== expected.charCodeAt(index)) return false;
  }
  return true;
}
