import type { Socket } from 'node:net';
import type { Deps } from '../../deps.ts';
import { assertNever, BridgeError } from '../../errors.ts';
import { ANONYMOUS } from '../../http/auth/callers.ts';
import { ReadingWatch } from '../../http/reading-watch.ts';
import type { BodyBudget } from '../../http/server/read-body.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { SessionRegistry } from '../../relay/sessions/session-registry.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { type ClientEnd, DuplexEndpoint } from '../duplex/endpoint.ts';
import { LineConnection } from '../duplex/message-connection.ts';
import { MAX_QUEUED_BYTES } from '../http/response-writer.ts';

/** Time limit for the first message. Clients send it at once; a connection without one only takes up a slot. */
export const FIRST_MESSAGE_MS = 10_000;
/** A connection without a session that sends nothing for this long is closed. Its client can open another one. */
export const IDLE_MS = 60_000;
/** Time for the client to close its side, once the connection was ended from here. */
export const CLOSE_GRACE_MS = 5000;

/**
 * - `network`: a TCP port. Web pages can make a browser send something to it.
 * - `file`: a Unix socket, which only programs with access to its file can reach.
 */
export type StreamReach = 'network' | 'file';

export interface ByteStreamEndpointOptions {
  readonly socket: Socket;
  readonly reach: StreamReach;
  /** The registry may be shared with other transports. */
  readonly sessions: SessionRegistry;
  readonly maxMessageBytes: number;
  /** Levels of arrays and objects. */
  readonly maxJsonDepth: number;
  /**
   * After the client has ended its input or is paused, time limit of a server that takes none of the client's waiting
   * messages; 0: no limit.
   */
  readonly untakenTimeoutMs: number;
  /** Shared by all messages that are being read. */
  readonly bodies: BodyBudget;
  readonly deps: Deps;
}

/**
 * A client on a byte stream, with one message per line and both eras on the same connection. Nothing may have been read
 * from the socket before.
 */
export class ByteStreamEndpoint {
  readonly #socket: Socket;
  readonly #endpoint: DuplexEndpoint;
  readonly #reading: ReadingWatch;
  readonly #deps: Deps;
  readonly #acceptedAtMs: number;
  #heardBytes = 0;
  #heardAtMs: number;
  #cancelDestroy: (() => void) | undefined;
  /** Resolves when the socket is closed. */
  readonly gone: Promise<void>;

  constructor(options: ByteStreamEndpointOptions) {
    const { socket, reach, maxMessageBytes, bodies, deps } = options;
    const callerName = `${ANONYMOUS} on stream ${deps.randomId()}`;
    const arriving = bodies.forConnection(callerName);
    const nowMs = deps.clock.now();
    this.#socket = socket;
    this.#deps = deps;
    this.#acceptedAtMs = nowMs;
    this.#heardAtMs = nowMs;
    this.#reading = new ReadingWatch(nowMs);
    this.#endpoint = new DuplexEndpoint({
      ...options,
      // Two connections cannot be recognized as the same client's, so each is a caller of its own and sees nothing of
      // the others.
      client: {
        transport: 'byte-stream',
        principal: ANONYMOUS,
        environment: undefined,
        callerName,
        headers: undefined,
      },
      unreadable: reach === 'network' ? 'ends-connection' : 'is-skipped',
      maxWaitingBytes: MAX_QUEUED_BYTES,
      heldTimeoutMs: options.untakenTimeoutMs,
      openConnection: (listener) =>
        new LineConnection({ input: socket, output: socket, maxMessageBytes, arriving }, listener),
    });
    this.gone = new Promise((resolve) => {
      socket.once('close', () => {
        this.#cancelDestroy?.();
        this.#endpoint.close(CLIENT_GONE);
        resolve();
      });
    });
    void this.#endpoint.ended.then((end) => this.#ended(end));
  }

  /** Calls that wait for an answer. */
  get openCalls(): number {
    return this.#endpoint.openCalls;
  }

  async #ended(end: ClientEnd): Promise<void> {
    const { log } = this.#deps;
    switch (end.kind) {
      case 'input':
        // Open calls keep their usual time limits. A client that stops reading meanwhile is detected by `check`.
        await this.#endpoint.drain();
        return this.close(CLIENT_GONE);
      case 'untaken':
        log.warn(
          { code: 'ERR_UPSTREAM_TIMEOUT' },
          `the server of a client on a byte stream takes none of ${end.bytes} bytes that it has said; its connection was closed`,
        );
        return this.close(CLIENT_GONE);
      case 'output':
        this.#endpoint.close(CLIENT_GONE);
        this.#socket.destroy();
        return;
      case 'server':
        log.debug(
          { code: end.reason.code },
          'the server of a client on a byte stream has ended, and its connection with it',
        );
        return this.close(end.reason);
      case 'unreadable':
        log.warn(
          { code: end.reason.code },
          `${end.reason.message} The connection was closed: on a port that may be a web page that speaks HTTP to it`,
        );
        this.#endpoint.close(CLIENT_GONE);
        this.#socket.destroy();
        return;
      case 'crowded':
        return this.refuse(end.reason);
      default:
        assertNever(end);
    }
  }

  /**
   * Closes the connection if its client reads nothing, has sent no first message in time, or is idle without a session.
   * Called every few seconds.
   */
  check(nowMs: number): void {
    const { bytesRead, bytesWritten, writableLength } = this.#socket;
    if (bytesRead > this.#heardBytes) this.#heardAtMs = nowMs;
    this.#heardBytes = bytesRead;
    const written = { bytes: bytesWritten, queuedBytes: writableLength, socket: this.#socket };
    if (this.#reading.hasStopped(written, nowMs)) {
      this.#deps.log.info('a client on a byte stream stopped reading; its connection was closed');
      this.#socket.destroy();
    } else if (!this.#endpoint.hasSpoken && nowMs - this.#acceptedAtMs >= FIRST_MESSAGE_MS) {
      this.refuse(TOO_SILENT);
    } else if (!this.#endpoint.isJoined && nowMs - this.#heardAtMs >= IDLE_MS) {
      this.refuse(IDLE);
    }
  }

  /** Writes the reason as a JSON-RPC error and ends the connection. */
  refuse(reason: BridgeError): void {
    this.#deps.log.debug({ code: reason.code }, `a connection to a byte stream was closed: ${reason.message}`);
    sayOnSocket(this.#socket, reason);
    this.close(reason);
  }

  /** Answers open calls with this reason, releases the servers, and ends the connection. */
  close(reason: BridgeError): void {
    this.#endpoint.close(reason);
    if (this.#cancelDestroy !== undefined || this.#socket.destroyed) return;
    this.#cancelDestroy = this.#deps.clock.after(CLOSE_GRACE_MS, () => this.#socket.destroy());
    void this.#endpoint.flush().then(() => this.#socket.end());
    // Further input is discarded, but has to be read for its end to be noticed.
    this.#socket.resume();
  }
}

/** Writes the reason as a JSON-RPC error without an id, since it may belong to no request. */
export function sayOnSocket(socket: Socket, reason: BridgeError): void {
  socket.write(Buffer.concat([errorFrame(undefined, rpcErrorOf(reason)).bytes, Buffer.from('\n')]));
}

const CLIENT_GONE = new BridgeError('ERR_SESSION_CLOSED', 'The client is gone.');
const TOO_SILENT = new BridgeError(
  'ERR_SESSION_CLOSED',
  `No message was received within ${FIRST_MESSAGE_MS / 1000} s, so the connection is closed; connect again when there is something to send.`,
);
const IDLE = new BridgeError(
  'ERR_SESSION_CLOSED',
  `Nothing was received for ${IDLE_MS / 1000} s on a connection without a session, so it is closed; connect again when there is something to send.`,
);
