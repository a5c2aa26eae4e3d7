import type { Logger } from 'pino';
import type { BridgeError } from '../../errors.ts';
import type { SkippedEnds } from '../../wire/skipped-bytes.ts';
import { type DecodedEvent, SseDecoder } from '../../wire/sse-decode.ts';
import { isPassing } from './passing.ts';
import { toRetryPause } from './retry-pause.ts';
import { StreamAttempt, type StreamTarget } from './stream-attempt.ts';

/** How long a stream that broke is left alone, unless the server asks for another pause. */
const RECONNECT_MS = 3000;
/** Added to that pause, doubling with each failure in a row. */
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 30_000;
/** A connection that brought nothing and ended sooner than this has failed, whatever its status. */
const SHORT_LIVED_MS = 1000;
/** A server that has never offered a stream is asked so often; then it is taken to have none. */
const MAX_FIRST_ATTEMPTS = 3;

/** By so much an event may be larger than the message in it: names of fields, its type and its id. */
const FIELDS_BYTES = 1024;

export interface EventStreamOptions extends StreamTarget {
  /** Limits one message; an event that is larger by more than its other fields is not delivered. */
  readonly maxMessageBytes: number;
  /** A stream that broke is opened again, from its last event on. Otherwise it is over. */
  readonly reconnects: boolean;
  readonly isPaused: boolean;
  readonly log: Logger;
  readonly listener: EventStreamListener;
}

/** Why a stream is over for good. */
export interface StreamEnd {
  /** The status of the response that refused the stream; undefined when none did. */
  readonly status: number | undefined;
  /** It had been open before. */
  readonly wasOpen: boolean;
  readonly error: BridgeError;
}

/** Called by EventStreamReader, never from its constructor. */
export interface EventStreamListener {
  /** The server answered with a stream, from this URL after redirects; again after each reconnection. */
  opened(url: URL): void;
  /** The receiver owns the bytes. */
  event(event: DecodedEvent): void;
  /** An event that is too long went by. */
  oversized(byteLength: number, ends: SkippedEnds): void;
  /** Over for good; called once, and not after `close`. */
  ended(end: StreamEnd): void;
}

/**
 * A long-lived GET stream of a server, over as many connections as it takes. [spec WHATWG HTML server-sent events]
 * Attempts that fail are slowed down, and given up where trying again is pointless.
 */
export class EventStreamReader {
  readonly #options: EventStreamOptions;
  #attempt: StreamAttempt | undefined;
  #cancelPause: (() => void) | undefined;
  /** The decoder of the current connection. */
  #decoder: SseDecoder;
  #isPaused: boolean;
  #isOver = false;
  #wasOpen = false;
  #reconnectMs = RECONNECT_MS;
  /** Counts failures in a row. */
  #failures = 0;
  /** The current connection has brought an event, with data or without. */
  #hasBrought = false;

  constructor(options: EventStreamOptions) {
    this.#options = options;
    this.#isPaused = options.isPaused;
    this.#decoder = this.#createDecoder(undefined);
    this.#connect();
  }

  /** Events of what is already here, at most one chunk, still come. */
  pause(): void {
    this.#isPaused = true;
    this.#attempt?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#attempt?.resume();
  }

  close(): void {
    this.#isOver = true;
    this.#cancelPause?.();
    this.#attempt?.abort();
  }

  #connect(): void {
    const { lastEventId } = this.#decoder;
    this.#decoder = this.#createDecoder(lastEventId);
    this.#hasBrought = false;
    this.#attempt = new StreamAttempt(this.#options, lastEventId, {
      opened: (url) => this.#opened(url),
      data: (chunk) => this.#received(chunk),
      refused: ({ status, error }) => this.#refused(status, error),
      broke: (error, livedMs) => this.#broke(error, livedMs),
    });
    if (this.#isPaused) this.#attempt.pause();
  }

  #createDecoder(lastEventId: string | undefined): SseDecoder {
    const { listener, maxMessageBytes } = this.#options;
    const sink = {
      event: (event: DecodedEvent) => {
        this.#progressed();
        if (!this.#isOver) listener.event(event);
      },
      retry: (ms: number) => {
        this.#reconnectMs = ms;
      },
      oversized: (byteLength: number, ends: SkippedEnds) => {
        if (!this.#isOver) listener.oversized(byteLength, ends);
      },
    };
    return new SseDecoder(sink, maxMessageBytes + FIELDS_BYTES, lastEventId);
  }

  #opened(url: URL): void {
    this.#wasOpen = true;
    this.#options.listener.opened(url);
  }

  #received(chunk: Buffer): void {
    const { lastEventId } = this.#decoder;
    this.#decoder.push(chunk);
    if (this.#decoder.lastEventId !== lastEventId) this.#progressed();
  }

  #progressed(): void {
    this.#hasBrought = true;
    this.#failures = 0;
  }

  #refused(status: number, error: BridgeError): void {
    this.#failures += 1;
    // A token that ran out is renewed by somebody: the file it is in is read again each time.
    const mayPass = isPassing(status) || (status === 401 && this.#wasOpen);
    const isWorthwhile = mayPass && (this.#wasOpen || this.#failures < MAX_FIRST_ATTEMPTS);
    if (isWorthwhile && this.#options.reconnects) this.#connectLater();
    else this.#end({ status, wasOpen: this.#wasOpen, error });
  }

  #broke(error: BridgeError, livedMs: number): void {
    if (livedMs < SHORT_LIVED_MS && !this.#hasBrought) this.#failures += 1;
    this.#options.log.debug(
      { code: error.code, failures: this.#failures },
      `event stream interrupted: ${error.message}`,
    );
    if (this.#options.reconnects) this.#connectLater();
    else this.#end({ status: undefined, wasOpen: this.#wasOpen, error });
  }

  #connectLater(): void {
    const backoffMs = this.#failures === 0 ? 0 : Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (this.#failures - 1));
    this.#attempt = undefined;
    const pauseMs = toRetryPause(this.#reconnectMs + backoffMs);
    this.#cancelPause = this.#options.http.clock.after(pauseMs, () => this.#connect());
  }

  #end(end: StreamEnd): void {
    this.close();
    this.#options.listener.ended(end);
  }
}
