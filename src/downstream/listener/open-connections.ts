import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../deps.ts';
import { ReadingWatch } from '../../http/reading-watch.ts';

/** Interval at which clients that have stopped reading are detected. */
const CHECK_MS = 5000;

interface Connection {
  /** Responses that are not complete, in the order of their requests. */
  readonly responses: ServerResponse[];
  readonly reading: ReadingWatch;
  /** Listener for the end of the connection. */
  readonly forget: () => void;
}

/**
 * Owner of the connections. `host`: they belong to the host application's server, so only our own responses on them are
 * ended, and other traffic is left alone.
 */
export type ConnectionOwner = 'us' | 'host';

/** Connections that have had a request, with the open responses of each. */
export class OpenConnections {
  readonly #clock: Clock;
  readonly #owner: ConnectionOwner;
  readonly #connections = new Map<Socket, Connection>();
  #stopWatching: (() => void) | undefined;
  #isStopping = false;

  constructor(clock: Clock, owner: ConnectionOwner) {
    this.#clock = clock;
    this.#owner = owner;
  }

  get size(): number {
    return this.#connections.size;
  }

  /** Disconnects clients that have stopped reading, until `close`. */
  watch(): void {
    this.#stopWatching ??= this.#clock.every(CHECK_MS, () => this.#letStalledGo());
  }

  /**
   * Destroys our own connections, including upgraded ones, which Node no longer tracks. On connections of the host only
   * our responses are destroyed.
   */
  close(): void {
    this.#stopWatching?.();
    this.#stopWatching = undefined;
    for (const [socket, { responses, forget }] of this.#connections) {
      if (this.#owner === 'us') {
        socket.destroy();
        continue;
      }
      socket.off('close', forget);
      for (const response of responses) response.destroy();
    }
    if (this.#owner !== 'us') this.#connections.clear();
  }

  begin(socket: Socket, response: ServerResponse): void {
    const connection = this.#connections.get(socket) ?? this.#add(socket);
    connection.responses.push(response);
  }

  #add(socket: Socket): Connection {
    const forget = (): void => this.#disconnected(socket);
    const connection: Connection = { responses: [], reading: new ReadingWatch(this.#clock.now()), forget };
    this.#connections.set(socket, connection);
    socket.once('close', forget);
    return connection;
  }

  end(socket: Socket, response: ServerResponse): void {
    const responses = this.#connections.get(socket)?.responses ?? [];
    const index = responses.indexOf(response);
    if (index < 0) return;
    responses.splice(index, 1);
    if (this.#isStopping && this.#owner === 'us' && responses.length === 0) socket.destroySoon();
  }

  /**
   * Ends the responses of a closed connection. Node tells only the response whose turn it is; pipelined responses
   * behind it would stay open forever.
   */
  #disconnected(socket: Socket): void {
    const responses = this.#connections.get(socket)?.responses ?? [];
    this.#connections.delete(socket);
    for (const response of responses) if (response.socket === null) response.destroy().emit('close');
  }

  /**
   * Disconnects clients that read none of their responses. They keep Node from reading further requests, and none of
   * its time limits covers that: without a token, an untrusted caller could occupy every connection slot forever.
   */
  #letStalledGo(): void {
    const nowMs = this.#clock.now();
    for (const [socket, { reading, responses }] of this.#connections) {
      const written = { bytes: socket.bytesWritten, queuedBytes: socket.writableLength, socket };
      const hasStopped = reading.hasStopped(written, nowMs);
      // On the host's server the host decides how long its own responses may stall.
      if (hasStopped && (this.#owner === 'us' || responses.length > 0)) socket.destroy();
    }
  }

  /** Closes idle connections now, and the others after their last response was sent. */
  stop(): void {
    this.#isStopping = true;
    if (this.#owner === 'host') return;
    for (const [socket, { responses }] of this.#connections) if (responses.length === 0) socket.destroySoon();
  }
}
