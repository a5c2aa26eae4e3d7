import type { ClientRequest, IncomingMessage } from 'node:http';
import { Socket as NetSocket, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { WebSocket } from 'ws';
import { assertNever, BridgeError } from '../../errors.ts';
import { showUrl } from '../shown-url.ts';
import { LIBRARY_OPTIONS, maxPayloadOf, SUBPROTOCOL } from '../websocket/connection.ts';
import { handshakeUrlOf, webSocketUrlOf } from '../websocket/url.ts';
import { TCP_KEEP_ALIVE_MS } from './agents.ts';
import { discardResponse, holdResponse, PhaseTimer, timeoutError } from './call-limits.ts';
import {
  type CredentialRefusal,
  type CredentialRenewal,
  parseAuthChallenge,
  type RenewalOutcome,
} from './credentials.ts';
import type { HttpExchangeHost, RequestHeaders, ResponseHead } from './http-call.ts';
import { codeOf, toConnectError, toRequestError } from './network-error.ts';
import { judgeRedirect } from './redirects.ts';

/** Limit on the renewals of credentials for one opening handshake, the same as for other requests. */
const MAX_RENEWALS = 3;
/**
 * The default time limit for the answer to a handshake. A handshake calls nothing, so a working server answers at once.
 */
const ANSWER_TIMEOUT_MS = 10_000;
/** After this time, the body of a refusal is used as far as it has arrived. */
const REFUSAL_TIMEOUT_MS = 10_000;

/** A request to open a WebSocket. */
export interface WebSocketRequest extends Pick<RequestHeaders, 'forwarded' | 'cookies'> {
  /** A URL with the scheme ws or wss. */
  readonly url: URL;
  readonly maxMessageBytes: number;
  /**
   * Time limits in milliseconds. A `connectMs` of 0 means no limit; a `firstByteMs` of 0 means the default for a
   * handshake.
   */
  readonly timeouts: { readonly connectMs: number; readonly firstByteMs: number };
}

export interface OpenWebSocket {
  readonly socket: WebSocket;
  readonly stream: Socket;
}

/**
 * Receives the result of opening a WebSocket. One of these methods is called once, unless the opening is aborted, and
 * not before the caller has the object that it can abort.
 */
export interface WebSocketOpener {
  opened(open: OpenWebSocket): void;
  /** The server answered with another response than a WebSocket handshake. */
  refused(head: ResponseHead, body: Buffer): void;
  failed(error: BridgeError): void;
}

/**
 * - `trying`: a handshake is in progress, or the library is being loaded for it.
 * - `authorizing`: waiting for credentials.
 * - `refused`: the body of the answer is being read.
 * - `done`: the opener is not called anymore.
 */
type State = 'trying' | 'authorizing' | 'refused' | 'done';

/** Opens one WebSocket. Redirects and new credentials may require several attempts. */
export class WebSocketOpening {
  readonly #host: HttpExchangeHost;
  readonly #request: WebSocketRequest;
  readonly #opener: WebSocketOpener;
  readonly #renewal: CredentialRenewal | undefined;
  #state: State = 'trying';
  /** The URL of the current attempt; its scheme is http or https. */
  #url: URL;
  #hops = 0;
  #renewals = 0;
  /** True once the handshake was repeated with a nonce that the server had asked for. */
  #hasTakenNonce = false;
  #timer: PhaseTimer;
  #message: ClientRequest | undefined;
  /** The value of `Authorization` in the latest attempt. */
  #authorization: string | undefined;

  constructor(host: HttpExchangeHost, request: WebSocketRequest, opener: WebSocketOpener) {
    this.#host = host;
    this.#request = request;
    this.#opener = opener;
    this.#url = handshakeUrlOf(request.url);
    this.#timer = this.#startTimer();
    this.#renewal = host.renewalOf(request.forwarded);
    const authorizing = this.#renewal?.beforeRequest();
    if (authorizing === undefined) void this.#attempt();
    else this.#attemptAfter(authorizing);
  }

  /** Stops opening the WebSocket. May be called at any time, and more than once. */
  abort(): void {
    this.#finish();
    this.#message?.destroy();
  }

  #startTimer(): PhaseTimer {
    const { connectMs, firstByteMs } = this.#request.timeouts;
    const limits = { connectMs, firstByteMs: firstByteMs || ANSWER_TIMEOUT_MS, idleMs: 0, callMs: 0 };
    return new PhaseTimer(this.#host.clock, limits, (phase, limitMs) => {
      this.#fail(timeoutError(this.#shownUrl, phase, limitMs, this.#host.agents.proxyFor(this.#url)));
    });
  }

  async #attempt(): Promise<void> {
    try {
      const library = await import('ws');
      if (this.#state !== 'trying') return;
      this.#open(library.WebSocket);
    } catch (thrown) {
      // The token cannot be read, the proxy cannot be used or a header cannot be sent.
      this.#fail(thrown instanceof BridgeError ? thrown : toRequestError(thrown));
    }
  }

  #open(Library: typeof WebSocket): void {
    const { forwarded, cookies, maxMessageBytes } = this.#request;
    const headers = this.#host.headersFor(this.#url, { method: 'GET', headers: NO_HEADERS, forwarded, cookies });
    this.#authorization = headers.authorization;
    this.#timer.enter('connect');
    const socket = new Library(this.#url, [SUBPROTOCOL], {
      ...LIBRARY_OPTIONS,
      headers,
      agent: this.#host.agents.tunnelFor(this.#url),
      maxPayload: maxPayloadOf(maxMessageBytes),
      followRedirects: false,
      finishRequest: (message) => {
        this.#message = message;
        message.on('socket', (connection) => this.#watchConnect(message, connection));
        message.end();
      },
    });
    socket.on('unexpected-response', (message, response) => this.#answered(message, response));
    socket.on('upgrade', (response) => this.#switching(socket, response));
    socket.on('error', (cause) => this.#broke(cause));
  }

  #watchConnect(message: ClientRequest, connection: Socket): void {
    connection.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
    const connected = (): void => {
      if (message === this.#message && this.#state === 'trying') this.#timer.enter('first-byte');
    };
    if (connection instanceof TLSSocket) connection.once('secureConnect', connected);
    else if (connection instanceof NetSocket && connection.connecting) connection.once('connect', connected);
    else connected();
  }

  /**
   * Accepts a handshake without a subprotocol. A server that supports no subprotocols selects none, which is allowed
   * [RFC 6455 4.1], but the library rejects it. The event comes just before the library checks the header.
   */
  #switching(socket: WebSocket, response: IncomingMessage): void {
    this.#request.cookies.store(this.#url, response.headers['set-cookie']);
    response.headers['sec-websocket-protocol'] ??= SUBPROTOCOL;
    if (this.#authorization !== undefined) this.#renewal?.accepted(this.#authorization, this.#url, response.headers);
    const stream = response.socket;
    socket.once('open', () => {
      if (this.#state === 'done') return socket.terminate();
      this.#finish();
      socket.removeAllListeners();
      this.#opener.opened({ socket, stream });
    });
  }

  // ---- other answers than a WebSocket

  #answered(message: ClientRequest, response: IncomingMessage): void {
    if (message !== this.#message || this.#state === 'done') return void response.destroy();
    const { statusCode: status = 0, headers } = response;
    this.#request.cookies.store(this.#url, headers['set-cookie']);
    const verdict = judgeRedirect({
      method: 'GET',
      url: this.#url,
      status,
      location: headers.location,
      hops: this.#hops,
    });
    if (verdict.kind === 'follow') {
      this.#hops += 1;
      this.#url = verdict.url;
      discardResponse(message, response);
      return void this.#attempt();
    }
    if (verdict.kind === 'refuse') {
      const fault = `The server at ${showUrl(this.#shownUrl)} answered ${status}: ${verdict.reason}; ${verdict.wayOut}.`;
      return this.#fail(new BridgeError('ERR_UPSTREAM_HTTP', fault, { data: { status } }));
    }
    const renewal = this.#renewal;
    if (renewal !== undefined && this.#isTakingNonce(renewal, message, response, status)) return;
    if (renewal !== undefined && this.#isRenewing(renewal, response, status)) return;
    this.#state = 'refused';
    this.#timer.stop();
    void this.#hold(response).then((body) => this.#refused(response, body, 'not tried'));
  }

  #hold(response: IncomingMessage): Promise<Buffer> {
    const cancel = this.#host.clock.after(REFUSAL_TIMEOUT_MS, () => response.destroy());
    return holdResponse(response).finally(cancel);
  }

  #refused(response: IncomingMessage, body: Buffer, login: 'not tried' | 'none offered'): void {
    if (this.#state !== 'refused') return;
    const { statusCode: status = 0, headers } = response;
    const wasAuthorized = this.#authorization !== undefined;
    const offersNoLogin = login === 'none offered';
    this.#finish();
    this.#message?.destroy();
    this.#opener.refused({ status, headers, url: this.#shownUrl, wasAuthorized, offersNoLogin }, body);
  }

  /**
   * Repeats the handshake with the nonce of the refusal. [RFC 9449 9] The time limits keep running, because the
   * handshake does not wait for a user.
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
    void this.#attempt();
    return true;
  }

  #isRenewing(renewal: CredentialRenewal, response: IncomingMessage, status: number): boolean {
    if ((status !== 401 && status !== 403) || this.#renewals >= MAX_RENEWALS) return false;
    const renewing = renewal.refused(this.#refusalOf(response, status));
    if (renewing === undefined) return false;
    this.#renewals += 1;
    this.#state = 'authorizing';
    this.#timer.stop();
    const body = this.#hold(response);
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
        this.#message?.destroy();
        return this.#attemptAnew();
      case 'refused':
        this.#state = 'refused';
        return void body.then((bytes) => this.#refused(response, bytes, 'none offered'));
      case 'failed':
        return this.#fail(outcome.error);
      default:
        return assertNever(outcome);
    }
  }

  #attemptAfter(authorizing: Promise<void>): void {
    this.#state = 'authorizing';
    this.#timer.stop();
    void authorizing.then(() => {
      if (this.#state === 'authorizing') this.#attemptAnew();
    });
  }

  #attemptAnew(): void {
    this.#state = 'trying';
    this.#timer = this.#startTimer();
    void this.#attempt();
  }

  // ---- no answer

  #broke(cause: unknown): void {
    // An attempt that was abandoned for another one ends with an error as well.
    if (this.#state !== 'trying') return;
    const isOfNetwork = codeOf(cause) !== undefined;
    if (isOfNetwork) return this.#fail(toConnectError(this.#shownUrl, cause, this.#host.agents.proxyFor(this.#url)));
    const message = `The server at ${showUrl(this.#shownUrl)} did not complete the WebSocket handshake as it has to. Check that its URL leads to a WebSocket endpoint, and that no proxy on the way changes the answer.`;
    this.#fail(new BridgeError('ERR_UPSTREAM_PROTOCOL', message, { cause }));
  }

  #fail(error: BridgeError): void {
    if (this.#state === 'done') return;
    this.#finish();
    this.#message?.destroy();
    this.#opener.failed(error);
  }

  #finish(): void {
    this.#state = 'done';
    this.#timer.stop();
  }

  /** The current URL with the scheme ws or wss, as the user writes it. */
  get #shownUrl(): URL {
    return webSocketUrlOf(this.#url);
  }
}

const NO_HEADERS: Readonly<Record<string, string>> = {};
