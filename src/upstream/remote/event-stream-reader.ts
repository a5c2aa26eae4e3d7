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

/** Pause before a broken stream is reopened, unless the server asks for another. */
const RECONNECT_MS = 3000;
/** Backoff added to that pause. It doubles with each consecutive failure. */
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 30_000;
/** A connection that ended sooner than this without an event counts as a failure, whatever its status. */
const SHORT_LIVED_MS = 1000;
/** Attempts after which a server that has never offered a stream is taken to have none. */
const MAX_FIRST_ATTEMPTS = 3;
/**
 * Status of a server that regards a former stream as still open, because it has not noticed the end of the bridge that
 * had the session.
 */
const HAS_ANOTHER = 409;
/** Statuses that end the attempts: the server offers no stream, or the session is gone. All others may be temporary. */
const FINAL: ReadonlySet<number> = new Set([404, 405]);

/** Bytes by which an event may exceed its message: field names, event type and id. */
const FIELDS_BYTES = 1024;

export interface EventStreamOptions extends StreamTarget {
  /** Size limit of a message. An event may exceed it by FIELDS_BYTES; a larger one is not delivered. */
  readonly maxMessageBytes: number;
  /** True if a broken stream is reopened, resuming after its last event. Otherwise a break ends it. */
  readonly reconnects: boolean;
  readonly isPaused: boolean;
  readonly log: Logger;
  readonly listener: EventStreamListener;
}

/** Reason why a stream has ended and is not reopened. */
export interface StreamEnd {
  /** Status of the response that refused the stream, or undefined if there was none. */
  readonly status: number | undefined;
  /** True if the stream had been open before. */
  readonly wasOpen: boolean;
  readonly error: BridgeError;
}

/** Called by EventStreamReader, never from its constructor. */
export interface EventStreamListener {
  /**
   * Called when the server answered with a stream, also after each reconnection. `url` is the final URL after
   * redirects.
   */
  opened(url: URL): void;
  /** The receiver owns the bytes. */
  event(event: DecodedEvent): void;
  /** Called for an event that was too long and was discarded. */
  oversized(byteLength: number, ends: SkippedEnds): void;
  /**
   * Called when the server refuses with this status to reopen a stream that was open. The request is repeated later.
   */
  notReopened(status: number): void;
  /**
   * Called when no server can be reached to reopen a stream that was open and whose events had no ids. What the server
   * was about to send on it will not come, even if a server can be reached later. The attempt is repeated.
   */
  unreachable?(): void;
  /** Called once when the stream has ended and is not reopened. Not called after `close`. */
  ended(end: StreamEnd): void;
}

/**
 * A long-lived GET stream of a server, reopened as often as needed. [spec WHATWG HTML server-sent events] Failed
 * attempts are slowed down, and they stop where a repetition is pointless.
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
  /** Number of consecutive failures. */
  #failures = 0;
  /** True once the current connection has delivered an event, with data or without. */
  #hasBrought = false;

  constructor(options: EventStreamOptions) {
    this.#options = options;
    this.#isPaused = options.isPaused;
    this.#decoder = this.#createDecoder(undefined);
    this.#connect();
  }

  /** Pauses reading. Events of data received already, at most one chunk, are still delivered. */
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
   * True if the request may succeed later. A server that had a stream may regard it as still open, and reports that
   * with various statuses (mcp-go with 400). A 401 may pass too: an expired token is renewed from outside, and its file
   * is read again for each request.
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
    if (!this.#options.reconnects) return this.#end({ status: undefined, wasOpen: this.#wasOpen, error });
    this.#connectLater();
    const isUnreachable = error.code === 'ERR_UPSTREAM_CONNECT' && this.#wasOpen;
    if (isUnreachable && !this.#decoder.lastEventId) this.#options.listener.unreachable?.();
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
  /** Headers in addition to Accept and Last-Event-ID. */
  readonly headers: Readonly<Record<string, string>>;
  readonly cookies: SessionCookies;
  /** Headers of the client that the stream belongs to. */
  readonly caller: CallerHeaders;
  readonly timeouts: CallTimeouts;
}

/** Called by StreamAttempt: `opened`, any number of `data`, then `broke`; or `refused` or `broke` alone. */
export interface StreamAttemptOwner {
  /** Called when the server answers with a stream. `url` is the final URL after redirects. */
  opened(url: URL): void;
  data(chunk: Buffer): void;
  refused(refusal: { readonly status: number; readonly error: BridgeError }): void;
  /** Called when the connection failed or ended. `livedMs` is the time since its response, 0 without one. */
  broke(error: BridgeError, livedMs: number): void;
}

/**
 * - `waiting`: the response has not arrived.
 * - `open`: the response is a stream.
 * - `refused`: the response is something else, whose body is read for the error.
 */
type AttemptState =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'open'; readonly sinceMs: number }
  | { readonly kind: 'refused'; readonly head: ResponseHead; readonly chunks: Buffer[]; byteLength: number };

/** A single connection of an event stream. */
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
        // A stream lasts as long as the session, and some servers send its head only with the first event.
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
    // An unusable response, such as one that redirects in a circle, counts as a refusal.
    else if (this.#state.kind === 'waiting' && typeof status === 'number') this.#owner.refused({ status, error });
    else this.#broke(error);
  }

  #broke(error: BridgeError): void {
    const livedMs = this.#state.kind === 'open' ? this.#target.http.clock.now() - this.#state.sinceMs : 0;
    this.#owner.broke(error, livedMs);
  }
}

/**
 * Encodes an event id as a header value, or returns undefined if that is not possible.
 * [spec WHATWG HTML server-sent events] The id is sent back as UTF-8; Node encodes header values as Latin-1.
 */
export function encodeEventId(id: string): string | undefined {
  const value = Buffer.from(id, 'utf8').toString('latin1');
  return /^[\t\x20-\x7e\x80-\xff]+$/.test(value) ? value : undefined;
}

/**
 * Shortest retry pause. It applies even if the server asks for 0, because attempts would otherwise repeat as fast as
 * the server answers.
 */
export const MIN_RETRY_MS = 50;
/** Longest delay that a timer supports. A longer one would fire at once. */
export const MAX_RETRY_MS = 2 ** 31 - 1;

/** Limits a retry pause to the range from MIN_RETRY_MS to MAX_RETRY_MS. */
export function toRetryPause(wantedMs: number): number {
  return Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, wantedMs));
}
