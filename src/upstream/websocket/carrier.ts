import type { Logger } from 'pino';
import { ByteQueue, frameBytes } from '../../collections/bounded-collections.ts';
import { assertNever, BridgeError, SHUTTING_DOWN } from '../../errors.ts';
import type { ResponseHead } from '../../http/client/http-call.ts';
import type { OpenWebSocket, WebSocketOpener, WebSocketOpening } from '../../http/client/open-websocket.ts';
import { showUrl } from '../../http/shown-url.ts';
import { CLOSE_CODES } from '../../http/websocket/close-codes.ts';
import {
  type ConnectionEnd,
  MAX_MISSED_PINGS,
  PING_MS,
  WebSocketConnection,
  type WebSocketListener,
} from '../../http/websocket/connection.ts';
import { CANCELED } from '../../mcp/vocabulary/methods.ts';
import type { Call, ClientMessage } from '../../relay/call.ts';
import type { Frame } from '../../wire/frame.ts';
import { EnvelopeScanner } from '../../wire/scan-envelope.ts';
import type { Carrier, CarrierListener } from '../duplex/carrier.ts';
import { readRefusal } from '../remote/refusal.ts';
import type { RemoteLinkOptions } from '../remote/remote-connector.ts';
import { takeMessages } from '../server-messages.ts';

/** Limits of messages that wait for the connection. Clients send little before their first response. */
const WAITING_LIMITS = { maxItems: 1024, maxBytes: 1024 * 1024 };

/** Time for the close frame to be sent at the end. */
const LAST_WORDS_MS = 1000;

export interface WebSocketCarrierOptions extends Omit<RemoteLinkOptions, 'listener'> {
  /** Interval of pings, or undefined for the default of all WebSockets. */
  readonly pingMs: number | undefined;
}

/**
 * - `fresh`: nothing has been sent, and there is no connection. The handshake waits for the first message, because it
 *   carries the headers of that message's client.
 * - `opening`: the handshake is under way; messages wait.
 * - `open`: messages are exchanged.
 * - `closed`: the connection has closed the carrier, or has been told of the end.
 */
type CarrierState =
  | { readonly kind: 'fresh' }
  | { readonly kind: 'opening'; readonly opening: WebSocketOpening }
  | { readonly kind: 'open'; readonly connection: WebSocketConnection }
  | { readonly kind: 'closed' };

/** A WebSocket to a server. It cannot be resumed: when it breaks, its session is lost. */
export class WebSocketCarrier implements Carrier, WebSocketOpener, WebSocketListener {
  readonly process = undefined;
  readonly #options: WebSocketCarrierOptions;
  readonly #listener: CarrierListener;
  readonly #log: Logger;
  readonly #name: string;
  readonly #waiting = new ByteQueue<ClientMessage>(WAITING_LIMITS, frameBytes);
  readonly #scanner = new EnvelopeScanner();
  #isPaused = false;
  /** True after the first message that could not be read, so that the log warns of it only once per connection. */
  #hasWarned = false;
  /** True if `send` has returned false before the connection was open, so that `drained` is due. */
  #owesDrain = false;
  #state: CarrierState = { kind: 'fresh' };

  constructor(options: WebSocketCarrierOptions, listener: CarrierListener) {
    this.#options = options;
    this.#listener = listener;
    const { url, log } = options.environment;
    this.#log = log;
    this.#name = `The server at ${showUrl(url)}`;
  }

  // ---- from the connection

  get isFull(): boolean {
    return this.#state.kind === 'open' ? this.#state.connection.isFull : this.#waiting.isFull;
  }

  send(frame: Frame, call: Call | undefined): boolean {
    const state = this.#state;
    switch (state.kind) {
      case 'closed':
        return true;
      case 'open':
        return state.connection.send(frame.bytes);
      case 'fresh':
        this.#options.environment.caller.note(frame, call);
        this.#state = { kind: 'opening', opening: this.#open() };
        return this.#wait(frame, call);
      case 'opening':
        return this.#wait(frame, call);
      default:
        return assertNever(state);
    }
  }

  #open(): WebSocketOpening {
    const { http, url, cookies, caller, timeouts, maxMessageBytes } = this.#options.environment;
    return http.openWebSocket({ url, cookies, forwarded: caller.latest, timeouts, maxMessageBytes }, this);
  }

  /**
   * Queues a message. A cancellation whose request is still in the queue removes that request instead of being sent.
   */
  #wait(frame: Frame, call: Call | undefined): boolean {
    const isWithdrawal = frame.method === CANCELED && call !== undefined;
    if (isWithdrawal && this.#waiting.removeFirst((other) => other.call === call) !== undefined) return true;
    this.#waiting.add({ frame, call });
    if (!this.#waiting.isFull) return true;
    this.#owesDrain = true;
    return false;
  }

  pause(): void {
    this.#isPaused = true;
    if (this.#state.kind === 'open') this.#state.connection.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#state.kind === 'open') this.#state.connection.resume();
  }

  close(reason: BridgeError): void {
    const code = reason === SHUTTING_DOWN ? CLOSE_CODES.goingAway : CLOSE_CODES.normal;
    this.#log.debug({ code: reason.code }, 'link closed, ending the connection');
    this.#leave(code);
  }

  // ---- the handshake

  opened({ socket, stream }: OpenWebSocket): void {
    const { environment, pingMs = PING_MS, reachable } = this.#options;
    const connection = new WebSocketConnection({ socket, stream, clock: environment.http.clock, pingMs }, this);
    this.#state = { kind: 'open', connection };
    reachable(undefined);
    this.#log.debug({ subprotocol: socket.protocol }, 'WebSocket open');
    if (this.#isPaused) connection.pause();
    let hasCapacity = true;
    for (const { frame } of this.#waiting.takeAll()) hasCapacity = connection.send(frame.bytes);
    if (!this.#owesDrain || !hasCapacity) return;
    this.#owesDrain = false;
    this.#listener.drained();
  }

  refused(head: ResponseHead, body: Buffer): void {
    const { error } = readRefusal(this.#options.environment.url, head, body);
    const isAnswered = head.status >= 200 && head.status < 300;
    this.#lost(isAnswered || head.status === 404 || head.status === 405 ? noWebSocket(error, head.status) : error);
  }

  failed(error: BridgeError): void {
    this.#lost(error);
  }

  // ---- from the server

  message(bytes: Buffer): void {
    if (takeMessages(bytes, this.#scanner, (frame) => this.#listener.received(frame))) return;
    const level = this.#hasWarned ? 'debug' : 'warn';
    this.#hasWarned = true;
    this.#log[level](`${this.#name} sent something that is not a message; skipping it`);
  }

  drained(): void {
    this.#listener.drained();
  }

  ended(end: ConnectionEnd): void {
    const error = this.#errorOf(end);
    this.#log.warn({ code: error.code }, error.message);
    this.#tell(error);
  }

  #errorOf(end: ConnectionEnd): BridgeError {
    const { maxMessageBytes } = this.#options.environment;
    switch (end.kind) {
      case 'closed': {
        const code =
          end.code === CLOSE_CODES.noStatus ? '' : ` (${end.code}${end.reason === '' ? '' : `: ${end.reason}`})`;
        return new BridgeError('ERR_UPSTREAM_CLOSED', `${this.#name} closed the connection${code}.`, {
          data: { closeCode: end.code },
        });
      }
      case 'refused': {
        if (end.code !== CLOSE_CODES.tooBig) {
          const message = `${this.#name} sent ${end.problem}; the connection was closed (${end.code}).`;
          return new BridgeError('ERR_UPSTREAM_PROTOCOL', message);
        }
        const message = `${this.#name} sent a message of more than the ${maxMessageBytes} bytes allowed, which ends a WebSocket; raise --max-message-bytes or let the server send less.`;
        return new BridgeError('ERR_UPSTREAM_TOO_LARGE', message);
      }
      case 'silent': {
        const message = `${this.#name} did not answer ${MAX_MISSED_PINGS} pings in a row; its connection was given up.`;
        return new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'ping' } });
      }
      case 'stalled': {
        const message = `${this.#name} took nothing of what was sent to it for ${end.forMs} ms; its connection was given up.`;
        return new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'turn', timeoutMs: end.forMs } });
      }
      case 'lost':
      case 'cut':
        return new BridgeError('ERR_UPSTREAM_CLOSED', `The connection to ${this.#shownUrl} broke.`);
      default:
        return assertNever(end);
    }
  }

  get #shownUrl(): string {
    return showUrl(this.#options.environment.url);
  }

  /**
   * Reports that the connection could not be opened. The error is not logged here, since the client that wanted the
   * connection gets it.
   */
  #lost(error: BridgeError): void {
    // A server that wants a login of this client was reached, and may serve others.
    this.#options.reachable(error.code === 'ERR_UPSTREAM_AUTH' ? undefined : error);
    this.#tell(error);
  }

  #tell(error: BridgeError): void {
    this.#leave(CLOSE_CODES.normal);
    this.#listener.ended(error);
  }

  #leave(code: number): void {
    const state = this.#state;
    if (state.kind === 'closed') return;
    const connection = state.kind === 'open' ? state.connection : undefined;
    this.#state = { kind: 'closed' };
    if (state.kind === 'opening') state.opening.abort();
    connection?.close(code, '');
    this.#waiting.takeAll();
    this.#options.left(connection && this.#flush(connection));
  }

  /** Resolves when all sent messages and the close frame have been written, or after LAST_WORDS_MS. */
  #flush(connection: WebSocketConnection): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.environment.http.clock.after(LAST_WORDS_MS, resolve);
      void connection.flush().then(() => {
        cancel();
        resolve();
      });
    });
  }
}

/** Extends an error with a hint for a server that responded over HTTP as if no WebSocket had been requested. */
function noWebSocket({ code, message, data }: BridgeError, status: number): BridgeError {
  const words = message.replace(/\.$/, '');
  const wayOut = 'Check that the URL leads to its WebSocket endpoint; if it speaks Streamable HTTP, use http or https';
  return new BridgeError(code, `${words}, and no WebSocket. ${wayOut}.`, { data: { ...data, status } });
}
