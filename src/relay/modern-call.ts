import type { Logger } from 'pino';
import { BridgeError } from '../errors.ts';
import { findProgressToken } from '../mcp/classify/correlators.ts';
import type { RequestMetadata } from '../mcp/classify/request-metadata.ts';
import { LISTEN } from '../mcp/vocabulary/methods.ts';
import type { Frame, JsonRpcId } from '../wire/frame.ts';
import { Call, type Lane } from './call.ts';
import type { CallOwner, Calls, CallTimes } from './calls.ts';
import { modernIntroductionOf } from './client-presence.ts';
import type { ClientIntroduction, ObservedClient, Transport } from './observer.ts';

/** The client's side of one call, such as the response of its POST. Implemented in downstream/streamable-stateless/. */
export interface CallPeer extends Lane {
  /** Told of everything that happens on the client's side. Assigned once, before the first message. */
  listener: CallListener;
  /**
   * Sends a message to the client; a response is the last one. Returns false if the client is full; `clientDrained`
   * follows.
   */
  send(frame: Frame): boolean;
  /**
   * Called if the server has not taken the request yet. Exactly one `resume` follows, at the latest when the call is
   * over.
   */
  pause(): void;
  resume(): void;
}

/** Called by a downstream transport with everything that happens on the client's side of a call. */
export interface CallListener {
  clientDrained(): void;
  /** Called when the client has disconnected and expects no answer. */
  clientLeft(): void;
}

/** A server as modern requests see it, each of which is a call of its own. */
export interface CallServer {
  /**
   * Takes a call with its request, and sets `servedBy`. The server answers with `fromServer` or `fail`, perhaps at
   * once. Returns false if the server is full; `serverDrained` of the call follows, unless the call ends before.
   */
  take(call: ModernCall, request: Frame, metadata: RequestMetadata): boolean;
}

/** The part of a server that works on a call. */
export interface CallHandler {
  /**
   * Called when the call has ended without an answer of the server, which may stop working on it. `wordsOf` has the
   * reason for the server.
   */
  withdraw(call: ModernCall, reason: BridgeError): void;
  /** Called when the client does not keep up. A server that other clients share need not be stopped. */
  pause(call: ModernCall): void;
  resume(call: ModernCall): void;
}

/** Handles a call that no server has taken yet. */
const NOBODY: CallHandler = { withdraw() {}, pause() {}, resume() {} };

/** The caller of a call, and the transport that brought it. */
export interface CallOrigin {
  readonly principal: string;
  /** Variables that describe the caller to the server's process. */
  readonly environment: Readonly<Record<string, string>> | undefined;
  readonly transport: Transport;
  /** Description of a legacy client for observers. Undefined for a modern client, whose request describes it. */
  readonly introduction?: ClientIntroduction | undefined;
  /**
   * Stands for the client where its connection proves that several calls are of one. Undefined: nothing proves it, as over
   * HTTP, where proxies pass the calls of several clients over one connection.
   */
  readonly identity?: object | undefined;
}

/** Describes the caller to observers. */
export function describeCaller(
  { principal, transport, introduction }: CallOrigin,
  request: Frame,
  server: string,
): ObservedClient {
  return { transport, principal, server, ...(introduction ?? modernIntroductionOf(request)) };
}

/** All calls of the bridge, as one of them sees them. */
export interface CallHost {
  readonly calls: Calls;
  readonly log: Logger;
  /** Called once, when the call has ended. */
  ended(call: ModernCall): void;
}

/**
 * A modern request that comes alone, as over HTTP, from its arrival to its answer. The request is answered exactly once,
 * or withdrawn. A call has no timer, no table and no log of its own.
 */
export class ModernCall extends Call implements CallListener, CallOwner, CallOrigin {
  declare readonly lane: CallPeer;
  readonly principal: string;
  readonly environment: CallOrigin['environment'];
  readonly transport: Transport;
  readonly introduction: ClientIntroduction | undefined;
  readonly identity: object | undefined;
  readonly #host: CallHost;
  /** Set by the server that takes the call, and anew when the call passes on to another part of it. */
  servedBy: CallHandler = NOBODY;

  constructor(host: CallHost, origin: CallOrigin, request: Frame, lane: CallPeer) {
    const { id, method, bytes } = request;
    const token = findProgressToken(request)?.value;
    super(id as JsonRpcId, method as string, lane, token, host.calls.clock.now());
    this.requestBytes = bytes.length;
    this.#host = host;
    this.principal = origin.principal;
    this.environment = origin.environment;
    this.transport = origin.transport;
    this.introduction = origin.introduction;
    this.identity = origin.identity;
  }

  get isOpen(): boolean {
    return this.state.kind === 'open';
  }

  /** True for a subscription, which stays open until one side ends it, even in long silence. */
  get isSubscription(): boolean {
    return this.method === LISTEN;
  }

  get log(): Logger {
    return this.#host.log;
  }

  /** Gives the request to the server. Called once. */
  start(request: Frame, metadata: RequestMetadata, server: CallServer): void {
    const { calls } = this.#host;
    const sent = calls.open(this, this, request);
    if (sent.kind === 'error') return this.fromServer(sent);
    if (!server.take(this, sent, metadata) && this.isOpen) this.lane.pause();
  }

  // ---- from the client

  clientDrained(): void {
    if (this.isOpen) this.servedBy.resume(this);
  }

  /** A disconnect is the cancellation of the request. [spec 2026-07-28 transports/streamable-http#cancellation] */
  clientLeft(): void {
    if (!this.isOpen) return;
    this.#host.calls.cancel(this, this);
    this.servedBy.withdraw(this, CLIENT_LEFT);
    this.lane.resume();
  }

  // ---- from the server

  /** Called by the server with the answer to the request, or with a notification about it. */
  fromServer(frame: Frame): void {
    if (!this.isOpen) return;
    const { calls } = this.#host;
    if (frame.isResponse) return this.#answer(calls.answer(this, this, frame));
    calls.heard(this);
    const told = calls.notification(frame);
    this.sentBytes += told.bytes.length;
    if (!this.lane.send(told)) this.servedBy.pause(this);
  }

  /** Called by the server if it will not answer. */
  fail(error: BridgeError): void {
    if (this.isOpen) this.#answer(this.#host.calls.fail(this, this, error));
  }

  serverDrained(): void {
    if (this.isOpen) this.lane.resume();
  }

  /** Called when the call has ended. */
  #answer(answer: Frame): void {
    this.lane.send(answer);
    this.lane.resume();
  }

  // ---- time and end

  /** Fails the call if it has been silent, or open, for too long. */
  sweep(nowMs: number, times: CallTimes): void {
    if (!this.isOpen) return;
    const timedOut = this.#host.calls.timeOut(this, this, nowMs, times);
    if (timedOut === undefined) return;
    this.log.info({ code: timedOut.error.code }, timedOut.error.message);
    this.servedBy.withdraw(this, timedOut.error);
    this.#answer(timedOut.answer);
  }

  /** Answers with the reason, because the bridge ends. */
  close(reason: BridgeError): void {
    if (!this.isOpen) return;
    const { calls } = this.#host;
    this.#answer(this.isSubscription ? calls.endSubscription(this, this) : calls.fail(this, this, reason));
    this.servedBy.withdraw(this, reason);
  }

  // ---- as the owner of the call

  ended(): void {
    this.#host.ended(this);
  }

  describe(request: Frame): ObservedClient {
    return describeCaller(this, request, this.#host.calls.server);
  }
}

/** Tells a server why it need not go on with a call that has ended. */
export function wordsOf({ state }: ModernCall): string {
  return state.kind === 'cancelled' && state.by === 'timeout' ? 'timed out' : 'the client left';
}

const CLIENT_LEFT = new BridgeError('ERR_SESSION_CLOSED', 'The client left before its call was answered.');
