import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../deps.ts';
import { ReadingWatch } from '../stream/reading-watch.ts';

/** How often clients that have stopped reading are looked for. */
const CHECK_MS = 5000;

interface Connection {
  /** What is under way, in the order of the requests. */
  readonly responses: ServerResponse[];
  readonly reading: ReadingWatch;
}

/** The connections that have had a request, and what is under way on each. */
export class OpenConnections {
  readonly #clock: Clock;
  readonly #connections = new Map<Socket, Connection>();
  #stopWatching: (() => void) | undefined;
  #isStopping = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#connections.size;
  }

  /** Lets clients go that have stopped reading, until it is closed. */
  watch(): void {
    this.#stopWatching = this.#clock.every(CHECK_MS, () => this.#letStalledGo());
  }

  close(): void {
    this.#stopWatching?.();
  }

  begin(socket: Socket, response: ServerResponse): void {
    const connection = this.#connections.get(socket) ?? this.#add(socket);
    connection.responses.push(response);
  }

  #add(socket: Socket): Connection {
    const connection: Connection = { responses: [], reading: new ReadingWatch(this.#clock.now()) };
    this.#connections.set(socket, connection);
    socket.once('close', () => this.#disconnected(socket));
    return connection;
  }

  end(socket: Socket, response: ServerResponse): void {
    const responses = this.#connections.get(socket)?.responses ?? [];
    const index = responses.indexOf(response);
    if (index < 0) return;
    responses.splice(index, 1);
    if (this.#isStopping && responses.length === 0) socket.destroySoon();
  }

  /**
   * Node tells only the response whose turn it is of the end of its connection. Those that were asked for behind it would
   * stay open for ever.
   */
  #disconnected(socket: Socket): void {
    const responses = this.#connections.get(socket)?.responses ?? [];
    this.#connections.delete(socket);
    for (const response of responses) if (response.socket === null) response.destroy().emit('close');
  }

  /**
   * Who reads none of its answers keeps Node from reading further requests, and no time limit of Node's is about that: a
   * stranger could hold every connection there may be, without a token and for ever.
   */
  #letStalledGo(): void {
    const nowMs = this.#clock.now();
    for (const [socket, { reading }] of this.#connections) {
      const written = { bytes: socket.bytesWritten, queuedBytes: socket.writableLength, socket };
      if (reading.hasStopped(written, nowMs)) socket.destroy();
    }
  }

  /** Connections that carry nothing are closed, the others when their last answer is out. */
  stop(): void {
    this.#isStopping = true;
    for (const [socket, { responses }] of this.#connections) if (responses.length === 0) socket.destroySoon();
  }
}
