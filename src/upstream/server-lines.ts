import type { Logger } from 'pino';
import { BridgeError } from '../errors.ts';
import { toPrintable } from '../printable.ts';
import type { ServerFault } from '../relay/ports.ts';
import { Frame } from '../wire/frame.ts';
import { CLOSE_BRACE, OPEN_BRACE, OPEN_BRACKET } from '../wire/json/ascii.ts';
import { type LineSink, LineSplitter, type OversizedLine } from '../wire/ndjson.ts';
import { readMessage, SERVER_LIMITS } from '../wire/read-message.ts';
import { EnvelopeScanner, recoverEnvelope } from '../wire/scan-envelope.ts';
import { oversizedError } from './oversized-error.ts';

/** What is shown of a line that is no message, and how many are kept for error messages. */
const MAX_SHOWN_LENGTH = 200;
const MAX_NOISE_LINES = 3;

export interface MessageSink {
  message(frame: Frame): void;
  fault(fault: ServerFault): void;
}

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
  }

  /** A last line without newline counts. */
  end(): void {
    this.#splitter.end();
  }

  line(bytes: Buffer): void {
    const envelope = this.#scanner.scan(bytes);
    if (envelope !== undefined) this.#options.sink.message(new Frame(bytes, envelope));
    else if (bytes[0] === OPEN_BRACKET) this.#batch(bytes);
    else if (!this.#isEmptyAnswer(bytes)) this.#skip(bytes);
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
      if (item instanceof Frame) this.#options.sink.message(item);
      else this.#options.log.debug(`skipped an item of a batch: ${item.fault}`);
    }
  }

  #skip(bytes: Buffer): void {
    const { log, noiseWarning } = this.#options;
    if (this.#noise.length === 0) log.warn(`${noiseWarning}; it is skipped (--log-level debug shows it)`);
    const isKept = this.#noise.length < MAX_NOISE_LINES;
    if (!isKept && !log.isLevelEnabled('debug')) return;
    const text = toPrintable(bytes.toString('utf8', 0, 4 * MAX_SHOWN_LENGTH), MAX_SHOWN_LENGTH);
    if (isKept) this.#noise.push(text);
    log.debug({ byteLength: bytes.length }, `not a message: ${text}`);
  }
}
