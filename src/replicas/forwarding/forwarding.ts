import type { IncomingMessage, ServerResponse } from 'node:http';
import { BridgeError } from '../../errors.ts';
import { respondError } from '../../http/server/respond.ts';
import { isRepeatable } from '../../mcp/classify/repeatable.ts';
import { readMessage, SERVER_LIMITS } from '../../wire/read-message.ts';
import type { Owner } from '../ownership/owner-tags.ts';
import type { EntryLinks, ReachedOwner } from './link/entry-links.ts';
import type { EntryStream, EntryStreamListener } from './link/entry-stream.ts';
import type { ReturnedHead } from './link/heads.ts';
import { passedHeaders, readReturnedHeaders } from './passed-headers.ts';

export interface ForwardedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly principal: string;
  /** Body bytes read before forwarding, all of them, or undefined if the body has not been read. */
  readonly body: Buffer | undefined;
}

/**
 * - `responded`: the client has its response or a part of it, or has disconnected.
 * - `unreachable`: no part of the request has reached the owner, and no response has been sent.
 * - `not-here`: the replica does not have the session or call. It has done nothing, or nothing that is harmful to
 *   repeat, and no response has been sent. `body` is the request body, or undefined if it has not been read.
 */
export type ForwardOutcome =
  | { readonly kind: 'responded' }
  | { readonly kind: 'unreachable' }
  | { readonly kind: 'not-here'; readonly body: Buffer | undefined };

/** Limit of the request body kept until the response begins. A larger request cannot be sent to another replica. */
const MAX_KEPT_BYTES = 64 * 1024;

/**
 * - `connecting`: the client's request has not been read yet.
 * - `sending`: the request is being sent, and the owner has not responded.
 * - `diverted`: the owner does not have the session or call. The rest of the request is read, to be sent elsewhere.
 * - `responding`: the response is being forwarded to the client.
 * - `ended`: `done` has been called.
 */
type ForwardingState =
  | { readonly kind: 'connecting'; readonly giveUp: () => void }
  | { readonly kind: 'sending'; readonly stream: EntryStream }
  | { readonly kind: 'diverted' }
  | { readonly kind: 'responding'; readonly stream: EntryStream }
  | { readonly kind: 'ended' };

/** Forwards a request to another replica and its response to the client. Backpressure applies in both directions. */
export class Forwarding implements EntryStreamListener {
  readonly #forwarded: ForwardedRequest;
  readonly #done: (outcome: ForwardOutcome) => void;
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;
  /** Bytes written to the response that the owner has not been credited for, because the client reads too slowly. */
  #unreadBytes = 0;
  #state: ForwardingState = { kind: 'connecting', giveUp: () => {} };

  constructor(forwarded: ForwardedRequest, done: (outcome: ForwardOutcome) => void) {
    this.#forwarded = forwarded;
    this.#done = done;
  }

  start(owner: Owner, links: Pick<EntryLinks, 'reach'>): void {
    this.#forwarded.response.once('close', this.#clientLeft);
    const giveUp = links.reach(owner, (reached) => this.#reached(reached));
    if (this.#state.kind === 'connecting') this.#state = { kind: 'connecting', giveUp };
  }

  #reached(reached: ReachedOwner): void {
    if (reached.kind === 'unreachable') return this.#end({ kind: 'unreachable' });
    const { request, response, body, principal } = this.#forwarded;
    if (reached.kind === 'not-here') return this.#end({ kind: 'not-here', body });
    const { method = '', url: target = '' } = request;
    const head = { method, target, principal, headers: passedHeaders(request, body) };
    const stream = reached.link.open(head, this);
    if (stream === undefined) {
      respondError(response, BUSY);
      return this.#end({ kind: 'responded' });
    }
    this.#state = { kind: 'sending', stream };
    if (body === undefined) return void request.on('data', this.#read).on('end', this.#readAll);
    this.#keep(body);
    stream.write(body);
    stream.finish();
  }

  // ---- from the client

  readonly #read = (chunk: Buffer): void => {
    this.#keep(chunk);
    if (this.#state.kind === 'diverted') return this.#divert();
    if (this.#state.kind !== 'sending' && this.#state.kind !== 'responding') return;
    if (!this.#state.stream.write(chunk)) this.#forwarded.request.pause();
  };

  readonly #readAll = (): void => {
    if (this.#state.kind === 'diverted') this.#end({ kind: 'not-here', body: Buffer.concat(this.#kept) });
    else if (this.#state.kind === 'sending' || this.#state.kind === 'responding') this.#state.stream.finish();
  };

  #keep(chunk: Buffer): void {
    this.#keptBytes += chunk.length;
    if (this.#keptBytes > MAX_KEPT_BYTES) this.#kept.length = 0;
    else this.#kept.push(chunk);
  }

  readonly #clientLeft = (): void => {
    const state = this.#state;
    this.#end({ kind: 'responded' });
    if (state.kind === 'connecting') state.giveUp();
    else if (state.kind === 'sending' || state.kind === 'responding') state.stream.leave();
  };

  readonly #clientRead = (): void => {
    const bytes = this.#unreadBytes;
    this.#unreadBytes = 0;
    if (this.#state.kind === 'responding') this.#state.stream.read(bytes);
  };

  // ---- from the owner

  drained(): void {
    this.#forwarded.request.resume();
  }

  responded({ status, headers }: ReturnedHead): void {
    if (this.#state.kind !== 'sending') return;
    const { stream } = this.#state;
    const returned = readReturnedHeaders(headers);
    if (returned.isNotHere) {
      stream.leave();
      return this.#notHere();
    }
    this.#state = { kind: 'responding', stream };
    const { response } = this.#forwarded;
    response.writeHead(status, returned.headers);
    // An event stream's head is sent at once. A response with a length is sent in one write with its head.
    if (!returned.hasLength) response.flushHeaders();
  }

  came(bytes: Buffer): void {
    if (this.#state.kind !== 'responding') return;
    const { response } = this.#forwarded;
    if (response.write(bytes) && this.#unreadBytes === 0) return this.#state.stream.read(bytes.length);
    if (this.#unreadBytes === 0) response.once('drain', this.#clientRead);
    this.#unreadBytes += bytes.length;
  }

  completed(last: Buffer): void {
    if (this.#state.kind !== 'responding') return;
    const { response } = this.#forwarded;
    if (last.length > 0) response.end(last);
    else response.end();
    this.#end({ kind: 'responded' });
  }

  failed(how: 'unserved' | 'cut' | 'lost'): void {
    switch (this.#state.kind) {
      case 'sending':
        if (how === 'unserved' || (how === 'lost' && this.#mayBeSentAgain())) return this.#notHere();
        respondError(this.#forwarded.response, GONE);
        return this.#end({ kind: 'responded' });
      case 'responding':
        // Destroyed before its end, so that the client notices the incomplete response.
        this.#forwarded.response.destroy();
        return this.#end({ kind: 'responded' });
    }
  }

  // ---- where it goes instead

  /**
   * True if the request may be repeated. GET and DELETE requests, which open or resume a stream or end a session, may
   * be. For a POST it depends on the message.
   */
  #mayBeSentAgain(): boolean {
    if (this.#forwarded.request.method !== 'POST') return true;
    if (!this.#isRead || this.#keptBytes > MAX_KEPT_BYTES) return false;
    const read = readMessage(Buffer.concat(this.#kept), SERVER_LIMITS);
    return read.kind === 'message' && isRepeatable(read.frame);
  }

  get #isRead(): boolean {
    return this.#forwarded.body !== undefined || this.#forwarded.request.readableEnded;
  }

  #notHere(): void {
    const { request } = this.#forwarded;
    const isRead = this.#isRead;
    this.#state = { kind: 'diverted' };
    if (isRead && this.#keptBytes <= MAX_KEPT_BYTES) return this.#readAll();
    this.#divert();
    request.resume();
  }

  /** Responds with an error if the body is too large to be sent to another replica. */
  #divert(): void {
    if (this.#keptBytes <= MAX_KEPT_BYTES) return;
    respondError(this.#forwarded.response, MOVED, undefined, { Connection: 'close' });
    this.#end({ kind: 'responded' });
  }

  #end(outcome: ForwardOutcome): void {
    if (this.#state.kind === 'ended') return;
    this.#state = { kind: 'ended' };
    const { request, response, body } = this.#forwarded;
    response.off('close', this.#clientLeft);
    if (this.#unreadBytes > 0) response.off('drain', this.#clientRead);
    if (body === undefined) request.off('data', this.#read).off('end', this.#readAll);
    // Discard the rest of a request that was answered before it was read completely.
    if (outcome.kind === 'responded' && !request.readableEnded) request.resume();
    this.#kept.length = 0;
    this.#done(outcome);
  }
}

const GONE = new BridgeError(
  'ERR_CLUSTER_OWNER',
  'The replica that had this session was lost before it responded; whether the request was carried out is not known, and it was not sent again.',
  { retryAfterMs: 1000 },
);
const MOVED = new BridgeError(
  'ERR_CLUSTER_OWNER',
  'The session has moved to another replica while this large request was on its way; nothing was done, send it again.',
  { retryAfterMs: 1000 },
);
const BUSY = new BridgeError(
  'ERR_SESSION_BUSY',
  'The replica that has this session takes requests more slowly than they come; nothing was done, try again later.',
  { retryAfterMs: 1000 },
);
