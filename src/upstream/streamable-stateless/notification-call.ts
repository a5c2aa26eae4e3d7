import type { Exchange, Lane } from '../../relay/exchange.ts';
import type { Frame } from '../../wire/frame.ts';
import type { Call, StatelessCallHost } from './call-host.ts';
import { Post, type PostEnd, type PostHost } from './post.ts';
import { messageHeaders, postRequest } from './post-request.ts';

/**
 * A notification that the bridge does not know. The specification's own notifications are not sent this way.
 * [spec 2026-07-28 transports/streamable-http#sending-messages]
 */
export class NotificationCall implements Call, PostHost {
  readonly frame: Frame;
  readonly exchange: Exchange | undefined;
  isWaiting = true;
  readonly #host: StatelessCallHost;
  readonly #forwarded: Lane['headers'];
  #post: Post | undefined;

  /** @param forwarded headers of the client's latest request, since a notification has no request of its own */
  constructor(host: StatelessCallHost, frame: Frame, exchange: Exchange | undefined, forwarded: Lane['headers']) {
    this.#host = host;
    this.frame = frame;
    this.exchange = exchange;
    this.#forwarded = forwarded;
  }

  start(): void {
    const { environment } = this.#host;
    const { frame } = this;
    const request = postRequest(environment, { frame, headers: messageHeaders(frame), forwarded: this.#forwarded });
    this.#post = new Post({ environment, host: this, frame, request, isPaused: false });
  }

  abort(): void {
    this.#post?.abort();
  }

  pause(): void {}
  resume(): void {}

  left(): void {
    this.#host.left(this);
  }

  responded(): void {
    this.#host.responded();
  }

  notified(_frame: Frame): void {
    // The response to a notification is empty; messages in it are ignored.
  }

  ended(end: PostEnd): void {
    if (end.kind === 'failed' || end.kind === 'refused') {
      const error = end.kind === 'failed' ? end.error : end.refusal.error;
      const { log } = this.#host.environment;
      log.debug({ code: error.code, method: this.frame.method }, `a notification was not taken: ${error.message}`);
    }
    this.#host.ended(this);
  }
}
