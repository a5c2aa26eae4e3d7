import type { Logger } from 'pino';
import type { SkippedEnds } from '../../wire/byte-collector.ts';
import type { DecodedEvent } from '../../wire/sse-decode.ts';
import { type EventStreamListener, EventStreamReader, type StreamEnd } from '../remote/event-stream-reader.ts';
import { isPassing } from '../remote/refusal.ts';
import type { RemoteEnvironment } from '../remote/remote-environment.ts';
import type { SessionKey } from '../remote/session-key.ts';
import { StreamMessages, type StreamMessagesOptions } from '../server-messages.ts';

/** Longest time that a session waits for the response to the GET. */
const SETTLE_MS = 1000;

export interface GetStreamOptions {
  readonly environment: RemoteEnvironment;
  readonly session: SessionKey;
  readonly isPaused: boolean;
  readonly messages: StreamMessagesOptions;
  /**
   * Called once when the stream is open, is known not to exist, or has not been answered in time. Not called after
   * `close`.
   */
  readonly settled: () => void;
  /** Called when the stream is open for the first time. From then on the server's messages are received. */
  readonly opened: () => void;
  /**
   * Called when the server offers no stream, or none anymore, so that its messages outside of calls are not received.
   */
  readonly absent: () => void;
  /** Called when no server can be reached to reopen the stream, and what was to come on it is lost. */
  readonly unreachable: () => void;
  /** Called when the server does not know the session anymore, or answers with a status that may mean it. */
  readonly sessionDoubted: (status: number) => void;
}

/**
 * The stream for server messages that belong to no call. A server need not offer one.
 * [spec 2025-11-25 transports#listening-for-messages-from-the-server]
 */
export class GetStream implements EventStreamListener {
  readonly #options: GetStreamOptions;
  readonly #messages: StreamMessages;
  readonly #log: Logger;
  readonly #stream: EventStreamReader;
  readonly #stopWaiting: () => void;
  #isSettled = false;
  #wasOpened = false;
  /** True if `sessionDoubted` has been called since the stream was last open. */
  #wasDoubted = false;

  constructor(options: GetStreamOptions) {
    const { environment, session, isPaused } = options;
    const { http, url, cookies, caller, timeouts, maxMessageBytes, log } = environment;
    this.#options = options;
    this.#log = log;
    this.#messages = new StreamMessages(options.messages);
    this.#stopWaiting = http.clock.after(SETTLE_MS, () => this.#settle());
    this.#stream = new EventStreamReader({
      http,
      url,
      headers: session.headers,
      cookies,
      caller,
      timeouts,
      maxMessageBytes,
      reconnects: true,
      isPaused,
      log,
      listener: this,
    });
  }

  /** True if the stream is open or is being reopened. */
  get isThere(): boolean {
    return this.#wasOpened;
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  close(): void {
    this.#stopWaiting();
    this.#isSettled = true;
    this.#stream.close();
  }

  #settle(): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#stopWaiting();
    this.#options.settled();
  }

  opened(): void {
    this.#wasDoubted = false;
    this.#messages.resumed();
    this.#settle();
    if (this.#wasOpened) return;
    this.#wasOpened = true;
    this.#options.opened();
  }

  event(event: DecodedEvent): void {
    if (event.event !== 'message') return;
    if (!this.#messages.take(event)) this.#log.debug('skipped an event that is no message');
  }

  oversized(byteLength: number, ends: SkippedEnds): void {
    this.#messages.oversized(byteLength, ends);
  }

  notReopened(status: number): void {
    if (this.#wasDoubted || isPassing(status)) return;
    this.#wasDoubted = true;
    this.#options.sessionDoubted(status);
  }

  unreachable(): void {
    this.#options.unreachable();
  }

  /** Called when there is no stream. A server without one answers 405; other statuses are treated in the same way. */
  ended({ status, wasOpen, error }: StreamEnd): void {
    this.#settle();
    this.#wasOpened = false;
    if (wasOpen && status === 404) return this.#options.sessionDoubted(status);
    this.#options.absent();
    if (status === 401 || status === 403) this.#log.warn({ code: error.code }, `no event stream: ${error.message}`);
    else this.#log.debug({ status }, 'the server offers no event stream; only calls will bring its messages');
  }
}
