import type { Logger } from 'pino';
import { BridgeError } from '../errors.ts';
import { toPrintable } from '../process/printable.ts';
import type { ServerFault } from '../relay/ports.ts';
import { OPEN_BRACE, OPEN_BRACKET } from '../wire/ascii.ts';
import { EnvelopeScanner } from '../wire/envelope-scanner.ts';
import { Frame } from '../wire/frame.ts';
import { type LineSink, LineSplitter, type OversizedLine } from '../wire/ndjson.ts';
import { readMessage } from '../wire/read-message.ts';
import { recoverEnvelope } from '../wire/scan-envelope.ts';

/** What is shown of a line that is no message. */
const MAX_SHOWN_LENGTH = 200;
const BATCH_LIMITS = { maxDepth: 1000, maxBatch: 1000 };

export interface MessageSink {
  message(frame: Frame): void;
  fault(fault: ServerFault): void;
}

export interface StdioMessagesOptions {
  /** How the server is called in messages. */
  readonly name: string;
  readonly maxMessageBytes: number;
  readonly sink: MessageSink;
  readonly log: Logger;
}

/** Reads what a server writes to its stdout: one message a line, and whatever else happens to be there. */
export class StdioMessages implements LineSink {
  readonly #options: StdioMessagesOptions;
  readonly #splitter: LineSplitter;
  readonly #scanner = new EnvelopeScanner();
  #hasWarned = false;

  constructor(options: StdioMessagesOptions) {
    this.#options = options;
    this.#splitter = new LineSplitter(this, options.maxMessageBytes);
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
    else this.#skip(bytes);
  }

  oversized({ head, tail, byteLength }: OversizedLine): void {
    if (head[0] !== OPEN_BRACE && head[0] !== OPEN_BRACKET) return this.#skip(head);
    const { name, maxMessageBytes, sink } = this.#options;
    const { kind, id } = recoverEnvelope(head, tail);
    const message =
      `Server "${name}" sent a message of ${byteLength} bytes; up to ${maxMessageBytes} are allowed. ` +
      'It was dropped; raise --max-message-bytes or let the server send less.';
    sink.fault({ error: new BridgeError('ERR_UPSTREAM_TOO_LARGE', message), kind, id });
  }

  /**
   * [spec 2025-03-26 basic#batching] a line may hold an array of messages; they are passed on one by one. Log lines
   * like `[info] ready` start with a bracket, too.
   */
  #batch(bytes: Buffer): void {
    const result = readMessage(bytes, BATCH_LIMITS);
    if (result.kind !== 'batch') return this.#skip(bytes);
    for (const item of result.items) {
      if (item instanceof Frame) this.#options.sink.message(item);
      else this.#options.log.debug(`skipped an item of a batch: ${item.fault}`);
    }
  }

  #skip(bytes: Buffer): void {
    const { log } = this.#options;
    if (!this.#hasWarned) {
      this.#hasWarned = true;
      log.warn('prints to stdout something that is not MCP; it is skipped (--log-level debug shows it)');
    }
    if (!log.isLevelEnabled('debug')) return;
    const text = toPrintable(bytes.toString('utf8', 0, 4 * MAX_SHOWN_LENGTH), MAX_SHOWN_LENGTH);
    log.debug({ byteLength: bytes.length }, `not a message: ${text}`);
  }
}
