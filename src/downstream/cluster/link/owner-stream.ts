import { serveDetached } from '../../../http/server/detached-exchange.ts';
import { FREE_BODY_BYTES, provideBody } from '../../../http/server/read-body.ts';
import { recordHop, type ServePassed } from '../hops.ts';
import { BodyInput, BodyOutput } from './body-flow.ts';
import type { LinkConnection } from './connection.ts';
import { detachPayload, type LinkFrame } from './frames.ts';
import { decodePassedHead, encodeReturnedHead, type PassedHead, type ReturnedHead } from './heads.ts';
import { PassedRequest, PassedResponse } from './owner-exchange.ts';

export interface OwnerStreamParts {
  readonly connection: LinkConnection;
  /** How long the head of a request may be, as it passes. */
  readonly maxHeadBytes: number;
  readonly serve: ServePassed;
  /** Nothing comes for it any more, and nothing goes. */
  readonly onOver: (stream: OwnerStream) => void;
}

interface Served {
  readonly kind: 'served';
  readonly request: PassedRequest;
  readonly response: PassedResponse;
}

/**
 * - `opening`: its head goes on.
 * - `held`: its head is here. It is served when it is known whether its body came with it.
 * - `served`.
 * - `over`.
 */
type OwnerStreamState =
  | { readonly kind: 'opening'; readonly bytes: Buffer }
  | { readonly kind: 'held'; readonly head: PassedHead }
  | Served
  | { readonly kind: 'over' };

/** What the other end has done that no replica does; undefined: nothing. */
type Fault = string | undefined;

const NOTHING = Buffer.alloc(0);
const OVER: OwnerStreamState = { kind: 'over' };
const TOO_LARGE: ReturnedHead = { status: 431, headers: ['Content-Length', '0'] };

/** One request on a link and its response, at the replica that serves it. */
export class OwnerStream {
  readonly id: number;
  readonly #parts: OwnerStreamParts;
  readonly #input: BodyInput;
  readonly #output: BodyOutput;
  #state: OwnerStreamState = { kind: 'opening', bytes: NOTHING };
  /** All of the request is here. */
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
        // Usually all of a request comes together, and nobody has to wait for its body.
        if (isLast && payload.length <= FREE_BODY_BYTES) {
          this.#isRead = true;
          this.serve(detachPayload(payload));
          return undefined;
        }
        this.serve();
    }
    if (this.#state.kind !== 'served') return undefined;
    const { request, response } = this.#state;
    // Nobody wants the rest of a request that was refused.
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

  /** @param body all of it; undefined: it comes */
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
      recordHop(passed, head.principal);
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

  /** The client has left, or nothing reaches it any more. */
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
