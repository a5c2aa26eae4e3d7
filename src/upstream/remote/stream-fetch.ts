import type { FetchLike } from 'eventsource';
import { BridgeError } from '../../errors.ts';
import type { HttpCall, HttpHandler, ResponseHead } from '../../http/client.ts';
import { EVENT_STREAM_TYPE } from '../../http/content-type.ts';
import { showUrl } from '../../http/shown-url.ts';
import { LAST_EVENT_ID_HEADER_OUT } from '../../mcp/headers.ts';
import { EventGuard } from './event-guard.ts';
import { encodeEventId } from './event-id.ts';
import type { EventStreamOptions, StreamEnd } from './event-stream.ts';
import { isPassing } from './passing.ts';
import { PulledBody } from './pulled-body.ts';
import { MAX_REFUSAL_BYTES, readRefusal } from './refusal.ts';

type FetchInit = Parameters<FetchLike>[1];
type FetchResponse = Awaited<ReturnType<FetchLike>>;

/** Added to the package's own pause of a few seconds, doubling with each failure in a row. */
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 30_000;
/** A connection that brought nothing and ended sooner than this has failed, whatever its status. */
const SHORT_LIVED_MS = 1000;
/** A server that has never offered a stream is asked so often; then it is taken to have none. */
const MAX_FIRST_ATTEMPTS = 3;

/**
 * The `fetch` of one event stream: makes its connections, slows down attempts that fail, keeps events within bounds,
 * and decides when trying again is pointless.
 */
export class StreamFetch {
  readonly #options: EventStreamOptions;
  #body: PulledBody | undefined;
  #isPaused: boolean;
  #wasOpen = false;
  #url: URL;
  /** In a row. */
  #failures = 0;
  #end: StreamEnd | undefined;

  constructor(options: EventStreamOptions) {
    this.#options = options;
    this.#isPaused = options.isPaused;
    this.#url = options.url;
  }

  /** Where the latest response came from. */
  get url(): URL {
    return this.#url;
  }

  /** Set when there is no point in trying again. */
  get end(): StreamEnd | undefined {
    return this.#end;
  }

  progressed(): void {
    this.#failures = 0;
  }

  pause(): void {
    this.#isPaused = true;
    this.#body?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#body?.resume();
  }

  readonly fetch: FetchLike = (_, init) =>
    new Promise((resolve, reject) => {
      const signal = init.signal as AbortSignal;
      const backoffMs = this.#backoffMs();
      let attempt: StreamAttempt | undefined;
      const start = (): void => {
        attempt = new StreamAttempt(this.#options, init, {
          opened: (body, url) => {
            this.#wasOpen = true;
            this.#url = url;
            this.#body = body;
            if (this.#isPaused) body.pause();
            resolve(streamResponse(body));
          },
          refused: (end) => this.#refused(end, reject),
          broke: (error, livedMs) => {
            this.#broke(error, livedMs);
            reject(error);
          },
        });
      };
      const cancel = backoffMs === 0 ? undefined : this.#options.http.clock.after(backoffMs, start);
      if (backoffMs === 0) start();
      signal.addEventListener('abort', () => {
        cancel?.();
        attempt?.abort();
        reject(new DOMException('closed', 'AbortError'));
      });
    });

  #backoffMs(): number {
    return this.#failures === 0 ? 0 : Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (this.#failures - 1));
  }

  #refused({ status, error }: { status: number; error: BridgeError }, reject: (error: Error) => void): void {
    this.#failures += 1;
    // A token that ran out is renewed by somebody: the file it is in is read again each time.
    const mayPass = isPassing(status) || (status === 401 && this.#wasOpen);
    const isWorthwhile = mayPass && (this.#wasOpen || this.#failures < MAX_FIRST_ATTEMPTS);
    if (!isWorthwhile || !this.#options.reconnects) this.#end ??= { status, wasOpen: this.#wasOpen, error };
    reject(error);
  }

  #broke(error: BridgeError, livedMs: number): void {
    if (livedMs < SHORT_LIVED_MS) this.#failures += 1;
    if (!this.#options.reconnects) this.#end ??= { status: undefined, wasOpen: this.#wasOpen, error };
    this.#options.log.debug(
      { code: error.code, failures: this.#failures },
      `event stream interrupted: ${error.message}`,
    );
  }
}

interface AttemptOutcome {
  opened(body: PulledBody, url: URL): void;
  refused(end: { status: number; error: BridgeError }): void;
  /** The connection failed or ended; `livedMs` after its response, 0 without one. */
  broke(error: BridgeError, livedMs: number): void;
}

/** One connection of an event stream. */
class StreamAttempt implements HttpHandler {
  readonly #options: EventStreamOptions;
  readonly #outcome: AttemptOutcome;
  readonly #call: HttpCall;
  readonly #guard: EventGuard;
  #body: PulledBody | undefined;
  #openedMs = 0;
  #refusal: { readonly head: ResponseHead; readonly chunks: Buffer[]; byteLength: number } | undefined;

  constructor(options: EventStreamOptions, init: FetchInit, outcome: AttemptOutcome) {
    const { http, url, headers, cookies, timeouts, maxEventBytes } = options;
    this.#options = options;
    this.#outcome = outcome;
    this.#guard = new EventGuard(maxEventBytes);
    const lastEventId = encodeEventId(init.headers[LAST_EVENT_ID_HEADER_OUT] ?? '');
    this.#call = http.request(
      {
        method: 'GET',
        url,
        headers: {
          Accept: EVENT_STREAM_TYPE,
          'Cache-Control': 'no-store',
          ...headers,
          ...(lastEventId !== undefined && { [LAST_EVENT_ID_HEADER_OUT]: lastEventId }),
        },
        forwarded: undefined,
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

  sent(): void {}

  response(head: ResponseHead): void {
    const type = head.headers['content-type'] ?? EVENT_STREAM_TYPE;
    if (head.status !== 200 || !type.toLowerCase().startsWith(EVENT_STREAM_TYPE)) {
      this.#refusal = { head, chunks: [], byteLength: 0 };
      return;
    }
    this.#openedMs = this.#options.http.clock.now();
    this.#body = new PulledBody(() => this.#call, false);
    this.#outcome.opened(this.#body, head.url);
  }

  data(chunk: Buffer): void {
    if (this.#refusal !== undefined) {
      this.#refusal.chunks.push(chunk);
      this.#refusal.byteLength += chunk.length;
      if (this.#refusal.byteLength < MAX_REFUSAL_BYTES) return;
      this.#call.abort();
      return this.end();
    }
    const passed = this.#guard.push(chunk);
    if (passed.length > 0) this.#body?.push(passed);
  }

  end(): void {
    const { url } = this.#options;
    if (this.#refusal === undefined) {
      const message = `The server at ${showUrl(url)} ended its event stream.`;
      return this.#over(new BridgeError('ERR_UPSTREAM_CLOSED', message));
    }
    const { head, chunks } = this.#refusal;
    const { status, error } = readRefusal(url, head, Buffer.concat(chunks));
    const type = head.headers['content-type']?.split(';', 1)[0]?.slice(0, 50);
    const noStream = `The server at ${showUrl(url)} answered with ${type} instead of an event stream.`;
    this.#outcome.refused({
      status,
      error: status === 200 ? new BridgeError('ERR_UPSTREAM_PROTOCOL', noStream) : error,
    });
  }

  error(error: BridgeError): void {
    if (this.#refusal !== undefined) return this.end();
    this.#over(error);
  }

  #over(error: BridgeError): void {
    const livedMs = this.#body === undefined ? 0 : this.#options.http.clock.now() - this.#openedMs;
    // What had come before is still read first; the package hears of the end through the body.
    this.#outcome.broke(error, livedMs);
    this.#body?.end(error);
  }
}

function streamResponse(body: PulledBody): FetchResponse {
  return {
    status: 200,
    url: '',
    redirected: false,
    // The package compares the type letter by letter; here it has been read already.
    headers: { get: (name) => (name.toLowerCase() === 'content-type' ? EVENT_STREAM_TYPE : null) },
    body,
  };
}
