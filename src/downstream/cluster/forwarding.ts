import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Owner } from '../../cluster/owner-tags.ts';
import { BridgeError } from '../../errors.ts';
import { respondError } from '../../http/server/respond.ts';
import { isRepeatable } from '../../mcp/classify/repeatable.ts';
import { readMessage, SERVER_LIMITS } from '../../wire/read-message.ts';
import type { PassedStream, PassedStreamListener } from './link/entry-link.ts';
import type { EntryLinks, ReachedOwner } from './link/entry-links.ts';
import type { ReturnedHead } from './link/heads.ts';
import { passedHeaders, readReturnedHeaders } from './passed-headers.ts';

export interface ForwardedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly principal: string;
  /** What was read of it already; undefined: nothing. */
  readonly body: Buffer | undefined;
}

/**
 * - `responded`: the client has its response, or what there is of it, or has left.
 * - `unreachable`: nothing of the request has reached the owner, and nothing has been responded.
 * - `not-here`: it does not have what was asked for, and has done nothing, or nothing that it would harm to do twice; nothing
 *   has been responded. `body` is what was read of the request; undefined: nothing.
 */
export type ForwardOutcome =
  | { readonly kind: 'responded' }
  | { readonly kind: 'unreachable' }
  | { readonly kind: 'not-here'; readonly body: Buffer | undefined };

/** Kept of a request until its response begins, so that it can go elsewhere; larger ones cannot. */
const MAX_KEPT_BYTES = 64 * 1024;

/**
 * - `connecting`: nothing has been read of the client's request.
 * - `sending`: it is on its way, and the owner has not responded.
 * - `diverted`: the owner does not have it; the rest of the request is read, to go elsewhere.
 * - `responding`: the response passes.
 * - `ended`.
 */
type ForwardingState =
  | { readonly kind: 'connecting'; readonly giveUp: () => void }
  | { readonly kind: 'sending'; readonly stream: PassedStream }
  | { readonly kind: 'diverted' }
  | { readonly kind: 'responding'; readonly stream: PassedStream }
  | { readonly kind: 'ended' };

/** One request that is passed on, and its response on the way back. Either end that does not keep up stops the other. */
export class Forwarding implements PassedStreamListener {
  readonly #forwarded: ForwardedRequest;
  readonly #done: (outcome: ForwardOutcome) => void;
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;
  /** Given to a client that does not read. */
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
    stream.end();
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
    else if (this.#state.kind === 'sending' || this.#state.kind === 'responding') this.#state.stream.end();
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
    // An event stream begins with its head; an answer comes with it, in one write.
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
        // Before its end: the client is to see that something is missing.
        this.#forwarded.response.destroy();
        return this.#end({ kind: 'responded' });
    }
  }

  // ---- where it goes instead

  /** To open or resume a stream, and to end a session, is the same the second time; of messages that depends on what they say. */
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

  /** More than is kept cannot go elsewhere. */
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
    // What is left of a request that was answered before it was read is nobody's.
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
