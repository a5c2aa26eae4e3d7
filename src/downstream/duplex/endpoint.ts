import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { TOO_MANY_ARRIVE } from '../../http/server/read-body.ts';
import { findCanceledId } from '../../mcp/classify/correlators.ts';
import { claimsModern, routeEra } from '../../mcp/classify/route-era.ts';
import { CANCELED, INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Call } from '../../relay/call.ts';
import { drained } from '../../relay/calls.ts';
import type { SessionRegistry } from '../../relay/sessions/session-registry.ts';
import { Frame, type JsonRpcId } from '../../wire/frame.ts';
import { OPEN_BRACE, OPEN_BRACKET } from '../../wire/json/ascii.ts';
import type { OversizedLine } from '../../wire/ndjson.ts';
import { type ReadLimits, type ReadResult, readMessage } from '../../wire/read-message.ts';
import { recoverEnvelope } from '../../wire/scan-envelope.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { type BatchItem, refusalOfBatch } from '../batch.ts';
import { CLIENT_LIMITS } from '../http/read-post.ts';
import { Complaints } from './complaints.ts';
import { type ConnectionClient, SharedInput } from './connection-peer.ts';
import { LegacyConversation, ModernConversation } from './conversations.ts';
import type { ConnectionListener, MessageConnection, OpenConnection } from './message-connection.ts';

export interface DuplexEndpointOptions {
  readonly openConnection: OpenConnection;
  readonly client: ConnectionClient;
  /** The registry may be shared with other transports. */
  readonly sessions: SessionRegistry;
  readonly maxMessageBytes: number;
  /** Levels of arrays and objects. */
  readonly maxJsonDepth: number;
  /**
   * A client that leaves more than this unread, beside the largest message that it was sent, is disconnected: its
   * server may be shared, and a shared server is not paused for one client.
   */
  readonly maxWaitingBytes: number;
  /** The largest message that may be sent to the client, its line break included; default: any size. */
  readonly maxSentBytes?: number | undefined;
  /**
   * Handling of input that is not JSON. `is-skipped`: it is dropped, as with a program that prints to the wrong stream.
   * `ends-connection`: over the network it may come from a web page that has a browser send it, and the next line could
   * then be a message.
   */
  readonly unreadable: 'is-skipped' | 'ends-connection';
  /** After the end of input, how long a server may take nothing of what waits for it; default 0: no limit. */
  readonly untakenTimeoutMs?: number;
  /** While the client is paused, how long a server may take nothing of what waits for it; default 0: no limit. */
  readonly heldTimeoutMs?: number;
  readonly deps: Deps;
}

/**
 * Reason why nothing more is taken from a client.
 * - `input`: the client has ended its input, and all of it was taken. The client may still wait for answers.
 * - `untaken`: the client has ended its input or is paused, and the server takes none of these bytes.
 * - `output`: the client no longer reads.
 * - `server`: the server of the legacy session has ended.
 * - `unreadable`: the client has sent something that is not JSON.
 * - `crowded`: a large message of the client exceeded what all clients together may have in memory.
 */
export type ClientEnd =
  | { readonly kind: 'input' | 'output' }
  | { readonly kind: 'untaken'; readonly bytes: number }
  | { readonly kind: 'server' | 'unreadable' | 'crowded'; readonly reason: BridgeError };

/**
 * Serves one client on a connection in both eras at once: each message shows its own era. [spec 2026-07-28
 * basic/versioning]
 */
export class DuplexEndpoint implements ConnectionListener {
  readonly #options: DuplexEndpointOptions;
  readonly #connection: MessageConnection;
  readonly #input: SharedInput;
  readonly #legacy: LegacyConversation;
  readonly #modern: ModernConversation;
  readonly #limits: ReadLimits;
  readonly #complaints: Complaints;
  #hasSpoken = false;
  /** Length of the largest message that was sent since the client last took everything. */
  #largestSentBytes = 0;
  /** True once further messages of the client are dropped. */
  #isDeaf = false;
  #resolveEnded: (end: ClientEnd) => void = () => {};
  #resolveClientGone: () => void = () => {};
  #resolveUnread: () => void = () => {};
  /** Resolves once, with the first end of this client. */
  readonly ended = new Promise<ClientEnd>((resolve) => {
    this.#resolveEnded = resolve;
  });
  /** Resolves when the client has ended its input or no longer reads, also if `ended` has resolved with another end. */
  readonly clientGone = new Promise<void>((resolve) => {
    this.#resolveClientGone = resolve;
  });
  /** Resolves when the client no longer reads, also if `ended` has resolved with another end. */
  readonly unread = new Promise<void>((resolve) => {
    this.#resolveUnread = resolve;
  });

  constructor(options: DuplexEndpointOptions) {
    this.#options = options;
    this.#complaints = new Complaints(options.deps.log);
    this.#limits = { ...CLIENT_LIMITS, maxDepth: options.maxJsonDepth };
    const { client, sessions, deps, untakenTimeoutMs = 0, heldTimeoutMs = 0 } = options;
    const { maxSentBytes = Number.POSITIVE_INFINITY } = options;
    const connection = options.openConnection(this);
    this.#connection = connection;
    this.#input = new SharedInput({
      source: connection,
      clock: deps.clock,
      untakenTimeoutMs,
      heldTimeoutMs,
      take: (piece, maxMessages) => connection.take(piece, maxMessages),
      onEnd: (untakenBytes) => this.#inputTaken(untakenBytes),
    });
    const shared = {
      connection: { send: (message: Buffer, about?: Call) => this.#send(message, about) },
      client,
      input: this.#input,
      sessions,
      complaints: this.#complaints,
      maxSentBytes,
      deps,
    };
    this.#legacy = new LegacyConversation({
      ...shared,
      isTaken: (id) => this.#modern.isOpen(id),
      onServerEnded: (reason) => this.#resolveEnded({ kind: 'server', reason }),
    });
    this.#modern = new ModernConversation({ ...shared, isTaken: (id) => this.#legacy.isOpen(id) });
  }

  // ---- messages of the client

  message(bytes: Buffer): void {
    this.#input.tookMessage(bytes.length);
    if (this.#isDeaf) return;
    const result = readMessage(bytes, this.#limits);
    if (result.kind === 'fault') return this.#fault(result);
    this.#hasSpoken = true;
    if (result.kind === 'batch') return this.#batch(result.items);
    const { frame } = result;
    if (this.#isModern(frame)) this.#modern.take(frame);
    else this.#legacy.take(frame);
  }

  /**
   * Returns true for a message of the modern era. A client that has sent only modern messages and omits the envelope
   * once is told what is missing instead of being served as a legacy client.
   */
  #isModern(frame: Frame): boolean {
    if (claimsModern(frame)) return true;
    if (!this.#modern.hasServed) return false;
    switch (frame.kind) {
      case 'request':
        return frame.method !== INITIALIZE && !this.#legacy.hasSession;
      case 'notification':
        if (frame.method === CANCELED) return this.#isOfModernCall(frame);
        // [spec 2026-07-28 basic#meta] only requests must carry an envelope.
        return !this.#legacy.hasSession;
      default:
        // [spec 2026-07-28 transports/stdio#sending-messages] modern clients write no responses.
        return false;
    }
  }

  #isOfModernCall(canceled: Frame): boolean {
    const id = findCanceledId(canceled);
    return id !== undefined && this.#modern.isOpen(id.value);
  }

  #batch(items: readonly BatchItem[]): void {
    const route = routeEra(items, {});
    const error =
      route.kind === 'refused' ? this.#refused(route.refusal.message) : refusalOfBatch(items, this.#legacy.revision);
    if (error === undefined) return this.#legacy.takeBatch(items);
    const unanswered = items.filter((item) => !(item instanceof Frame) || item.kind === 'request');
    this.#complaints.tell('warn', error);
    for (const { id } of unanswered) if (id !== undefined) this.#write(errorFrame(id, rpcErrorOf(error)));
  }

  oversized({ head, tail, byteLength }: OversizedLine): void {
    this.#input.tookMessage(head.length);
    if (this.#isDeaf) return;
    const isJson = head[0] === OPEN_BRACE || head[0] === OPEN_BRACKET;
    if (!isJson && this.#options.unreadable === 'ends-connection') {
      return this.#leaveUnreadable(
        this.#faultError({ kind: 'fault', fault: 'parse', reason: 'it is not JSON', id: undefined }),
      );
    }
    const { id, kind } = recoverEnvelope(head, tail);
    const message = `A message of ${byteLength} bytes is larger than the ${this.#options.maxMessageBytes} allowed; send less or raise --max-message-bytes.`;
    const error = new BridgeError('ERR_WIRE_FRAME_TOO_LARGE', message);
    this.#complaints.tell('error', error);
    if (id !== undefined && kind === 'request') this.#write(errorFrame(id, rpcErrorOf(error)));
  }

  /**
   * Logs the error and answers the message, if it has an id: the client could not tell what an error without one is
   * about.
   */
  #refuse(error: BridgeError, id: JsonRpcId | undefined): void {
    this.#complaints.tell('warn', error);
    if (id !== undefined) this.#write(errorFrame(id, rpcErrorOf(error)));
  }

  #fault(result: Extract<ReadResult, { kind: 'fault' }>): void {
    const error = this.#faultError(result);
    if (result.fault === 'parse' && this.#options.unreadable === 'ends-connection') this.#leaveUnreadable(error);
    else this.#refuse(error, result.id);
  }

  #leaveUnreadable(reason: BridgeError): void {
    this.#isDeaf = true;
    this.#resolveEnded({ kind: 'unreadable', reason });
  }

  #faultError({ fault, reason }: Extract<ReadResult, { kind: 'fault' }>): BridgeError {
    if (fault !== 'parse') return this.#refused(reason);
    return new BridgeError('ERR_WIRE_PARSE', `A ${this.#connection.unit} was refused: ${reason}.`);
  }

  #refused(reason: string): BridgeError {
    return new BridgeError('ERR_WIRE_MESSAGE', `A ${this.#connection.unit} was refused: ${reason}.`);
  }

  // ---- the connection

  /** True once the client has sent a message. */
  get hasSpoken(): boolean {
    return this.#hasSpoken;
  }

  /** True while the client has a legacy session, or a connection to a server for its modern requests. */
  get isJoined(): boolean {
    return this.#legacy.hasSession || this.#modern.hasLink;
  }

  /** Number of the client's calls that wait for an answer. */
  get openCalls(): number {
    return this.#legacy.openCalls + this.#modern.openCalls;
  }

  read(piece: Buffer): void {
    this.#input.read(piece);
  }

  drained(): void {
    this.#legacy.drained();
    this.#modern.drained();
  }

  inputEnded(): void {
    this.#input.over();
    // Input that a server has yet to take may still be waiting, but the client has no part in that anymore.
    this.#resolveClientGone();
  }

  #inputTaken(untakenBytes: number): void {
    if (untakenBytes > 0) return this.#resolveEnded({ kind: 'untaken', bytes: untakenBytes });
    this.#connection.takeRest();
    this.#legacy.inputEnded();
    this.#resolveEnded({ kind: 'input' });
  }

  /** Called when the client no longer reads, as detected by the connection or by the caller. */
  readerGone(): void {
    this.#resolveEnded({ kind: 'output' });
    this.#resolveClientGone();
    this.#resolveUnread();
  }

  crowded(): void {
    this.#isDeaf = true;
    this.#resolveEnded({ kind: 'crowded', reason: TOO_MANY_ARRIVE });
  }

  #write(frame: Frame): void {
    this.#send(frame.bytes);
  }

  #send(message: Buffer, about?: Call): boolean {
    if (this.#connection.send(message, about)) {
      this.#largestSentBytes = 0;
      return true;
    }
    this.#largestSentBytes = Math.max(this.#largestSentBytes, message.length);
    if (this.#connection.waitingBytes > this.#options.maxWaitingBytes + this.#largestSentBytes) {
      this.#options.deps.log.info('a client read too slowly; its connection was closed');
      this.#connection.cut();
    }
    return false;
  }

  /** Resolves when everything written has left for the client, or cannot. */
  flush(): Promise<void> {
    return this.#connection.flush();
  }

  // ---- the end

  /** Takes no new calls. Resolves when the open calls are answered and the answers have left, or after `graceMs`. */
  async drain(graceMs = Number.POSITIVE_INFINITY): Promise<void> {
    this.#legacy.drain();
    this.#modern.drain();
    await drained(this.#options.deps.clock, graceMs, () => this.openCalls > 0);
    await this.flush();
  }

  /** Answers open calls with this reason and releases the servers. */
  close(reason: BridgeError): void {
    this.#isDeaf = true;
    this.#legacy.close(reason);
    this.#modern.close(reason);
    this.#complaints.close();
  }
}
