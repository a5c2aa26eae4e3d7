/** Reads event streams as bytes. [spec WHATWG HTML server-sent events#event-stream-interpretation] */
import { COLON, CR, DIGIT_0, DIGIT_9, LF, SPACE } from './ascii.ts';
import { ByteCollector } from './byte-collector.ts';

/**
 * Lines up to this length are read even in an event that is over the limit: an `id` among them must count, or a
 * client that resumes would be sent the same event for ever.
 */
const SHORT_LINE_BYTES = 1024;

const BOM = Buffer.of(0xef, 0xbb, 0xbf);
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
  /** An event over the limit went by and was dropped. `byteLength` counts its lines without their ends. */
  oversized(byteLength: number): void;
}

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

  /** The line being read, as far as earlier chunks brought it. */
  readonly #line = new ByteCollector();
  #lineLength = 0;
  /** The line is too long for what its event may still hold: its bytes are counted and not kept. */
  #lineIsDropped = false;
  #isFirstLine = true;
  /** The last chunk ended with CR: an LF at the start of the next one belongs to it. */
  #endedWithCr = false;

  #eventLength = 0;
  #eventType = '';
  #eventId: string | undefined;
  /** The only data line so far, uncopied; further lines move it into the collector. */
  #data: Buffer | undefined;
  readonly #dataLines = new ByteCollector();

  constructor(sink: EventSink, maxEventBytes: number) {
    this.#sink = sink;
    this.#maxEventBytes = maxEventBytes;
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
      this.#finishLine(chunk.subarray(start, end));
      start = end + 1;
      if (end === cr) {
        if (start === chunk.length) this.#endedWithCr = true;
        if (lf === start) start++;
        // Each search goes on from where it stopped, so a chunk is searched once for either byte.
        cr = chunk.indexOf(CR, start);
      }
      if (lf !== -1 && lf < start) lf = chunk.indexOf(LF, start);
    }
    if (start < chunk.length) this.#keepPart(chunk.subarray(start));
  }

  /** The stream is over: an event that no empty line ended does not count. */
  end(): void {
    this.#resetLine();
    this.#resetEvent();
  }

  #keepPart(part: Buffer): void {
    this.#lineLength += part.length;
    this.#lineIsDropped ||= !this.#hasRoomFor(this.#lineLength);
    if (this.#lineIsDropped) this.#line.clear();
    else this.#line.append(part);
  }

  #hasRoomFor(lineLength: number): boolean {
    return lineLength <= SHORT_LINE_BYTES || this.#eventLength + lineLength <= this.#maxEventBytes;
  }

  #finishLine(lastPart: Buffer): void {
    if (this.#lineLength === 0) {
      // The line lies within this chunk.
      this.#readLine(this.#hasRoomFor(lastPart.length) ? lastPart : undefined, lastPart.length);
      return;
    }
    this.#keepPart(lastPart);
    const length = this.#lineLength;
    const line = this.#lineIsDropped ? undefined : this.#line.take();
    this.#resetLine();
    this.#readLine(line, length);
  }

  #resetLine(): void {
    this.#line.clear();
    this.#lineLength = 0;
    this.#lineIsDropped = false;
  }

  /** `line` is undefined when it was too long to keep. */
  #readLine(line: Buffer | undefined, length: number): void {
    const isMarked = this.#isFirstLine && line?.subarray(0, BOM.length).equals(BOM);
    this.#isFirstLine = false;
    const content = isMarked ? line.subarray(BOM.length) : line;
    if (content?.length === 0) {
      this.#dispatch();
      return;
    }
    if (content?.[0] === COLON) return; // a comment
    this.#eventLength += length;
    if (this.#isOversized) this.#dropData();
    if (content !== undefined) this.#readField(content);
  }

  get #isOversized(): boolean {
    return this.#eventLength > this.#maxEventBytes;
  }

  #readField(line: Buffer): void {
    const colon = line.indexOf(COLON);
    const name = colon === -1 ? line : line.subarray(0, colon);
    if (isName(name, 'data')) {
      if (!this.#isOversized) this.#addData(fieldValue(line, colon));
    } else if (isName(name, 'event')) {
      this.#eventType = fieldValue(line, colon).toString();
    } else if (isName(name, 'id')) {
      const id = fieldValue(line, colon);
      if (!id.includes(0)) this.#eventId = id.toString();
    } else if (isName(name, 'retry')) {
      const digits = fieldValue(line, colon);
      if (isDigits(digits)) this.#sink.retry(Math.min(Number(digits.toString('latin1')), Number.MAX_SAFE_INTEGER));
    }
  }

  #addData(value: Buffer): void {
    if (this.#dataLines.byteLength === 0) {
      if (this.#data === undefined) {
        this.#data = value;
        return;
      }
      this.#dataLines.append(this.#data);
    }
    this.#dataLines.append(NEWLINE);
    this.#dataLines.append(value);
  }

  #dropData(): void {
    this.#data = undefined;
    this.#dataLines.clear();
  }

  #dispatch(): void {
    const id = this.#eventId;
    if (id !== undefined) this.#lastEventId = id === '' ? undefined : id;
    const event = this.#eventType === '' ? 'message' : this.#eventType;
    const data = this.#dataLines.byteLength > 0 ? this.#dataLines.take() : (this.#data ?? EMPTY);
    const oversizedLength = this.#isOversized ? this.#eventLength : undefined;
    this.#resetEvent();
    if (oversizedLength !== undefined) this.#sink.oversized(oversizedLength);
    else if (data.length > 0) this.#sink.event({ event, id, data });
  }

  #resetEvent(): void {
    this.#eventLength = 0;
    this.#eventType = '';
    this.#eventId = undefined;
    this.#dropData();
  }
}

function isName(name: Buffer, expected: string): boolean {
  if (name.length !== expected.length) return false;
  for (let index = 0; index < expected.length; index++) {
    if (name[index] !== expected.charCodeAt(index)) return false;
  }
  return true;
}

/** What follows the colon and one optional space; a field without colon has an empty value. */
function fieldValue(line: Buffer, colon: number): Buffer {
  if (colon === -1) return EMPTY;
  return line.subarray(line[colon + 1] === SPACE ? colon + 2 : colon + 1);
}

function isDigits(value: Buffer): boolean {
  return value.length > 0 && value.every((byte) => byte >= DIGIT_0 && byte <= DIGIT_9);
}
