import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { Owner } from '../../cluster/owner-tags.ts';
import { BridgeError } from '../../errors.ts';
import { respondError } from '../../http/server/respond.ts';
import type { ForwardedRequest } from './forwarder.ts';
import { NOT_HERE_HEADER } from './hops.ts';
import { returnedHeaders } from './passed-headers.ts';

/**
 * - `responded`: the client has its response, or what there is of it, or has left.
 * - `unreachable`: nothing of the request has reached the owner, and nothing has been responded.
 * - `not-here`: it does not have what was asked for, and has done nothing; nothing has been responded. `body` is what was
 *   read of the request.
 */
export type ForwardOutcome =
  | { readonly kind: 'responded' }
  | { readonly kind: 'unreachable' }
  | { readonly kind: 'not-here'; readonly body: Buffer };

export interface ForwardingOptions {
  readonly owner: Owner;
  readonly forwarded: ForwardedRequest;
  readonly upstream: ClientRequest;
  readonly log: Logger;
}

/** Another machine in the same network. */
const CONNECT_TIMEOUT_MS = 3000;
/** Kept of a request until its response begins, so that it can go elsewhere; larger ones cannot. */
const MAX_KEPT_BYTES = 64 * 1024;

/**
 * - `connecting`: nothing has been read of the client's request.
 * - `sending`: it is on its way, and the owner has not responded.
 * - `diverted`: the owner does not have it; the rest of the request is read, to go elsewhere.
 * - `responding`: the response passes.
 * - `ended`.
 */
type ForwardingState = 'connecting' | 'sending' | 'diverted' | 'responding' | 'ended';

/** One request that is passed on, and its response on the way back. Either end that does not keep up stops the other. */
export class Forwarding {
  readonly owner: Owner;
  readonly #options: ForwardingOptions;
  readonly #done: (outcome: ForwardOutcome) => void;
  readonly #ended: () => void;
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;
  #stopConnecting: () => void = () => {};
  #state: ForwardingState = 'connecting';

  constructor(options: ForwardingOptions, done: (outcome: ForwardOutcome) => void, ended: () => void) {
    this.owner = options.owner;
    this.#options = options;
    this.#done = done;
    this.#ended = ended;
  }

  start(): void {
    const { upstream, forwarded } = this.#options;
    upstream.on('error', (error: NodeJS.ErrnoException) => this.#failed(error.code ?? error.message));
    upstream.on('response', (head) => this.#responded(head));
    upstream.on('socket', (socket) => this.#gotSocket(socket));
    forwarded.response.once('close', this.#clientLeft);
    upstream.setNoDelay(true);
  }

  #gotSocket(socket: Socket): void {
    if (!socket.connecting) return this.#connected();
    const timer = setTimeout(() => this.#options.upstream.destroy(new Error('timed out')), CONNECT_TIMEOUT_MS);
    this.#stopConnecting = () => clearTimeout(timer);
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => this.#connected());
  }

  #connected(): void {
    this.#stopConnecting();
    if (this.#state !== 'connecting') return;
    this.#state = 'sending';
    const { upstream, forwarded } = this.#options;
    const { request, body } = forwarded;
    if (body !== undefined) {
      this.#keep(body);
      return void upstream.end(body);
    }
    request.on('data', this.#read).on('end', this.#readAll);
    upstream.on('drain', this.#drained);
  }

  readonly #read = (chunk: Buffer): void => {
    this.#keep(chunk);
    if (this.#state === 'diverted') return this.#divert();
    if (!this.#options.upstream.write(chunk)) this.#options.forwarded.request.pause();
  };

  readonly #readAll = (): void => {
    if (this.#state === 'diverted') this.#end({ kind: 'not-here', body: Buffer.concat(this.#kept) });
    else this.#options.upstream.end();
  };

  readonly #drained = (): void => void this.#options.forwarded.request.resume();

  #keep(chunk: Buffer): void {
    this.#keptBytes += chunk.length;
    if (this.#keptBytes > MAX_KEPT_BYTES) this.#kept.length = 0;
    else this.#kept.push(chunk);
  }

  #responded(head: IncomingMessage): void {
    if (this.#state === 'ended') return void head.resume();
    if (head.headers[NOT_HERE_HEADER] !== undefined) return this.#notHere(head);
    this.#state = 'responding';
    const { response } = this.#options.forwarded;
    response.writeHead(head.statusCode ?? 502, head.statusMessage, returnedHeaders(head.rawHeaders));
    // An event stream begins with its head; an answer comes with it, in one write.
    if (head.headers['content-length'] === undefined) response.flushHeaders();
    head.on('data', (chunk: Buffer) => {
      if (!response.write(chunk)) head.pause();
    });
    response.on('drain', () => head.resume());
    head.on('end', () => {
      response.end();
      this.#end({ kind: 'responded' });
    });
    // Before its end: the client is to see that something is missing.
    head.on('close', () => this.#cut());
    head.on('error', () => this.#cut());
  }

  #notHere(head: IncomingMessage): void {
    const { request, body } = this.#options.forwarded;
    const isRead = body !== undefined || request.readableEnded;
    this.#state = 'diverted';
    head.resume();
    this.#options.upstream.off('drain', this.#drained);
    if (isRead && this.#keptBytes <= MAX_KEPT_BYTES) return this.#readAll();
    this.#options.upstream.destroy();
    this.#divert();
    request.resume();
  }

  /** More than is kept cannot go elsewhere. */
  #divert(): void {
    if (this.#keptBytes <= MAX_KEPT_BYTES) return;
    respondError(this.#options.forwarded.response, MOVED, undefined, { Connection: 'close' });
    this.#end({ kind: 'responded' });
  }

  #cut(): void {
    if (this.#state !== 'responding') return;
    this.#options.forwarded.response.destroy();
    this.#end({ kind: 'responded' });
  }

  #failed(reason: string): void {
    if (this.#state === 'ended' || this.#state === 'diverted') return;
    if (this.#state === 'responding') return this.#cut();
    this.#options.log.debug({ reason, state: this.#state }, 'a request could not be passed on to its replica');
    if (this.#state === 'connecting') return this.#end({ kind: 'unreachable' });
    respondError(this.#options.forwarded.response, GONE);
    this.#end({ kind: 'responded' });
  }

  /** Whatever it would still say, it is not the owner any more. */
  ownerDied(): void {
    if (this.#state === 'ended' || this.#state === 'diverted') return;
    if (this.#state === 'connecting') this.#end({ kind: 'unreachable' });
    else if (this.#state === 'responding') this.#cut();
    else {
      respondError(this.#options.forwarded.response, GONE);
      this.#end({ kind: 'responded' });
    }
    this.#options.upstream.destroy();
  }

  readonly #clientLeft = (): void => {
    if (this.#state === 'ended') return;
    this.#end({ kind: 'responded' });
    this.#options.upstream.destroy();
  };

  #end(outcome: ForwardOutcome): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#stopConnecting();
    const { forwarded, upstream } = this.#options;
    forwarded.response.off('close', this.#clientLeft);
    forwarded.request.off('data', this.#read).off('end', this.#readAll);
    upstream.off('drain', this.#drained);
    this.#kept.length = 0;
    this.#ended();
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
