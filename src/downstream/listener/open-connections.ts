import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../deps.ts';
import { ReadingWatch } from '../../http/reading-watch.ts';

/** How often clients that have stopped reading are looked for. */
const CHECK_MS = 5000;

interface Connection {
  /** What is under way, in the order of the requests. */
  readonly responses: ServerResponse[];
  readonly reading: ReadingWatch;
  /** Listens for the end of the connection. */
  readonly forget: () => void;
}

/** Whose the connections are: of somebody else's server only the answers are ours, and what else it does is not touched. */
export type ConnectionOwner = 'us' | 'host';

/** The connections that have had a request, and what is under way on each. */
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

  /** Lets clients go that have stopped reading, until it is closed. */
  watch(): void {
    this.#stopWatching ??= this.#clock.every(CHECK_MS, () => this.#letStalledGo());
  }

  /**
   * Cuts our own connections, those that go on with another protocol, which Node knows no more, among them. Of connections
   * that are not ours only the answers are cut.
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
   * Node tells only the response whose turn it is of the end of its connection. Those that were asked for behind it would
   * stay open for ever.
   */
  #disconnected(socket: Socket): void {
    const responses = this.#connections.get(socket)?.responses ?? [];
    this.#connections.delete(socket);
    for (const response of responses) if (response.socket === null) response.destroy().emit('close');
  }

  /**
   * A client that reads none of its answers keeps Node from reading further requests, and no time limit of Node's covers
   * that: without a token, an untrusted caller could occupy every connection slot for ever.
   */
  #letStalledGo(): void {
    const nowMs = this.#clock.now();
    for (const [socket, { reading, responses }] of this.#connections) {
      const written = { bytes: socket.bytesWritten, queuedBytes: socket.writableLength, socket };
      const hasStopped = reading.hasStopped(written, nowMs);
      // How long others wait for whoever reads their answers is for them to say.
      if (hasStopped && (this.#owner === 'us' || responses.length > 0)) socket.destroy();
    }
  }

  /** Connections that carry nothing are closed, the others when their last answer is out. */
  stop(): void {
    this.#isStopping = true;
    if (this.#owner === 'host') return;
    for (const [socket, { responses }] of this.#connections) if (responses.length === 0) socket.destroySoon();
  }
}
