import { BridgeError } from '../../errors.ts';
import type { HttpClient } from '../../http/client.ts';
import { EVENT_STREAM_TYPE } from '../../http/content-type.ts';
import type { SessionCookies } from '../../http/cookies.ts';
import type { HttpCall, HttpHandler, ResponseHead } from '../../http/http-call.ts';
import type { CallTimeouts } from '../../http/phase-timer.ts';
import { showUrl } from '../../http/shown-url.ts';
import { LAST_EVENT_ID_HEADER_OUT } from '../../mcp/headers.ts';
import type { CallerHeaders } from './caller-headers.ts';
import { encodeEventId } from './event-id.ts';
import { MAX_REFUSAL_BYTES, readRefusal } from './refusal.ts';

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
    if (this.#state.kind === 'refused') return this.end();
    this.#broke(error);
  }

  #broke(error: BridgeError): void {
    const livedMs = this.#state.kind === 'open' ? this.#target.http.clock.now() - this.#state.sinceMs : 0;
    this.#owner.broke(error, livedMs);
  }
}
