import { type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { assertNever, BridgeError } from '../../errors.ts';
import { toPrintable } from '../../printable.ts';
import { packingOf } from '../headers.ts';
import { showUrl } from '../shown-url.ts';
import { type RequestTarget, TCP_KEEP_ALIVE_MS } from './agents.ts';
import { discardResponse, holdResponse, PhaseTimer, stopSending, timeoutError } from './call-limits.ts';
import {
  type CredentialRefusal,
  type CredentialRenewal,
  parseAuthChallenge,
  type RenewalOutcome,
} from './credentials.ts';
import type { HttpCall, HttpExchangeHost, HttpHandler, HttpRequest, ResponseHead } from './http-call.ts';
import { codeOf, toConnectError, toRequestError } from './network-error.ts';
import { judgeRedirect } from './redirects.ts';
import { unpack } from './unpack.ts';

/** The error codes of a request on a kept-alive connection that the server was just closing. */
const STALE_CODES: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);

/**
 * Limit on the renewals of one request: refreshed credentials, those of a login, and those of a login with one more
 * scope.
 */
const MAX_RENEWALS = 3;

/**
 * After a pause of this length, the body of a refusal is used as far as it has arrived: callers wait for it, and some
 * servers announce a longer body than they send.
 */
const REFUSAL_IDLE_MS = 10_000;

/**
 * - `authorizing`: waiting for credentials, before the first attempt or after a refusal. No attempt is in progress.
 * - `sending`: a part of the request has not been sent yet.
 * - `sent`: waiting for the response.
 * - `receiving`: the handler has received the head of the response.
 * - `done`: the handler is not called anymore.
 */
type State = 'authorizing' | 'sending' | 'sent' | 'receiving' | 'done';

/** A request and its response. Redirects, stale connections and new credentials may require several attempts. */
export class HttpExchange implements HttpCall {
  readonly #host: HttpExchangeHost;
  readonly #request: HttpRequest;
  readonly #handler: HttpHandler;
  readonly #renewal: CredentialRenewal | undefined;
  #timer: PhaseTimer;
  #state: State = 'sending';
  #isPaused = false;
  #url: URL;
  #hops = 0;
  #wasRepeated = false;
  #renewals = 0;
  /** The request was sent again with a nonce that the server had asked for. */
  #hasTakenNonce = false;
  /** The value of `Authorization` in the latest attempt. */
  #authorization: string | undefined = undefined;
  #message: ClientRequest | undefined = undefined;
  #content: Readable | undefined = undefined;

  constructor(host: HttpExchangeHost, request: HttpRequest, handler: HttpHandler) {
    this.#host = host;
    this.#request = request;
    this.#handler = handler;
    this.#url = request.url;
    this.#timer = this.#startTimer();
    this.#renewal = host.renewalOf(request.forwarded);
    const authorizing = this.#renewal?.beforeRequest();
    if (authorizing === undefined) this.#attempt();
    else this.#attemptAfter(authorizing);
  }

  #startTimer(): PhaseTimer {
    return new PhaseTimer(this.#host.clock, this.#request.timeouts, (phase, limitMs) => {
      this.#fail(timeoutError(this.#url, phase, limitMs, this.#host.agents.proxyFor(this.#url)));
    });
  }

  abort(): void {
    if (this.#state === 'done') return;
    this.#finish();
    this.#message?.destroy();
  }

  pause(): void {
    this.#isPaused = true;
    this.#timer.pause();
    this.#content?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#timer.resume();
    this.#content?.resume();
  }

  #attempt(): void {
    let message: ClientRequest;
    try {
      const { method } = this.#request;
      const headers = this.#host.headersFor(this.#url, this.#request);
      this.#authorization = headers.authorization;
      const target = this.#host.agents.targetOf(this.#url);
      const { protocol, hostname, port, path, agent } = target;
      const open = protocol === 'https:' ? requestHttps : requestHttp;
      message = open({ protocol, hostname, port, path, agent, method, headers: this.#head(headers, target) });
    } catch (thrown) {
      // The token cannot be read, the proxy cannot be used or a header cannot be sent. The handler gets the error in a
      // microtask, because the caller needs this object first.
      const error = thrown instanceof BridgeError ? thrown : toRequestError(thrown);
      return queueMicrotask(() => this.#fail(error));
    }
    this.#message = message;
    this.#timer.enter('connect');
    message.on('socket', (socket) => this.#watchConnect(message, socket));
    message.on('finish', () => this.#sent(message));
    message.on('response', (response) => this.#responded(message, response));
    message.on('upgrade', (response) => this.#switched(message, response));
    message.on('error', (cause) => this.#broke(message, cause));
    message.end(this.#request.body);
  }

  #head(headers: Readonly<Record<string, string>>, { host, head }: RequestTarget): OutgoingHttpHeaders | string[] {
    if (head === 'looked-up') return headers;
    return completeHead(this.#host.listOf(headers), headers.host === undefined ? host : undefined, this.#request.body);
  }

  #watchConnect(message: ClientRequest, socket: Socket): void {
    socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
    const connected = (): void => {
      if (message === this.#message && this.#state === 'sending') this.#timer.enter('first-byte');
    };
    if (message.reusedSocket) connected();
    else if (socket instanceof TLSSocket) socket.once('secureConnect', connected);
    else if (socket.connecting) socket.once('connect', connected);
    else connected();
  }

  #sent(message: ClientRequest): void {
    if (message !== this.#message || this.#state !== 'sending') return;
    // Node emits `finish` for a write that failed as well, just before the error.
    if (message.socket?.errored) return;
    this.#state = 'sent';
    this.#timer.enter('first-byte');
    this.#handler.sent();
  }

  #responded(message: ClientRequest, response: IncomingMessage): void {
    if (message !== this.#message || this.#state === 'done') return void response.destroy();
    const { statusCode: status = 0, headers } = response;
    this.#request.cookies.store(this.#url, headers['set-cookie']);
    const { location } = headers;
    const { method } = this.#request;
    if (status >= 300 && status < 400) {
      const verdict = judgeRedirect({ method, url: this.#url, status, location, hops: this.#hops });
      if (verdict.kind === 'follow') return this.#follow(verdict.url, message, response);
      if (verdict.kind === 'refuse') {
        return this.#refuse(status, `answered ${status}: ${verdict.reason}; ${verdict.wayOut}`);
      }
    }
    const renewal = this.#renewal;
    if (renewal !== undefined && this.#isTakingNonce(renewal, message, response, status)) return;
    const packing = packingOf(headers['content-encoding']);
    const content = packing === undefined ? response : unpack(response, packing);
    if (renewal !== undefined && this.#isRenewing(renewal, response, content ?? response, status)) return;
    if (content === undefined) {
      const form = toPrintable(packing ?? '', 20);
      return this.#refuse(
        status,
        `sent its answer compressed (${form}), although that was not asked for; gzip, br and deflate are read`,
      );
    }
    this.#receive(response, content, status);
  }

  /**
   * Rejects a switch of protocols. Without a listener for `upgrade`, Node closes the connection and emits no other
   * event.
   */
  #switched(message: ClientRequest, { statusCode: status = 0, socket }: IncomingMessage): void {
    socket.destroy();
    const fault = `answered ${status}, to go on with another protocol than HTTP, although that was not asked for`;
    if (message === this.#message) this.#refuse(status, fault);
  }

  // ---- credentials

  /**
   * Sends the request again with the nonce of the refusal. [RFC 9449 9] The time limits keep running, because the
   * request does not wait for a user.
   */
  #isTakingNonce(
    renewal: CredentialRenewal,
    message: ClientRequest,
    response: IncomingMessage,
    status: number,
  ): boolean {
    if (status !== 401 || this.#hasTakenNonce || !renewal.takesNonce(this.#refusalOf(response, status))) return false;
    this.#hasTakenNonce = true;
    discardResponse(message, response);
    this.#state = 'sending';
    this.#attempt();
    return true;
  }

  /**
   * Starts a renewal after a refusal. A request that was refused for its credentials had no effect, so it can be sent
   * again with new ones.
   */
  #isRenewing(renewal: CredentialRenewal, response: IncomingMessage, content: Readable, status: number): boolean {
    if (status !== 401 && status !== 403) {
      if (this.#authorization !== undefined) renewal.accepted(this.#authorization, this.#url, response.headers);
      return false;
    }
    // Ending a session is not worth a login.
    if (this.#renewals >= MAX_RENEWALS || this.#request.method === 'DELETE') return false;
    const renewing = renewal.refused({
      ...this.#refusalOf(response, status),
      ask: (prompt) => (this.#state === 'authorizing' ? this.#handler.askUser?.(prompt) : undefined),
    });
    if (renewing === undefined) return false;
    this.#renewals += 1;
    this.#wait();
    const body = holdResponse(content);
    void renewing.then((outcome) => {
      if (this.#state === 'authorizing') this.#renewed(outcome, response, body);
    });
    return true;
  }

  #refusalOf({ headers, socket }: IncomingMessage, status: 401 | 403): CredentialRefusal {
    const peerAddress = this.#host.agents.proxyFor(this.#url) === undefined ? socket.remoteAddress : undefined;
    const challenge = parseAuthChallenge(headers);
    return { status, challenge, headers, url: this.#url, authorization: this.#authorization, peerAddress };
  }

  #renewed(outcome: RenewalOutcome, response: IncomingMessage, body: Promise<Buffer>): void {
    switch (outcome.kind) {
      case 'renewed':
        if (!response.complete) response.destroy();
        stopSending(this.#message);
        return this.#attemptAnew();
      case 'refused':
        this.#timer = this.#startTimer();
        this.#timer.enterIdle();
        return void body.then((bytes) => this.#replay(response, bytes));
      case 'failed':
        return this.#fail(outcome.error);
      default:
        return assertNever(outcome);
    }
  }

  /** Passes the refusal to the handler after all. The handler may abort in each callback. */
  #replay(response: IncomingMessage, body: Buffer): void {
    if (this.#state !== 'authorizing') return;
    const { statusCode: status = 0 } = response;
    this.#state = 'receiving';
    this.#handler.response(this.#headOf(response, status, 'none offered'));
    if (this.#state === 'receiving' && body.length > 0) this.#handler.data(body);
    this.#ended();
  }

  #attemptAfter(authorizing: Promise<void>): void {
    this.#wait();
    void authorizing.then(() => {
      if (this.#state === 'authorizing') this.#attemptAnew();
    });
  }

  #attemptAnew(): void {
    this.#timer = this.#startTimer();
    this.#state = 'sending';
    this.#attempt();
  }

  /** Stops the time limits while a user logs in, because they limit the server only. */
  #wait(): void {
    this.#state = 'authorizing';
    this.#timer.stop();
  }

  /** @param content the response itself, or its decompressed body */
  #receive(response: IncomingMessage, content: Readable, status: number): void {
    this.#state = 'receiving';
    this.#content = content;
    this.#timer.enterIdle(status >= 400 ? REFUSAL_IDLE_MS : 0);
    if (this.#isPaused) this.#timer.pause();
    content.on('data', (chunk: Buffer) => {
      this.#timer.touch();
      if (this.#state === 'receiving') this.#handler.data(chunk);
    });
    content.on('end', () => {
      const message = this.#message;
      // The server has accepted the message before reading all of it, and may still read the rest.
      if (status === 202 && message?.writableFinished === false) message.once('close', () => this.#ended());
      else this.#ended();
    });
    response.on('error', (cause) => this.#fail(this.#cutError(cause)));
    // If both fail, the response fails first, and only the first error is reported.
    if (content !== response) content.on('error', (cause) => this.#fail(this.#unpackError(status, cause)));
    if (this.#isPaused) content.pause();
    this.#handler.response(this.#headOf(response, status, 'not tried'));
  }

  #headOf({ headers }: IncomingMessage, status: number, login: 'not tried' | 'none offered'): ResponseHead {
    const wasAuthorized = this.#authorization !== undefined;
    return { status, headers, url: this.#url, wasAuthorized, offersNoLogin: login === 'none offered' };
  }

  #ended(): void {
    if (this.#state !== 'receiving') return;
    this.#finish();
    stopSending(this.#message);
    this.#handler.end();
  }

  #cutError(cause: unknown): BridgeError {
    const message = `The connection to ${showUrl(this.#url)} broke in the middle of an answer.`;
    return new BridgeError('ERR_UPSTREAM_CLOSED', message, { cause });
  }

  #unpackError(status: number, cause: unknown): BridgeError {
    const message = `${this.#name} sent a compressed answer that cannot be decompressed (${codeOf(cause) ?? 'no code'}).`;
    return new BridgeError('ERR_UPSTREAM_HTTP', message, { cause, data: { status } });
  }

  #follow(url: URL, message: ClientRequest, response: IncomingMessage): void {
    this.#hops += 1;
    this.#url = url;
    discardResponse(message, response);
    this.#state = 'sending';
    this.#attempt();
  }

  /** Handles an attempt that failed without a response. */
  #broke(message: ClientRequest, cause: unknown): void {
    // An attempt can fail to send after its response has arrived; in that case the response counts.
    if (message !== this.#message || this.#state === 'done' || this.#hasResponse) return;
    if (this.#mayRepeat(message, cause)) {
      this.#wasRepeated = true;
      // The agent picked the connection used most recently, so the server has also closed those that were idle for
      // longer.
      this.#host.agents.closeIdle(this.#url);
      this.#state = 'sending';
      return this.#attempt();
    }
    this.#fail(toConnectError(this.#url, cause, this.#host.agents.proxyFor(this.#url)));
  }

  /**
   * A request fails if the server closes its kept-alive connection at the same moment. The bridge cannot tell whether
   * the server has processed the request, so it sends the request again only if a repetition does no harm, or if the
   * first attempt was not sent completely: the server cannot have acted on a part of a message.
   */
  #mayRepeat(message: ClientRequest, cause: unknown): boolean {
    if (this.#wasRepeated || !message.reusedSocket || !STALE_CODES.has(codeOf(cause))) return false;
    return this.#request.isRepeatable || this.#state === 'sending';
  }

  #refuse(status: number, fault: string): void {
    this.#fail(new BridgeError('ERR_UPSTREAM_HTTP', `${this.#name} ${fault}.`, { data: { status } }));
  }

  #fail(error: BridgeError): void {
    if (this.#state === 'done') return;
    this.#finish();
    this.#message?.destroy();
    this.#handler.error(error);
  }

  #finish(): void {
    this.#state = 'done';
    this.#timer.stop();
  }

  get #hasResponse(): boolean {
    return this.#state === 'receiving' || this.#state === 'authorizing';
  }

  get #name(): string {
    return `The server at ${showUrl(this.#url)}`;
  }
}

/** Adds the headers that Node adds by itself only to headers in an object: `Host` and `Content-Length`. */
function completeHead(listed: readonly string[], host: string | undefined, body: Buffer | undefined): string[] {
  const head = [...listed];
  if (host !== undefined) head.push('Host', host);
  if (body !== undefined) head.push('Content-Length', String(body.length));
  return head;
}
