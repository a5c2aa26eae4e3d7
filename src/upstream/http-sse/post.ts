import { ListMember } from '../../collections/short-lived-values.ts';
import type { BridgeError } from '../../errors.ts';
import type { HttpCall, HttpHandler, ResponseHead } from '../../http/client/http-call.ts';
import { INITIALIZE, PING } from '../../mcp/vocabulary/methods.ts';
import type { Outgoing } from '../remote/link-messages.ts';
import { MAX_REFUSAL_BYTES, type Refusal, readRefusal } from '../remote/refusal.ts';
import { type SessionEnvironment, tracedHeaders } from '../remote/remote-environment.ts';

/** URL and headers of a session's POSTs. The object is reused as long as neither changes. */
export interface PostTarget {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

export interface PostHost {
  left(post: MessagePost): void;
  /** Called for any 2xx response. */
  accepted(post: MessagePost): void;
  refused(post: MessagePost, refusal: Refusal): void;
  failed(post: MessagePost, error: BridgeError): void;
  /** Called last, once the response has ended or is not read any further. */
  over(post: MessagePost): void;
}

/**
 * Limit of the response body that is read. Some servers send "Accepted" and others a page; reading it to the end keeps
 * the connection reusable.
 */
const MAX_IGNORED_BYTES = 64 * 1024;

/** The POST of one message. Its response says only whether the server accepted it; answers come on the stream. */
export class MessagePost extends ListMember implements HttpHandler {
  readonly message: Outgoing;
  readonly #url: URL;
  readonly #host: PostHost;
  readonly #call: HttpCall;
  #refusedWith: ResponseHead | undefined;
  #wasAccepted = false;
  #wasSent = false;
  #body: Buffer[] = [];
  #bodyLength = 0;

  constructor(environment: SessionEnvironment, target: PostTarget, message: Outgoing, host: PostHost) {
    super();
    const { http, cookies, caller, timeouts } = environment;
    const { frame, exchange } = message;
    this.message = message;
    this.#url = target.url;
    this.#host = host;
    this.#call = http.request(
      {
        method: 'POST',
        url: target.url,
        headers: tracedHeaders(environment, target.headers, frame),
        forwarded: caller.of(frame, exchange),
        body: frame.bytes,
        timeouts,
        cookies,
        isRepeatable: frame.method === INITIALIZE || frame.method === PING,
      },
      this,
    );
  }

  /** True once the whole request has been handed to the operating system. */
  get wasSent(): boolean {
    return this.#wasSent;
  }

  abort(): void {
    this.#call.abort();
  }

  sent(): void {
    this.#wasSent = true;
    this.#host.left(this);
  }

  response(head: ResponseHead): void {
    this.#wasSent = true;
    if (head.status < 200 || head.status > 299) {
      this.#refusedWith = head;
      return;
    }
    this.#wasAccepted = true;
    this.#host.accepted(this);
  }

  data(chunk: Buffer): void {
    this.#bodyLength += chunk.length;
    if (this.#refusedWith !== undefined) this.#body.push(chunk);
    if (this.#bodyLength < (this.#wasAccepted ? MAX_IGNORED_BYTES : MAX_REFUSAL_BYTES)) return;
    this.#call.abort();
    this.end();
  }

  end(): void {
    const head = this.#refusedWith;
    if (head !== undefined) this.#host.refused(this, readRefusal(this.#url, head, Buffer.concat(this.#body)));
    this.#host.over(this);
  }

  error(error: BridgeError): void {
    if (this.#wasAccepted || this.#refusedWith !== undefined) return this.end();
    this.#host.failed(this, error);
    this.#host.over(this);
  }
}
