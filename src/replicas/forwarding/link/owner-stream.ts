import type { RequestListener } from 'node:http';
import { recordPassedCaller } from '../../../http/auth/callers.ts';
import { serveDetached } from '../../../http/server/detached-exchange.ts';
import { FREE_BODY_BYTES, provideBody } from '../../../http/server/read-body.ts';
import type { LinkConnection } from './connection.ts';
import { detachPayload } from './frames.ts';
import { decodePassedHead, encodeReturnedHead, type PassedHead, type ReturnedHead } from './heads.ts';
import { PassedRequest, PassedResponse } from './owner-exchange.ts';
import { type Fault, StreamEnd } from './stream-end.ts';

export interface OwnerStreamParts {
  readonly connection: LinkConnection;
  /** Largest head of a request, in its encoding on the link. */
  readonly maxHeadBytes: number;
  readonly serve: RequestListener;
  /** Called when the stream has ended in both directions. */
  readonly onOver: (stream: OwnerStream) => void;
}

/**
 * - `opening`: the head has not arrived completely.
 * - `held`: the head is complete. The request is served once it is known whether its body arrived together with it.
 * - `served`: the request has been passed to `serve`.
 */
type OwnerStreamState =
  | { readonly kind: 'opening' }
  | { readonly kind: 'held'; readonly head: PassedHead }
  | { readonly kind: 'served'; readonly request: PassedRequest; readonly response: PassedResponse };

const TOO_LARGE: ReturnedHead = { status: 431, headers: ['Content-Length', '0'] };

/** A forwarded request on a link and its response, at the replica that serves it. The counterpart is EntryStream. */
export class OwnerStream extends StreamEnd {
  readonly #parts: OwnerStreamParts;
  #state: OwnerStreamState = { kind: 'opening' };
  /** True if the whole request has arrived. */
  #isRead = false;

  constructor(id: number, parts: OwnerStreamParts) {
    super(id, { connection: parts.connection, headType: 'open', maxHeadBytes: parts.maxHeadBytes });
    this.#parts = parts;
  }

  get isHeld(): boolean {
    return this.#state.kind === 'held' && !this.isOver;
  }

  // ---- from the replica that forwards the request

  protected override headCame(bytes: Buffer): Fault {
    const head = decodePassedHead(bytes);
    if (head === undefined) return 'the head of a request is none';
    this.#state = { kind: 'held', head };
    return undefined;
  }

  protected override headTooLarge(): Fault {
    this.#begin(TOO_LARGE);
    this.output.end();
    this.end();
    return undefined;
  }

  protected override dataCame(payload: Buffer, isLast: boolean): void {
    if (this.#state.kind === 'held') {
      // A request usually arrives in one chunk. Its body is then available without waiting.
      if (isLast && payload.length <= FREE_BODY_BYTES) {
        this.#isRead = true;
        return this.serve(detachPayload(payload));
      }
      this.serve();
    }
    if (this.#state.kind !== 'served' || this.isOver) return;
    const { request, response } = this.#state;
    // The rest of a rejected request is discarded.
    if (payload.length > 0 && !request.destroyed) request.came(detachPayload(payload));
    if (!isLast) return;
    this.#isRead = true;
    if (!request.destroyed) request.push(null);
    if (response.destroyed) this.end();
  }

  protected override wasReset(): void {
    this.abort();
  }

  protected override drained(): void {
    if (this.#state.kind === 'served') this.#state.response.drained();
  }

  // ---- the response

  /** @param body the whole body, or undefined if it is still arriving */
  serve(body?: Buffer): void {
    if (this.#state.kind !== 'held' || this.isOver) return;
    const { head } = this.#state;
    const request = new PassedRequest(head, this.input);
    const response = new PassedResponse(request, {
      output: this.output,
      begin: (returned) => this.#begin(returned),
      cut: () => this.reset(),
    });
    this.#state = { kind: 'served', request, response };
    response.once('close', () => {
      request.destroy();
      if (this.#isRead) this.end();
    });
    serveDetached(request, response, (passed, answered) => {
      recordPassedCaller(passed, head.principal);
      if (body !== undefined) provideBody(passed, body);
      this.#parts.serve(passed, answered);
    });
  }

  #begin(head: ReturnedHead): void {
    if (!this.isOver) this.connection.sendHead('head', this.id, encodeReturnedHead(head));
  }

  /** Ends the stream because the client has disconnected or the link has ended. */
  abort(): void {
    this.end();
    if (this.#state.kind !== 'served') return;
    this.#state.request.destroy();
    this.#state.response.destroy();
  }

  protected override forget(): void {
    this.#parts.onOver(this);
  }
}
