/** Reads event streams as bytes. [spec WHATWG HTML server-sent events#event-stream-interpretation] */

import { ByteCollector, SkippedBytes, type SkippedEnds } from './byte-collector.ts';
import { COLON, CR, LF, SPACE } from './json/ascii.ts';

/**
 * Lines up to this length are read even in an oversized event: an `id` among them must count, or a client that resumes
 * would be sent the same event forever.
 */
const SHORT_LINE_BYTES = 1024;

const DATA_FIELD = 'data:';
const MESSAGE = 'message';
const NEWLINE = Buffer.of(LF);
const EMPTY = Buffer.alloc(0);

export interface DecodedEvent {
  /** Event type; `message` if the stream names none. */
  readonly event: string;
  /** The `id` field of this event itself. */
  readonly id: string | undefined;
  /**
   * The event's data lines joined by LF. The receiver owns the bytes. In JSON the LF may become a space (toOneLine): it
   * can only be between tokens, because JSON strings contain no raw newline.
   */
  readonly data: Buffer;
}

/** Called by SseDecoder, synchronously from `push`. */
export interface EventSink {
  event(event: DecodedEvent): void;
  /**
   * The delay that the server requests before a reconnection. It can be any size, so the receiver sets its own limit.
   */
  retry(ms: number): void;
  /**
   * An oversized event was dropped. `byteLength` counts its lines without line ends; `ends` are both ends of its data.
   */
  oversized(byteLength: number, ends: SkippedEnds): void;
}

type SkippedLine = 'skipped' | 'dropped' | 'comment';

/**
 * Decodes one response body. It owns the chunks, and returns an event's data without copying if the data is one line
 * inside one chunk. Memory is limited to `maxEventBytes` plus one chunk.
 *
 * Differs from the standard in one point: an event with empty data is not emitted, only its id is kept. No message is
 * empty, and MCP sends such events only for their id.
 */
export class SseDecoder {
  readonly #sink: EventSink;
  readonly #maxEventBytes: number;
  #lastEventId: string | undefined;

  /** The start of an incomplete line; undefined until a chunk ends inside a line. */
  #line: ByteCollector | undefined = undefined;
  #lineLength = 0;
  /**
   * State of the current line. `kept`: all bytes so far are kept. `skipped`: a data line too long for its event; its
   * bytes are counted, and only both ends are kept. `dropped`: another field that is too long. `comment`: a comment
   * that is too long and does not count toward the event.
   */
  #lineState: 'kept' | SkippedLine = 'kept';
  #isFirstLine = true;
  /** True if the last chunk ended with CR: an LF at the start of the next one belongs to it. */
  #endedWithCr = false;

  #eventLength = 0;
  #eventType = '';
  #eventId: string | undefined;
  /** The first data line, not copied. */
  #data: Buffer | undefined = undefined;
  /** All data lines of an event that has more than one. */
  #dataLines: ByteCollector | undefined = undefined;
  /** The ends of data that is too long; undefined while the data fits. */
  #skippedData: SkippedBytes | undefined = undefined;

  /** @param lastEventId the last event id of the stream that this one resumes */
  constructor(sink: EventSink, maxEventBytes: number, lastEventId?: string) {
    this.#sink = sink;
    this.#maxEventBytes = maxEventBytes;
    this.#lastEventId = lastEventId;
  }

  /** The value for `Last-Event-ID`: the id after the last complete event. Undefined if there is none. */
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
        // Each search continues where the last one stopped, so a chunk is searched once for either byte.
        cr = chunk.indexOf(CR, start);
      }
      if (lf !== -1 && lf < start) lf = chunk.indexOf(LF, start);
    }
    if (start < chunk.length) this.#keepPart(chunk, start, chunk.length);
  }

  /** Ends the stream: an event without its final empty line is discarded. */
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

  /** Handles the start of a line that is too long. */
  #skipLine(bytes: Buffer): SkippedLine {
    if (bytes[0] === COLON) return 'comment';
    if (!isText(bytes, 0, DATA_FIELD.length, DATA_FIELD)) return 'dropped';
    this.#skipData(bytes.subarray(valueAfter(bytes, DATA_FIELD.length - 1, bytes.length)));
    return 'skipped';
  }

  #hasCapacityFor(lineLength: number): boolean {
    return lineLength <= SHORT_LINE_BYTES || this.#eventLength + lineLength <= this.#maxEventBytes;
  }

  /** Works with offsets: most lines lie inside one chunk, and a subarray costs more than reading the line. */
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
      // Nearly every MCP event has this type, so the text is rarely decoded.
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

  /** Keeps only the ends of this value and of the data before it. */
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
