import type { ServerResponse } from 'node:http';
import { ByteQueue } from '../collections/bounded-collections.ts';
import type { Clock } from '../deps.ts';
import { EVENT_STREAM_TYPE } from '../http/headers.ts';
import { respondText } from '../http/server/respond.ts';
import type { RecordingSink } from './recorder.ts';
import type { MessageFormat } from './shown-message.ts';

/** Latest messages that a new reader gets, and their bytes. */
export const KEPT_LIMITS = { maxItems: 500, maxBytes: 4 * 1024 * 1024 };
/** Limit of the readers, which are meant to be people. */
export const MAX_READERS = 16;
/**
 * Unread bytes of one reader beyond which it loses messages. A new reader may have twice as much, which is all that is
 * kept.
 */
export const MAX_UNREAD_BYTES = 2 * 1024 * 1024;
/** A comment is sent after this much silence, since proxies close silent connections. */
export const KEEP_ALIVE_MS = 15_000;
/** A reader that has read nothing for this long is disconnected, which frees its slot. */
export const STALLED_MS = 60_000;
const RETRY_S = 10;

/** A message as readers get it. */
interface KeptEvent {
  readonly text: string;
}

interface Reader {
  readonly response: ServerResponse;
  /** Messages that it has lost since the latest that it got. */
  dropped: number;
  lastWriteMs: number;
}

export interface MessageFeedOptions {
  readonly format: MessageFormat;
  readonly clock: Clock;
}

/**
 * The live feed of messages, as an event stream: first the latest ones that are kept, then each as it comes. A reader
 * that does not keep up loses messages and is told how many, so that no call waits for it.
 */
export class MessageFeed implements RecordingSink {
  readonly #options: MessageFeedOptions;
  readonly #kept = new ByteQueue<KeptEvent>(KEPT_LIMITS, ({ text }) => text.length);
  readonly #readers = new Set<Reader>();
  #stopTimer: (() => void) | undefined;

  constructor(options: MessageFeedOptions) {
    this.#options = options;
  }

  get format(): MessageFormat {
    return this.#options.format;
  }

  get readers(): number {
    return this.#readers.size;
  }

  take(lines: readonly string[]): void {
    const events = lines.map((line) => ({ text: `event: message\ndata: ${line}\n\n` }));
    for (const event of events) this.#kept.add(event);
    while (this.#kept.isExceeded) this.#kept.shift();
    for (const reader of this.#readers) this.#tell(reader, events);
  }

  /** Starts an event stream on the response, or rejects the request. */
  read(response: ServerResponse): void {
    if (this.#readers.size >= MAX_READERS) return refuse(response);
    response.writeHead(200, {
      'Content-Type': EVENT_STREAM_TYPE,
      'Cache-Control': 'no-store, no-transform',
      'X-Content-Type-Options': 'nosniff',
      // Keeps nginx and similar proxies from buffering the events.
      'X-Accel-Buffering': 'no',
    });
    const reader: Reader = { response, dropped: 0, lastWriteMs: 0 };
    response.on('close', () => this.#remove(reader));
    response.on('drain', () => this.#tell(reader, []));
    this.#readers.add(reader);
    this.#stopTimer ??= this.#options.clock.every(KEEP_ALIVE_MS, () => this.#look());
    const kept = this.#kept.toArray().map(({ text }) => text);
    this.#write(reader, kept.length === 0 ? ': nothing yet\n\n' : kept.join(''));
  }

  #tell(reader: Reader, events: readonly KeptEvent[]): void {
    const { response } = reader;
    const isFull = response.writableLength > MAX_UNREAD_BYTES;
    if (isFull || (reader.dropped > 0 && response.writableNeedDrain)) {
      reader.dropped += events.length;
      return;
    }
    const lost = reader.dropped === 0 ? '' : `event: dropped\ndata: {"messages":${reader.dropped}}\n\n`;
    reader.dropped = 0;
    const text = lost + events.map((event) => event.text).join('');
    if (text !== '') this.#write(reader, text);
  }

  #write(reader: Reader, text: string): void {
    reader.lastWriteMs = this.#options.clock.now();
    reader.response.write(text);
  }

  #look(): void {
    const nowMs = this.#options.clock.now();
    for (const reader of this.#readers) {
      const { response, lastWriteMs } = reader;
      if (!response.writableNeedDrain) {
        if (nowMs - lastWriteMs >= KEEP_ALIVE_MS) this.#write(reader, ': keep-alive\n\n');
      } else if (nowMs - lastWriteMs >= STALLED_MS) response.destroy();
    }
  }

  #remove(reader: Reader): void {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  close(): void {
    for (const { response } of this.#readers) response.end();
    this.#readers.clear();
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }
}

function refuse(response: ServerResponse): void {
  response.setHeader('Retry-After', RETRY_S);
  respondText(response, 503, `${MAX_READERS} others read the messages already. Close one of them.\n`);
}
