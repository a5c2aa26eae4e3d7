import { type ClientHttp2Session, type ClientHttp2Stream, constants, type IncomingHttpHeaders } from 'node:http2';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { assertNever, BridgeError, OWN_SERVER } from '../../errors.ts';
import { decodeLine, encodeLine, MAX_ENVELOPE_BYTES } from '../../grpc/json-rpc-line.ts';
import { MessageSplitter, type SplitFault } from '../../grpc/message-splitter.ts';
import { MessageWriter } from '../../grpc/message-writer.ts';
import { CONTENT_TYPE, ENCODING, isGrpc, SESSION_PATH } from '../../grpc/session-service.ts';
import { type GrpcStatus, readStatus, STATUS, statusOfHttp } from '../../grpc/status.ts';
import { toRequestError } from '../../http/client/network-error.ts';
import type { Call, Lane } from '../../relay/call.ts';
import type { Frame } from '../../wire/frame.ts';
import { EnvelopeScanner } from '../../wire/scan-envelope.ts';
import type { Carrier, CarrierListener } from '../duplex/carrier.ts';
import { takeMessages } from '../server-messages.ts';
import {
  breakError,
  connectError,
  connectTimeout,
  type EndContext,
  noGrpcError,
  noHttp2Error,
  protocolError,
  silenceError,
  statusError,
  tooLargeError,
} from './end-error.ts';

/** Time that a server has to end the session after our half of it has ended. */
export const CLOSE_GRACE_MS = 1000;
/** Pings without an answer after which the server counts as gone. */
const MAX_MISSED_PINGS = 2;

export interface GrpcCarrierOptions {
  /** The server's address, as it may be shown. */
  readonly name: string;
  /** Begins to connect. Called with the first message. */
  readonly connect: () => ClientHttp2Session;
  /**
   * Returns the metadata of the stream, for the client with these headers. Throws BridgeError ERR_UPSTREAM_AUTH if a
   * token cannot be read.
   */
  readonly metadataFor: (forwarded: Lane['headers']) => Readonly<Record<string, string>>;
  /** Returns true if the connection leads to an address at which this process itself listens. */
  readonly isOwn: (socket: Socket) => boolean;
  /** Time limit for connecting, until the server's first settings; 0 means no limit. */
  readonly connectTimeoutMs: number;
  /** Silence after which the connection is pinged; 0: never. */
  readonly keepAliveMs: number;
  readonly maxMessageBytes: number;
  readonly failureLevel: 'warn' | 'debug';
  /** Called with undefined when the server was reached, otherwise with the reason. */
  readonly reachable: (error: BridgeError | undefined) => void;
  /** Called once, when nothing is left of the connection. */
  readonly gone: () => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** An HTTP/2 connection with the one stream that is the session. */
interface Opened {
  readonly session: ClientHttp2Session;
  readonly stream: ClientHttp2Stream;
  readonly writer: MessageWriter;
}

/**
 * - `fresh`: nothing has been sent, and there is no connection. It waits for the first message, because the metadata of
 *   the stream may be headers of that message's client.
 * - `connecting`: the server has not shown yet that it speaks HTTP/2. Messages wait in the stream.
 * - `open`: messages are exchanged.
 * - `closed`: the connection has closed the carrier, or has been told of the end.
 */
type CarrierState =
  | { readonly kind: 'fresh' }
  | ({ readonly kind: 'connecting' | 'open' } & Opened)
  | { readonly kind: 'closed' };

/** One stream of gRPC to a server. Its connection carries no other, so that no session waits for another one. */
export class GrpcCarrier implements Carrier {
  readonly process = undefined;
  readonly #options: GrpcCarrierOptions;
  readonly #listener: CarrierListener;
  readonly #scanner = new EnvelopeScanner();
  readonly #splitter: MessageSplitter;
  #state: CarrierState = { kind: 'fresh' };
  #isPaused = false;
  /** True once TCP and TLS are complete. */
  #isConnected = false;
  #hasServed = false;
  #wasAuthorized = false;
  /** True after the first message that could not be read, so that the log warns of it only once per connection. */
  #hasWarned = false;
  #status: GrpcStatus | undefined;
  #cause: unknown;
  #cancelTimer = (): void => {};
  #stopPings = (): void => {};
  #bytesSeen = 0;
  #missedPings = 0;

  constructor(options: GrpcCarrierOptions, listener: CarrierListener) {
    this.#options = options;
    this.#listener = listener;
    this.#splitter = new MessageSplitter({
      maxMessageBytes: options.maxMessageBytes + MAX_ENVELOPE_BYTES,
      message: (bytes) => this.#message(bytes),
      fault: (fault) => this.#unreadable(fault),
    });
  }

  // ---- from the connection

  get isFull(): boolean {
    const state = this.#state;
    return state.kind === 'connecting' || state.kind === 'open' ? state.writer.isFull : false;
  }

  send({ bytes }: Frame, call: Call | undefined): boolean {
    const state = this.#state;
    switch (state.kind) {
      case 'closed':
        return true;
      case 'fresh':
        return this.#open(call)?.writer.send(encodeLine(bytes)) ?? true;
      case 'connecting':
      case 'open':
        return state.writer.send(encodeLine(bytes));
      default:
        return assertNever(state);
    }
  }

  pause(): void {
    this.#isPaused = true;
    const state = this.#state;
    if (state.kind === 'connecting' || state.kind === 'open') state.stream.pause();
  }

  resume(): void {
    this.#isPaused = false;
    const state = this.#state;
    if (state.kind === 'connecting' || state.kind === 'open') state.stream.resume();
  }

  close(reason: BridgeError): void {
    const state = this.#state;
    this.#options.log.debug({ address: this.#options.name, code: reason.code }, 'link closed, ending the session');
    this.#leave();
    if (state.kind === 'fresh') this.#options.gone();
    else if (state.kind === 'open') this.#letGo(state);
    else if (state.kind === 'connecting') state.session.destroy();
  }

  /** Destroys the connection at once. Unsent messages are lost. */
  destroy(): void {
    const state = this.#state;
    this.#leave();
    if (state.kind === 'connecting' || state.kind === 'open') state.session.destroy();
  }

  // ---- opening

  #open(call: Call | undefined): Opened | undefined {
    const { connectTimeoutMs, clock, gone } = this.#options;
    let opened: Opened;
    try {
      opened = this.#request(this.#options.metadataFor(call?.lane.headers));
    } catch (thrown) {
      // The connection does not expect its end while it sends.
      queueMicrotask(() => {
        this.#failed(thrown instanceof BridgeError ? thrown : toRequestError(thrown));
        gone();
      });
      return undefined;
    }
    this.#state = { kind: 'connecting', ...opened };
    this.#watch(opened);
    if (this.#isPaused) opened.stream.pause();
    if (connectTimeoutMs > 0) this.#cancelTimer = clock.after(connectTimeoutMs, () => this.#tooLate(connectTimeoutMs));
    return opened;
  }

  /** Throws what Node throws for metadata that cannot be sent. */
  #request(metadata: Readonly<Record<string, string>>): Opened {
    this.#wasAuthorized = metadata.authorization !== undefined;
    const session = this.#options.connect();
    try {
      const stream = session.request({
        [constants.HTTP2_HEADER_METHOD]: 'POST',
        [constants.HTTP2_HEADER_PATH]: SESSION_PATH,
        ...metadata,
        [constants.HTTP2_HEADER_CONTENT_TYPE]: CONTENT_TYPE,
        [constants.HTTP2_HEADER_TE]: 'trailers',
        'grpc-accept-encoding': ENCODING,
      });
      return { session, stream, writer: new MessageWriter(stream, () => this.#listener.drained()) };
    } catch (thrown) {
      session.on('error', () => {});
      session.destroy();
      throw thrown;
    }
  }

  #watch({ session, stream }: Opened): void {
    session.on('connect', (_session, socket) => this.#connected(socket as Socket));
    session.once('remoteSettings', () => this.#reached());
    session.on('error', (error) => {
      this.#cause ??= error;
    });
    session.on('close', () => {
      this.#ended();
      this.#cancelTimer();
      this.#options.gone();
    });
    stream.on('response', (headers) => this.#answered(headers));
    stream.on('trailers', (trailers) => {
      this.#status ??= readStatus(trailers);
    });
    // The stream is told of a failed connection first, by an error that names the other one as its cause.
    stream.on('error', (error) => {
      this.#cause ??= error.cause ?? error;
    });
    stream.on('data', (chunk: Buffer) => {
      if (this.#state.kind !== 'closed') this.#splitter.push(chunk);
    });
    // A server that ends its half has ended the session. Node would wait for the end of ours before it closes the stream.
    stream.on('end', () => {
      this.#ended();
      if (!stream.closed && !stream.writableEnded) stream.close(constants.NGHTTP2_CANCEL);
    });
    stream.on('close', () => {
      this.#ended();
      session.close();
      // A server that keeps the connection open would otherwise keep its socket.
      this.#cancelTimer();
      this.#cancelTimer = this.#options.clock.after(CLOSE_GRACE_MS, () => session.destroy());
    });
  }

  #connected(socket: Socket): void {
    this.#isConnected = true;
    if (this.#options.isOwn(socket)) return this.#giveUp(OWN_SERVER);
    if (socket instanceof TLSSocket && socket.alpnProtocol !== 'h2') this.#giveUp(noHttp2Error(this.#options.name));
  }

  #reached(): void {
    const state = this.#state;
    if (state.kind !== 'connecting') return;
    const { name, keepAliveMs, reachable, clock, log } = this.#options;
    this.#cancelTimer();
    const { session, stream, writer } = state;
    this.#state = { kind: 'open', session, stream, writer };
    log.debug({ address: name }, 'connected');
    reachable(undefined);
    if (keepAliveMs > 0) this.#stopPings = clock.every(keepAliveMs, () => this.#checkLife(session));
  }

  #tooLate(timeoutMs: number): void {
    this.#giveUp(connectTimeout(this.#options.name, timeoutMs));
  }

  // ---- from the server

  #answered(headers: IncomingHttpHeaders): void {
    const { name } = this.#options;
    // A response without messages has its status in the headers.
    this.#status ??= readStatus(headers);
    if (this.#status !== undefined || this.#state.kind === 'closed') return;
    const httpStatus = Number(headers[':status']);
    if (httpStatus === 200 && isGrpc(headers['content-type'])) return;
    const code = statusOfHttp(httpStatus);
    const isAboutCaller = code === STATUS.unauthenticated || code === STATUS.permissionDenied;
    this.#giveUp(isAboutCaller ? statusError({ code, message: '' }, this.#context) : noGrpcError(name, httpStatus));
  }

  #message(bytes: Buffer): void {
    const { name, maxMessageBytes, log } = this.#options;
    if (this.#state.kind === 'closed') return;
    const line = decodeLine(bytes);
    if (line === undefined) return this.#giveUp(protocolError(name, 'something that is no JsonRpcLine'));
    if (line.length > maxMessageBytes) return this.#giveUp(tooLargeError(name, maxMessageBytes));
    if (takeMessages(line, this.#scanner, (frame) => this.#received(frame))) return;
    log[this.#hasWarned ? 'debug' : 'warn'](`The server at ${name} sent something that is not a message; skipping it`);
    this.#hasWarned = true;
  }

  #received(frame: Frame): void {
    if (frame.isResponse) this.#hasServed = true;
    this.#listener.received(frame);
  }

  #unreadable(fault: SplitFault): void {
    const { name, maxMessageBytes } = this.#options;
    switch (fault) {
      case 'too-large':
        return this.#giveUp(tooLargeError(name, maxMessageBytes));
      case 'compressed':
        return this.#giveUp(protocolError(name, 'a compressed message, though only identity is accepted'));
      case 'invalid':
        return this.#giveUp(protocolError(name, 'something that gRPC does not allow'));
      default:
        return assertNever(fault);
    }
  }

  // ---- life

  /** Anything that arrives is a sign of life. Pings are answered below the stream, also while it is paused. */
  #checkLife(session: ClientHttp2Session): void {
    const bytesRead = session.destroyed ? 0 : (session.socket.bytesRead ?? 0);
    if (bytesRead !== this.#bytesSeen) {
      this.#bytesSeen = bytesRead;
      this.#missedPings = 0;
      return;
    }
    if (this.#missedPings >= MAX_MISSED_PINGS) {
      return this.#giveUp(silenceError(this.#options.name, MAX_MISSED_PINGS));
    }
    this.#missedPings += 1;
    session.ping(() => {});
  }

  // ---- the end

  get #context(): EndContext {
    return { name: this.#options.name, hasServed: this.#hasServed, wasAuthorized: this.#wasAuthorized };
  }

  /** Called when the stream or the connection has ended. */
  #ended(): void {
    const state = this.#state;
    if (state.kind === 'closed' || state.kind === 'fresh') return;
    const { name } = this.#options;
    if (this.#status !== undefined) return this.#failed(statusError(this.#status, this.#context));
    if (state.kind === 'connecting') return this.#failed(connectError(name, this.#cause, this.#isConnected));
    // A connection that is closed aborts its streams, wherever the server is in a message.
    if (this.#splitter.isWithinMessage && this.#cause === undefined && !state.stream.aborted) {
      return this.#failed(protocolError(name, 'only the beginning of a message'));
    }
    this.#failed(breakError(this.#cause, this.#context));
  }

  /** Reports the end, and cancels the stream at the server. */
  #giveUp(error: BridgeError): void {
    const state = this.#state;
    if (state.kind !== 'connecting' && state.kind !== 'open') return;
    this.#failed(error);
    if (state.kind === 'connecting') state.session.destroy();
    else state.stream.close(constants.NGHTTP2_CANCEL);
  }

  #failed(error: BridgeError): void {
    const { name, failureLevel, reachable, log } = this.#options;
    const isOpening = this.#state.kind !== 'open' || error.code === 'ERR_UPSTREAM_CONNECT';
    if (this.#state.kind === 'closed') return;
    log[failureLevel]({ address: name, code: error.code }, error.message);
    // A server that wants another token was reached, and may serve others.
    if (isOpening) reachable(error.code === 'ERR_UPSTREAM_AUTH' ? undefined : error);
    this.#leave();
    this.#listener.ended(error);
  }

  #leave(): void {
    this.#state = { kind: 'closed' };
    this.#cancelTimer();
    this.#stopPings();
  }

  /**
   * Ends our half of the stream, after pending messages. Received data is still read, because otherwise the server's end
   * would not be noticed.
   */
  #letGo({ stream, writer }: Opened): void {
    void writer.flush().then(() => stream.end());
    stream.resume();
    this.#cancelTimer = this.#options.clock.after(CLOSE_GRACE_MS, () => stream.close(constants.NGHTTP2_CANCEL));
  }
}
