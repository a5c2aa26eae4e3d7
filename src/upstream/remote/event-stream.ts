import { ErrorEvent, EventSource, type FetchLike } from 'eventsource';
import type { Logger } from 'pino';
import type { BridgeError } from '../../errors.ts';
import type { HttpClient } from '../../http/client.ts';
import type { SessionCookies } from '../../http/cookies.ts';
import type { CallTimeouts } from '../../http/phase-timer.ts';
import { StreamFetch } from './stream-fetch.ts';

export interface EventStreamOptions {
  readonly http: HttpClient;
  readonly url: URL;
  /** Besides Accept and Last-Event-ID. */
  readonly headers: Readonly<Record<string, string>>;
  readonly cookies: SessionCookies;
  readonly timeouts: CallTimeouts;
  readonly maxEventBytes: number;
  /** A stream that broke is opened again, from its last event on. Otherwise it is over. */
  readonly reconnects: boolean;
  readonly isPaused: boolean;
  readonly log: Logger;
  readonly listener: EventStreamListener;
}

export interface StreamEvent {
  readonly type: string;
  readonly id: string | undefined;
  readonly data: string;
}

/** Why a stream is over for good. */
export interface StreamEnd {
  /** Of the response that refused it; undefined when none did. */
  readonly status: number | undefined;
  /** It had been open before. */
  readonly wasOpen: boolean;
  readonly error: BridgeError;
}

/** Called by EventStream, never from its constructor. */
export interface EventStreamListener {
  /** The server answered with a stream, from this URL after redirects; again after each reconnection. */
  opened(url: URL): void;
  event(event: StreamEvent): void;
  /** Over for good; called once, and not after `close`. */
  ended(end: StreamEnd): void;
}

/**
 * A long-lived GET stream of a server, on the `eventsource` package: its reconnection and its `Last-Event-ID` are what
 * MCP asks for. The connections are ours.
 */
export class EventStream {
  readonly #listener: EventStreamListener;
  readonly #fetch: StreamFetch;
  readonly #source: EveryEvent;
  #isOver = false;

  constructor(options: EventStreamOptions) {
    this.#listener = options.listener;
    this.#fetch = new StreamFetch(options);
    this.#source = new EveryEvent(options.url, this.#fetch.fetch, (event) => this.#take(event));
  }

  pause(): void {
    this.#fetch.pause();
  }

  resume(): void {
    this.#fetch.resume();
  }

  close(): void {
    this.#isOver = true;
    this.#source.close();
    // The package sets its reconnection timer after it has reported the error in which this may be running.
    queueMicrotask(() => this.#source.close());
  }

  #take(event: Event): void {
    if (this.#isOver) return;
    if (event instanceof ErrorEvent) return this.#interrupted();
    if (event.type === 'open' && !('data' in event)) return this.#listener.opened(this.#fetch.url);
    const { type, data, lastEventId } = event as MessageEvent;
    this.#fetch.progressed();
    this.#listener.event({ type, id: lastEventId === '' ? undefined : lastEventId, data: String(data) });
  }

  #interrupted(): void {
    const end = this.#fetch.end;
    if (end === undefined) return;
    this.close();
    this.#listener.ended(end);
  }
}

/** Hears events of every type: which types a server uses is not known beforehand. */
class EveryEvent extends EventSource {
  readonly #take: (event: Event) => void;

  constructor(url: URL, fetch: FetchLike, take: (event: Event) => void) {
    super(url, { fetch });
    this.#take = take;
  }

  override dispatchEvent(event: Event): boolean {
    this.#take(event);
    return true;
  }
}
