import type { RequestListener } from 'node:http';
import { recordPassedCaller } from '../../../http/auth/callers.ts';
import { serveDetached } from '../../../http/server/detached-exchange.ts';
import { FREE_BODY_BYTES, provideBody } from '../../../http/server/read-body.ts';
import { BodyInput, BodyOutput } from './body-flow.ts';
import type { LinkConnection } from './connection.ts';
import { detachPayload, type LinkFrame } from './frames.ts';
import { decodePassedHead, encodeReturnedHead, type PassedHead, type ReturnedHead } from './heads.ts';
import { PassedRequest, PassedResponse } from './owner-exchange.ts';

export interface OwnerStreamParts {
  readonly connection: LinkConnection;
  /** Largest head of a request, in its encoding on the link. */
  readonly maxHeadBytes: number;
  readonly serve: RequestListener;
  /** Called when the stream has ended in both directions. */
  readonly onOver: (stream: OwnerStream) => void;
}

interface Served {
  readonly kind: 'served';
  readonly request: PassedRequest;
  readonly response: PassedResponse;
}

/**
 * - `opening`: a part of the head has arrived.
 * - `held`: the head is complete. The request is served once it is known whether its body arrived together with it.
 * - `served`: the request has been passed to `serve`.
 * - `over`: the stream has ended.
 */
type OwnerStreamState =
  | { readonly kind: 'opening'; readonly bytes: Buffer }
  | { readonly kind: 'held'; readonly head: PassedHead }
  | Served
  | { readonly kind: 'over' };

/** A violation of the link's protocol by the other end, or undefined if there is none. */
type Fault = string | undefined;

const NOTHING = Buffer.alloc(0);
const OVER: OwnerStreamState = { kind: 'over' };
const TOO_LARGE: ReturnedHead = { status: 431, headers: ['Content-Length', '0'] };

/** A forwarded request on a link and its response, at the replica that serves it. The counterpart is PassedStream. */
export class OwnerStream {
  readonly id: number;
  readonly #parts: OwnerStreamParts;
  readonly #input: BodyInput;
  readonly #output: BodyOutput;
  #state: OwnerStreamState = { kind: 'opening', bytes: NOTHING };
  /** True if the whole request has arrived. */
  #isRead = false;

  constructor(id: number, parts: OwnerStreamParts) {
    this.id = id;
    this.#parts = parts;
    this.#input = new BodyInput(parts.connection, id);
    this.#output = new BodyOutput(parts.connection, id, () => {
      if (this.#state.kind === 'served') this.#state.response.drained();
    });
  }

  get isHeld(): boolean {
    return this.#state.kind === 'held';
  }

  takeHead({ payload, mark }: LinkFrame): Fault {
    if (this.#state.kind !== 'opening') return 'it carried two heads of one request';
    const { bytes: begun } = this.#state;
    const bytes = begun.length === 0 ? payload : Buffer.concat([begun, payload]);
    if (bytes.length > this.#parts.maxHeadBytes) {
      this.#begin(TOO_LARGE);
      this.#output.end();
      this.#over();
      return undefined;
    }
    if (mark === 'more') {
      this.#state = { kind: 'opening', bytes };
      return undefined;
    }
    const head = decodePassedHead(bytes);
    if (head === undefined) return 'the head of a request is none';
    this.#state = { kind: 'held', head };
    return undefined;
  }

  takeData({ payload, mark }: LinkFrame): Fault {
    if (!this.#input.came(payload.length)) return 'more came than was welcome';
    const isLast = mark === 'last';
    if (isLast) this.#input.end();
    switch (this.#state.kind) {
      case 'opening':
        return 'it carried a body in front of its head';
      case 'held':
        // A request usually arrives in one chunk. Its body is then available without waiting.
        if (isLast && payload.length <= FREE_BODY_BYTES) {
          this.#isRead = true;
          this.serve(detachPayload(payload));
          return undefined;
        }
        this.serve();
    }
    if (this.#state.kind !== 'served') return undefined;
    const { request, response } = this.#state;
    // The rest of a rejected request is discarded.
    if (payload.length > 0 && !request.destroyed) request.came(detachPayload(payload));
    if (!isLast) return undefined;
    this.#isRead = true;
    if (!request.destroyed) request.push(null);
    if (response.destroyed) this.#over();
    return undefined;
  }

  takeWindow(bytes: number): Fault {
    return this.#output.widen(bytes) ? undefined : 'more was read than was sent';
  }

  /** @param body the whole body, or undefined if it is still arriving */
  serve(body?: Buffer): void {
    if (this.#state.kind !== 'held') return;
    const { head } = this.#state;
    const request = new PassedRequest(head, this.#input);
    const response = new PassedResponse(request, {
      output: this.#output,
      begin: (returned) => this.#begin(returned),
      cut: () => this.#cut(),
    });
    this.#state = { kind: 'served', request, response };
    response.once('close', () => {
      request.destroy();
      if (this.#isRead) this.#over();
    });
    serveDetached(request, response, (passed, answered) => {
      recordPassedCaller(passed, head.principal);
      if (body !== undefined) provideBody(passed, body);
      this.#parts.serve(passed, answered);
    });
  }

  #begin(head: ReturnedHead): void {
    if (this.#state.kind === 'over') return;
    this.#parts.connection.sendHead('head', this.id, encodeReturnedHead(head));
  }

  #cut(): void {
    if (this.#state.kind !== 'served') return;
    this.#parts.connection.send('reset', this.id, NOTHING);
    this.#over();
  }

  /** Ends the stream because the client has disconnected or the link has ended. */
  end(): void {
    const state = this.#state;
    this.#over();
    if (state.kind !== 'served') return;
    state.request.destroy();
    state.response.destroy();
  }

  #over(): void {
    if (this.#state.kind === 'over') return;
    this.#state = OVER;
    this.#input.end();
    this.#output.stop();
    this.#parts.onOver(this);
  }
}
