import { RecentNames } from '../../collections/recent-names.ts';
import type { BridgeError } from '../../errors.ts';
import type { ServerFault } from '../../relay/ports.ts';
import { Frame } from '../../wire/frame.ts';
import { OPEN_BRACKET } from '../../wire/json/ascii.ts';
import { isWhitespace, skipWhitespace } from '../../wire/json/scan-json.ts';
import { toOneLine } from '../../wire/ndjson.ts';
import { readMessage, SERVER_LIMITS } from '../../wire/read-message.ts';
import { EnvelopeScanner, recoverEnvelope } from '../../wire/scan-envelope.ts';
import { KEPT_END_BYTES, type SkippedEnds } from '../../wire/skipped-bytes.ts';
import type { DecodedEvent } from '../../wire/sse-decode.ts';
import { oversizedError } from '../oversized-error.ts';

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
  readonly #messages: ServerMessages;

  constructor(options: StreamMessagesOptions) {
    this.#options = options;
    this.#messages = new ServerMessages(options.message);
  }

  /** The stream goes on after a break. */
  resumed(): void {
    this.#seen.resumed();
  }

  /** False: the event held no message. */
  take({ id, data }: DecodedEvent): boolean {
    if (this.#seen.isRepeated(id)) return true;
    if (data.length <= this.#options.maxMessageBytes) return this.#messages.take(data);
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
