import type { Logger } from 'pino';
import { EventStream, type EventStreamListener, type StreamEnd, type StreamEvent } from '../remote/event-stream.ts';
import type { RemoteEnvironment } from '../remote/remote-options.ts';
import type { SessionKey } from '../remote/session-key.ts';
import { StreamMessages, type StreamMessagesOptions } from '../remote/stream-messages.ts';

export interface GetStreamOptions {
  readonly environment: RemoteEnvironment;
  readonly session: SessionKey;
  readonly isPaused: boolean;
  readonly messages: StreamMessagesOptions;
  /** The server does not know the session any more, or says something that may mean it. */
  readonly sessionDoubted: (status: number) => void;
}

/**
 * The stream on which a server says what belongs to no call. A server need not offer one.
 * [spec 2025-11-25 transports#listening-for-messages-from-the-server]
 */
export class GetStream implements EventStreamListener {
  readonly #options: GetStreamOptions;
  readonly #messages: StreamMessages;
  readonly #log: Logger;
  readonly #stream: EventStream;

  constructor(options: GetStreamOptions) {
    const { environment, session, isPaused } = options;
    const { http, url, cookies, timeouts, maxMessageBytes, log } = environment;
    this.#options = options;
    this.#log = log;
    this.#messages = new StreamMessages(options.messages);
    this.#stream = new EventStream({
      http,
      url,
      headers: session.headers,
      cookies,
      timeouts,
      maxEventBytes: maxMessageBytes,
      reconnects: true,
      isPaused,
      log,
      listener: this,
    });
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  close(): void {
    this.#stream.close();
  }

  opened(): void {
    this.#messages.resumed();
  }

  event(event: StreamEvent): void {
    if (event.type !== 'message' || event.data === '') return;
    if (!this.#messages.take(event)) this.#log.debug('skipped an event that is no message');
  }

  /** 405 is how a server says that it has none; others are as good. */
  ended({ status, wasOpen, error }: StreamEnd): void {
    if (wasOpen && (status === 404 || status === 400)) return this.#options.sessionDoubted(status);
    if (status === 401 || status === 403) this.#log.warn({ code: error.code }, `no event stream: ${error.message}`);
    else this.#log.debug({ status }, 'the server offers no event stream; only calls will bring its messages');
  }
}
