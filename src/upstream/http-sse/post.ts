import { ListMember } from '../../collections/short-lived-values.ts';
import type { BridgeError } from '../../errors.ts';
import type { HttpCall, HttpHandler, ResponseHead } from '../../http/client/http-call.ts';
import { INITIALIZE, PING } from '../../mcp/vocabulary/methods.ts';
import type { Outgoing } from '../remote/link-messages.ts';
import { MAX_REFUSAL_BYTES, type Refusal, readRefusal } from '../remote/refusal.ts';
import { type SessionEnvironment, tracedHeaders } from '../remote/remote-environment.ts';

/** Where the messages of a session are posted, and with what: the same object for as long as both stay the same. */
export interface PostTarget {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

export interface PostHost {
  left(post: MessagePost): void;
  /** Any 2xx. */
  accepted(post: MessagePost): void;
  refused(post: MessagePost, refusal: Refusal): void;
  failed(post: MessagePost, error: BridgeError): void;
  /** Nothing more happens with it. */
  over(post: MessagePost): void;
}

/** Some servers write "Accepted", some a page; it is read to the end to keep the connection, but not for ever. */
const MAX_IGNORED_BYTES = 64 * 1024;

/** The POST of one message. Its response says only whether the server took it; answers come on the stream. */
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

  /** All of it was handed to the system. */
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
