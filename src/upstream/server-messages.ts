/** Reads the messages that servers write, as lines, JSON texts or events, and bounds what they may cost. */
import type { Logger } from 'pino';
import { RecentNames } from '../collections/bounded-collections.ts';
import { BridgeError } from '../errors.ts';
import { toPrintable } from '../printable.ts';
import type { ServerFault } from '../relay/ports.ts';
import { KEPT_END_BYTES, type SkippedEnds } from '../wire/byte-collector.ts';
import { Frame } from '../wire/frame.ts';
import { CLOSE_BRACE, OPEN_BRACE, OPEN_BRACKET } from '../wire/json/ascii.ts';
import { toOneLine } from '../wire/json/scan-json.ts';
import { type LineSink, LineSplitter, type OversizedLine } from '../wire/ndjson.ts';
import { readMessage, SERVER_LIMITS, trimText } from '../wire/read-message.ts';
import { EnvelopeScanner, recoverEnvelope } from '../wire/scan-envelope.ts';
import type { DecodedEvent } from '../wire/sse-decode.ts';

// ---- Lines

/** What is shown of a line that is no message, and how many are kept for error messages. */
const MAX_SHOWN_LENGTH = 200;
const MAX_NOISE_LINES = 3;

export interface MessageSink {
  message(frame: Frame): void;
  fault(fault: ServerFault): void;
  /** The server does not write its messages as lines, so none will ever be read. */
  unreadable(error: BridgeError): void;
}

/** The header before each message of the Language Server Protocol. The first stands alone, others behind a message. */
const LENGTH_HEADER = /content-length:[ \t]*(\d{1,9})[ \t]*$/i;
/** The end of a line that may be that header. */
const HEADER_BYTES = 48;

export interface ServerLinesOptions {
  /** How the server is called in messages. */
  readonly name: string;
  readonly maxMessageBytes: number;
  /** What the log says, once, when it writes what is no message; completes "the server …". */
  readonly noiseWarning: string;
  readonly sink: MessageSink;
  readonly log: Logger;
}

/** Reads what a server writes: one message a line, and whatever else happens to be there. */
export class ServerLines implements LineSink {
  readonly #options: ServerLinesOptions;
  readonly #splitter: LineSplitter;
  readonly #scanner = new EnvelopeScanner();
  readonly #noise: string[] = [];
  /** A message was read: what looks like a header is something that the server prints. */
  #hasRead = false;
  /** The length that such a header announced for what follows. */
  #announcedBytes: number | undefined;

  constructor(options: ServerLinesOptions) {
    this.#options = options;
    this.#splitter = new LineSplitter(this, options.maxMessageBytes);
  }

  /** The first lines that were no messages, each short: a usage text says most where it begins. */
  get noise(): readonly string[] {
    return this.#noise;
  }

  push(chunk: Buffer): void {
    this.#splitter.push(chunk);
    if (this.#announcedBytes === undefined || this.#splitter.pendingBytes < this.#announcedBytes) return;
    this.#announcedBytes = undefined;
    this.#options.sink.unreadable(framedError(this.#options.name));
  }

  /** A last line without newline counts. */
  end(): void {
    this.#splitter.end();
  }

  line(bytes: Buffer): void {
    const envelope = this.#scanner.scan(bytes);
    if (envelope !== undefined) this.#read(new Frame(bytes, envelope));
    else if (bytes[0] === OPEN_BRACKET) this.#batch(bytes);
    else if (!this.#isEmptyAnswer(bytes)) this.#skip(bytes);
  }

  #read(frame: Frame): void {
    this.#hasRead = true;
    this.#announcedBytes = undefined;
    this.#options.sink.message(frame);
  }

  /** Some servers leave out a result that holds nothing. The call it was meant for is not to wait for another answer. */
  #isEmptyAnswer(bytes: Buffer): boolean {
    if (bytes[0] !== OPEN_BRACE || bytes[bytes.length - 1] !== CLOSE_BRACE) return false;
    const { id, kind, method } = recoverEnvelope(bytes, bytes);
    if (id === undefined || kind !== undefined || method !== undefined) return false;
    const message = `Server "${this.#options.name}" answered with neither a result nor an error.`;
    this.#options.sink.fault({ error: new BridgeError('ERR_UPSTREAM_PROTOCOL', message), kind: 'error', id });
    return true;
  }

  oversized({ head, tail, byteLength }: OversizedLine): void {
    if (head[0] !== OPEN_BRACE && head[0] !== OPEN_BRACKET) return this.#skip(head);
    const { name, maxMessageBytes, sink } = this.#options;
    const { kind, id } = recoverEnvelope(head, tail);
    const error = oversizedError({ sender: `Server "${name}"`, bytes: `${byteLength}`, maxMessageBytes, kind });
    sink.fault({ error, kind, id });
  }

  /**
   * [spec 2025-03-26 basic#batching] a line may hold an array of messages; they are passed on one by one. Log lines
   * like `[info] ready` start with a bracket, too.
   */
  #batch(bytes: Buffer): void {
    const result = readMessage(bytes, SERVER_LIMITS);
    if (result.kind !== 'batch') return this.#skip(bytes);
    for (const item of result.items) {
      if (item instanceof Frame) this.#read(item);
      else this.#options.log.debug(`skipped an item of a batch: ${item.fault}`);
    }
  }

  #skip(bytes: Buffer): void {
    const { log, noiseWarning } = this.#options;
    if (!this.#hasRead) {
      const header = LENGTH_HEADER.exec(bytes.toString('latin1', Math.max(0, bytes.length - HEADER_BYTES)));
      if (header !== null) this.#announcedBytes = Number(header[1]);
    }
    if (this.#noise.length === 0) log.warn(`${noiseWarning}; it is skipped (--log-level debug shows it)`);
    const isKept = this.#noise.length < MAX_NOISE_LINES;
    if (!isKept && !log.isLevelEnabled('debug')) return;
    const text = toPrintable(bytes.toString('utf8', 0, 4 * MAX_SHOWN_LENGTH), MAX_SHOWN_LENGTH);
    if (isKept) this.#noise.push(text);
    log.debug({ byteLength: bytes.length }, `not a message: ${text}`);
  }
}

function framedError(name: string): BridgeError {
  return new BridgeError(
    'ERR_UPSTREAM_PROTOCOL',
    `Server "${name}" writes its messages behind Content-Length headers, as the Language Server Protocol does; over stdio MCP expects each message as one line of JSON. Use a version or an option of the server that writes lines.`,
  );
}

// ---- JSON texts

/**
 * Delivers what a server wrote as one JSON text: a message, or an array of them, which is taken apart in its order.
 * [spec 2025-03-26 basic#batching] Owns the bytes. False: it was no message, and nothing was delivered.
 * @param scanner for all that one server says
 */
export function takeMessages(bytes: Buffer, scanner: EnvelopeScanner, deliver: (frame: Frame) => void): boolean {
  const text = toOneLine(trimText(bytes));
  const envelope = scanner.scan(text);
  if (envelope !== undefined) {
    deliver(new Frame(text, envelope));
    return true;
  }
  if (text[0] !== OPEN_BRACKET) return false;
  const read = readMessage(text, SERVER_LIMITS);
  if (read.kind !== 'batch') return false;
  const frames = read.items.filter((item) => item instanceof Frame);
  for (const frame of frames) deliver(frame);
  return frames.length > 0;
}

// ---- Events

export interface StreamMessagesOptions {
  /** How the server is called in messages. */
  readonly name: string;
  readonly maxMessageBytes: number;
  readonly message: (frame: Frame) => void;
  readonly fault: (fault: ServerFault & { readonly error: BridgeError }) => void;
}

/** Messages out of the events of a long-lived stream. */
export class StreamMessages {
  readonly #options: StreamMessagesOptions;
  readonly #seen = new SeenEvents();
  readonly #scanner = new EnvelopeScanner();

  constructor(options: StreamMessagesOptions) {
    this.#options = options;
  }

  /** The stream goes on after a break. */
  resumed(): void {
    this.#seen.resumed();
  }

  /** False: the event held no message. */
  take({ id, data }: DecodedEvent): boolean {
    if (this.#seen.isRepeated(id)) return true;
    const { maxMessageBytes, message } = this.#options;
    if (data.length <= maxMessageBytes) return takeMessages(data, this.#scanner, message);
    this.oversized(data.length, {
      head: data.subarray(0, KEPT_END_BYTES),
      tail: data.subarray(-KEPT_END_BYTES),
    });
    return true;
  }

  /** A message that was too long went by. */
  oversized(byteLength: number, { head, tail }: SkippedEnds): void {
    const { name, maxMessageBytes, fault } = this.#options;
    const { kind, id } = recoverEnvelope(head, tail);
    const bytes = `at least ${byteLength}`;
    fault({ error: oversizedError({ sender: `The server at ${name}`, bytes, maxMessageBytes, kind }), kind, id });
  }
}

/**
 * A server that replays more than was asked for repeats recent events; older ones are not kept. Each call has its own,
 * so of long ids, which no server needs, fewer are.
 */
const KEPT_LIMITS = { count: 64, length: 8 * 1024 };

/**
 * Tells events that a resumed stream repeats. Only ids from before the break count: a server that gives several events
 * the same id breaks the rules, but none of them may be lost for it.
 */
export class SeenEvents {
  readonly #recent = new RecentNames<true>(KEPT_LIMITS);
  #before: ReadonlySet<string> = new Set();

  /** The stream broke and is being resumed. */
  resumed(): void {
    this.#before = new Set(Array.from(this.#recent, ([id]) => id));
  }

  /** Notes the event; true when it came before the break already. */
  isRepeated(id: string | undefined): boolean {
    if (id === undefined || id === '') return false;
    if (this.#before.has(id)) return true;
    this.#recent.set(id, true);
    return false;
  }
}

// ---- Limits

export interface OversizedMessage {
  /** The sender, as the beginning of a sentence. */
  readonly sender: string;
  /** In words, for not all of them may have been counted. */
  readonly bytes: string;
  readonly maxMessageBytes: number;
  /** The kind of the message, as far as its beginning and end tell. */
  readonly kind: ServerFault['kind'];
}

/** A request is refused to the server, as the request of a client would be; of all else a client hears. */
export function oversizedError({ sender, bytes, maxMessageBytes, kind }: OversizedMessage): BridgeError {
  const limit = `up to ${maxMessageBytes} are allowed`;
  if (kind === 'request') {
    const message = `${sender} sent a request of ${bytes} bytes; ${limit}. It was refused; send less at once or raise --max-message-bytes.`;
    return new BridgeError('ERR_WIRE_FRAME_TOO_LARGE', message);
  }
  const message = `${sender} sent a message of ${bytes} bytes; ${limit}. It was dropped; raise --max-message-bytes or let the server send less.`;
  return new BridgeError('ERR_UPSTREAM_TOO_LARGE', message);
}

/**
 * Answers that are kept for a server which takes nothing. Its clients are asked to stop meanwhile, but the server itself
 * goes on asking, and much of that is answered here at once: pings, and what nobody can be asked.
 */
const MAX_UNTAKEN = 4096;
const MAX_UNTAKEN_BYTES = 64 * 1024 * 1024;

/** What a server has not taken of the answers to its own requests. */
export class AnswerLimit {
  readonly #log: Logger;
  /** Since the server has been full. */
  #count = 0;
  #bytes = 0;
  #hasWarned = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** True: an answer that is one too many, and is to be dropped. To be asked before each message. */
  excludes({ isResponse, bytes }: Frame, isFull: boolean): boolean {
    if (!isFull) {
      this.#count = 0;
      this.#bytes = 0;
    }
    if (!isFull || !isResponse) return false;
    this.#count += 1;
    this.#bytes += bytes.length;
    if (this.#count <= MAX_UNTAKEN && this.#bytes <= MAX_UNTAKEN_BYTES) return false;
    if (!this.#hasWarned) this.#log.warn('the server asks and takes no answers; from now on they are dropped');
    this.#hasWarned = true;
    return true;
  }
}
