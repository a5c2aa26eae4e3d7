/** Reads messages from servers as lines, JSON texts or events, and limits the memory they may use. */
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

/** Length up to which a line that is not a message is shown, and number of such lines kept for error messages. */
const MAX_SHOWN_LENGTH = 200;
const MAX_NOISE_LINES = 3;

export interface MessageSink {
  message(frame: Frame): void;
  fault(fault: ServerFault): void;
  /** Called if the server does not send its messages as lines, so no message can be read. */
  unreadable(error: BridgeError): void;
}

/**
 * Header before each message in the Language Server Protocol. The first is on a line of its own, later ones follow a
 * message on the same line.
 */
const LENGTH_HEADER = /content-length:[ \t]*(\d{1,9})[ \t]*$/i;
/** Length of the end of a line that is searched for that header. */
const HEADER_BYTES = 48;

export interface ServerLinesOptions {
  /** Name of the server in error messages and the log. */
  readonly name: string;
  readonly maxMessageBytes: number;
  /**
   * Warning logged once, at the first line that is not a message. It completes a sentence that begins with "the
   * server".
   */
  readonly noiseWarning: string;
  readonly sink: MessageSink;
  readonly log: Logger;
}

/** Reads a server's output: one message per line, and any other lines in between. */
export class ServerLines implements LineSink {
  readonly #options: ServerLinesOptions;
  readonly #splitter: LineSplitter;
  readonly #scanner = new EnvelopeScanner();
  readonly #noise: string[] = [];
  /** True once a message has been read. A line that looks like a length header is then ordinary output. */
  #hasRead = false;
  /** Length that a header has announced for the following message. */
  #announcedBytes: number | undefined;

  constructor(options: ServerLinesOptions) {
    this.#options = options;
    this.#splitter = new LineSplitter(this, options.maxMessageBytes);
  }

  /**
   * The first lines that were not messages, shortened. The first lines are kept because a usage text says most at its
   * beginning.
   */
  get noise(): readonly string[] {
    return this.#noise;
  }

  push(chunk: Buffer): void {
    this.#splitter.push(chunk);
    if (this.#announcedBytes === undefined || this.#splitter.pendingBytes < this.#announcedBytes) return;
    this.#announcedBytes = undefined;
    this.#options.sink.unreadable(framedError(this.#options.name));
  }

  /** Ends the input. A last line without a newline is read too. */
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

  /**
   * Detects a response without result and error, and reports it as a fault of its call. Some servers omit an empty
   * result, and the call should not wait for another response.
   */
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
   * Reads a batch. [spec 2025-03-26 basic#batching] A line may hold an array of messages, which are passed on
   * individually. Log lines such as `[info] ready` begin with a bracket too.
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
    if (this.#noise.length === 0) log.warn(`${noiseWarning}; skipping it (--log-level debug shows it)`);
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
 * Delivers a JSON text from a server: a message, or an array of messages, delivered in order.
 * [spec 2025-03-26 basic#batching] Takes ownership of the bytes. Returns false if the text was not a message and
 * nothing was delivered.
 * @param scanner shared by all texts of one server
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
  /** Name of the server in error messages. */
  readonly name: string;
  readonly maxMessageBytes: number;
  readonly message: (frame: Frame) => void;
  readonly fault: (fault: ServerFault & { readonly error: BridgeError }) => void;
}

/** Reads messages from the events of a long-lived stream. */
export class StreamMessages {
  readonly #options: StreamMessagesOptions;
  readonly #seen = new SeenEvents();
  readonly #scanner = new EnvelopeScanner();

  constructor(options: StreamMessagesOptions) {
    this.#options = options;
  }

  /** Call this when the stream has been resumed after a break. */
  resumed(): void {
    this.#seen.resumed();
  }

  /** Returns false if the event held no message. */
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

  /** Reports a message that was too long. */
  oversized(byteLength: number, { head, tail }: SkippedEnds): void {
    const { name, maxMessageBytes, fault } = this.#options;
    const { kind, id } = recoverEnvelope(head, tail);
    const bytes = `at least ${byteLength}`;
    fault({ error: oversizedError({ sender: `The server at ${name}`, bytes, maxMessageBytes, kind }), kind, id });
  }
}

/**
 * Limits of the remembered event ids. A server that replays more than it was asked for repeats recent events, so older
 * ones are not needed. Each call has its own memory, so fewer ids are kept if they are long, which no server needs.
 */
const KEPT_LIMITS = { count: 64, length: 8 * 1024 };

/**
 * Recognizes events that a resumed stream repeats. Only ids from before the break count: a server that gives several
 * events the same id breaks the rules, but none of these events may be lost.
 */
export class SeenEvents {
  readonly #recent = new RecentNames<true>(KEPT_LIMITS);
  #before: ReadonlySet<string> = new Set();

  /** Call this when the stream has broken and is being resumed. */
  resumed(): void {
    this.#before = new Set(Array.from(this.#recent, ([id]) => id));
  }

  /** Notes the event. Returns true if it was received before the break. */
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
  /** The size as text, since it may be known only in part. */
  readonly bytes: string;
  readonly maxMessageBytes: number;
  /** Kind of the message, if its beginning and end show it. */
  readonly kind: ServerFault['kind'];
}

/**
 * Creates the error for an oversized message. The server gets the error for a request of its own, the client gets it
 * for any other message.
 */
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
 * Limits of the answers kept for a server that does not read. Its clients are asked to pause meanwhile, but the server
 * may continue to send requests, and the bridge answers many of them itself at once: pings, and requests that no client
 * can be asked.
 */
const MAX_UNTAKEN = 4096;
const MAX_UNTAKEN_BYTES = 64 * 1024 * 1024;

/** Counts the answers to a server's requests that the server has not read. */
export class AnswerLimit {
  readonly #log: Logger;
  /** Answers and bytes since the server stopped reading. */
  #count = 0;
  #bytes = 0;
  #hasWarned = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  /**
   * Returns true if the message is an answer beyond the limits, which is to be dropped. Call this before each message
   * is sent.
   */
  excludes({ isResponse, bytes }: Frame, isFull: boolean): boolean {
    if (!isFull) {
      this.#count = 0;
      this.#bytes = 0;
    }
    if (!isFull || !isResponse) return false;
    this.#count += 1;
    this.#bytes += bytes.length;
    if (this.#count <= MAX_UNTAKEN && this.#bytes <= MAX_UNTAKEN_BYTES) return false;
    if (!this.#hasWarned)
      this.#log.warn('the server asks questions but does not read the answers; dropping them from now on');
    this.#hasWarned = true;
    return true;
  }
}
