import type { Call, Lane } from '../../relay/call.ts';
import type { Frame } from '../../wire/frame.ts';
import type { PostEnd, PostedCall, PostHost } from '../remote/posted-call.ts';
import type { PostedMessage, StatelessCallHost } from './call-host.ts';
import { messageHeaders } from './posting.ts';

/**
 * A notification that the bridge does not know. The specification's own notifications are not sent this way.
 * [spec 2026-07-28 transports/streamable-http#sending-messages]
 */
export class NotificationCall implements PostedMessage, PostHost {
  readonly frame: Frame;
  readonly call: Call | undefined;
  isWaiting = false;
  readonly #host: StatelessCallHost;
  readonly #forwarded: Lane['headers'];
  #post: PostedCall | undefined;

  /** @param forwarded headers of the client's latest request, since a notification has no request of its own */
  constructor(host: StatelessCallHost, frame: Frame, call: Call | undefined, forwarded: Lane['headers']) {
    this.#host = host;
    this.frame = frame;
    this.call = call;
    this.#forwarded = forwarded;
  }

  start(): void {
    const { frame } = this;
    const { server, cookies } = this.#host;
    const message = { frame, headers: messageHeaders(frame), forwarded: this.#forwarded, cookies };
    this.#post = server.post(this, message);
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
    this.#host.server.responded();
  }

  /** The server has accepted the notification. The rest of the response is ignored. */
  lingers(): void {
    this.#host.ended(this);
  }

  over(_post: PostedCall, end: PostEnd): void {
    if (end.kind !== 'refused' && end.kind !== 'failed') return;
    const { code, message } = end.kind === 'refused' ? end.refusal.error : end.error;
    this.#host.server.environment.log.debug(
      { code, method: this.frame.method },
      `a notification was not taken: ${message}`,
    );
    this.#host.ended(this);
  }
}
