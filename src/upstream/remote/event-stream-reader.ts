import type { Logger } from 'pino';
import { BridgeError } from '../../errors.ts';
import type { CallTimeouts } from '../../http/client/call-limits.ts';
import type { HttpClient } from '../../http/client/client.ts';
import type { SessionCookies } from '../../http/client/cookies.ts';
import type { HttpCall, HttpHandler, ResponseHead } from '../../http/client/http-call.ts';
import { EVENT_STREAM_TYPE } from '../../http/headers.ts';
import { showUrl } from '../../http/shown-url.ts';
import { LAST_EVENT_ID_HEADER_OUT } from '../../mcp/vocabulary/headers.ts';
import type { SkippedEnds } from '../../wire/byte-collector.ts';
import { type DecodedEvent, SseDecoder } from '../../wire/sse-decode.ts';
import { isPassing, MAX_REFUSAL_BYTES, readRefusal } from './refusal.ts';
import type { CallerHeaders } from './remote-environment.ts';

/** How long a stream that broke is left alone, unless the server asks for another pause. */
const RECONNECT_MS = 3000;
/** Added to that pause, doubling with each failure in a row. */
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 30_000;
/** A connection that brought nothing and ended sooner than this has failed, whatever its status. */
const SHORT_LIVED_MS = 1000;
/** A server that has never offered a stream is asked so often; then it is taken to have none. */
const MAX_FIRST_ATTEMPTS = 3;
/** A server has a stream, and takes it for open still: it has not noticed the end of the bridge that had the session. */
const HAS_ANOTHER = 409;
/** These say that there is no stream for good: none is offered, or the session is gone. All others may change. */
const FINAL: ReadonlySet<number> = new Set([404, 405]);

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
  /** It was open, and the server refuses to open it again with this status; it is asked once more later. */
  notReopened(status: number): void;
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
    if (!this.#options.reconnects || !this.#isWorthRepeating(status)) {
      return this.#end({ status, wasOpen: this.#wasOpen, error });
    }
    this.#connectLater();
    if (this.#wasOpen) this.#options.listener.notReopened(status);
  }

  /**
   * A server that had a stream may take it for open still, and says so with many statuses (mcp-go with 400); and a token
   * that ran out is renewed by somebody: the file it is in is read again each time.
   */
  #isWorthRepeating(status: number): boolean {
    if (this.#wasOpen) return !FINAL.has(status);
    return status === HAS_ANOTHER || (isPassing(status) && this.#failures < MAX_FIRST_ATTEMPTS);
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

export interface StreamTarget {
  readonly http: HttpClient;
  readonly url: URL;
  /** Besides Accept and Last-Event-ID. */
  readonly headers: Readonly<Record<string, string>>;
  readonly cookies: SessionCookies;
  /** The headers of the caller whose stream it is. */
  readonly caller: CallerHeaders;
  readonly timeouts: CallTimeouts;
}

/** Called by StreamAttempt: `opened`, any number of `data`, then `broke`; or `refused` or `broke` alone. */
export interface StreamAttemptOwner {
  /** The server answers with a stream, from this URL after redirects. */
  opened(url: URL): void;
  data(chunk: Buffer): void;
  refused(refusal: { readonly status: number; readonly error: BridgeError }): void;
  /** The connection failed or ended; `livedMs` after its response, 0 without one. */
  broke(error: BridgeError, livedMs: number): void;
}

/**
 * - `waiting`: for the response.
 * - `open`: it is a stream.
 * - `refused`: it is something else, which is read for the error.
 */
type AttemptState =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'open'; readonly sinceMs: number }
  | { readonly kind: 'refused'; readonly head: ResponseHead; readonly chunks: Buffer[]; byteLength: number };

/** One connection of an event stream. */
export class StreamAttempt implements HttpHandler {
  readonly #target: StreamTarget;
  readonly #owner: StreamAttemptOwner;
  readonly #call: HttpCall;
  #state: AttemptState = { kind: 'waiting' };

  constructor(target: StreamTarget, lastEventId: string | undefined, owner: StreamAttemptOwner) {
    const { http, url, headers, cookies, caller, timeouts } = target;
    this.#target = target;
    this.#owner = owner;
    const resumedFrom = encodeEventId(lastEventId ?? '');
    this.#call = http.request(
      {
        method: 'GET',
        url,
        headers: {
          Accept: EVENT_STREAM_TYPE,
          'Cache-Control': 'no-store',
          ...headers,
          ...(resumedFrom !== undefined && { [LAST_EVENT_ID_HEADER_OUT]: resumedFrom }),
        },
        forwarded: caller.latest,
        body: undefined,
        // A stream lasts as long as the session, and some servers send its head with the first event only.
        timeouts: { ...timeouts, firstByteMs: 0, callMs: 0 },
        cookies,
        isRepeatable: true,
      },
      this,
    );
  }

  abort(): void {
    this.#call.abort();
  }

  pause(): void {
    this.#call.pause();
  }

  resume(): void {
    this.#call.resume();
  }

  sent(): void {}

  response(head: ResponseHead): void {
    const type = head.headers['content-type'] ?? EVENT_STREAM_TYPE;
    if (head.status !== 200 || !type.toLowerCase().startsWith(EVENT_STREAM_TYPE)) {
      this.#state = { kind: 'refused', head, chunks: [], byteLength: 0 };
      return;
    }
    this.#state = { kind: 'open', sinceMs: this.#target.http.clock.now() };
    this.#owner.opened(head.url);
  }

  data(chunk: Buffer): void {
    if (this.#state.kind !== 'refused') return this.#owner.data(chunk);
    this.#state.chunks.push(chunk);
    this.#state.byteLength += chunk.length;
    if (this.#state.byteLength < MAX_REFUSAL_BYTES) return;
    this.#call.abort();
    this.end();
  }

  end(): void {
    const { url } = this.#target;
    if (this.#state.kind !== 'refused') {
      const message = `The server at ${showUrl(url)} ended its event stream.`;
      return this.#broke(new BridgeError('ERR_UPSTREAM_CLOSED', message));
    }
    const { head, chunks } = this.#state;
    const { status, error } = readRefusal(url, head, Buffer.concat(chunks));
    const type = head.headers['content-type']?.split(';', 1)[0]?.slice(0, 50);
    const noStream = `The server at ${showUrl(url)} answered with ${type} instead of an event stream.`;
    this.#owner.refused({
      status,
      error: status === 200 ? new BridgeError('ERR_UPSTREAM_PROTOCOL', noStream) : error,
    });
  }

  error(error: BridgeError): void {
    const { status } = error.data ?? {};
    if (this.#state.kind === 'refused') this.end();
    // A response that is of no use, such as a redirect in a circle, is a refusal like any other.
    else if (this.#state.kind === 'waiting' && typeof status === 'number') this.#owner.refused({ status, error });
    else this.#broke(error);
  }

  #broke(error: BridgeError): void {
    const livedMs = this.#state.kind === 'open' ? this.#target.http.clock.now() - this.#state.sinceMs : 0;
    this.#owner.broke(error, livedMs);
  }
}

/** What the server has said of a stream that is lost: the event to go on after, and the pause before that. */

/** [spec WHATWG HTML server-sent events] an id travels back as UTF-8; Node takes header values as Latin-1. */
export function encodeEventId(id: string): string | undefined {
  const value = Buffer.from(id, 'utf8').toString('latin1');
  return /^[\t\x20-\x7e\x80-\xff]+$/.test(value) ? value : undefined;
}

/** A server that says 0 is still not asked without a pause, or it would be asked as fast as it answers, for ever. */
export const MIN_RETRY_MS = 50;
/** The longest delay a timer can take; beyond it one would fire at once. */
export const MAX_RETRY_MS = 2 ** 31 - 1;

/** The pause before a server is asked again, of whatever it wants. */
export function toRetryPause(wantedMs: number): number {
  return Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, wantedMs));
}
