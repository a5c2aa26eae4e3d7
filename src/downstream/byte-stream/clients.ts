import type { Socket } from 'node:net';
import type { BridgeError } from '../../errors.ts';
import { drained } from '../../relay/calls.ts';
import { ByteStreamEndpoint, type ByteStreamEndpointOptions, type StreamReach } from './endpoint.ts';

/** Interval at which clients are checked for silence and for output that they do not read. */
const CHECK_MS = 5000;

/** The clients of one server on byte streams. */
export class ByteStreamClients {
  readonly #options: Omit<ByteStreamEndpointOptions, 'socket' | 'reach'>;
  readonly #open = new Set<ByteStreamEndpoint>();
  #stopLooking: (() => void) | undefined;
  #closedFor: BridgeError | undefined;

  constructor(options: Omit<ByteStreamEndpointOptions, 'socket' | 'reach'>) {
    this.#options = options;
  }

  /** Serves the client of a new connection. Nothing may have been read from the socket. */
  add(socket: Socket, reach: StreamReach): void {
    const endpoint = new ByteStreamEndpoint({ ...this.#options, socket, reach });
    if (this.#closedFor !== undefined) return endpoint.refuse(this.#closedFor);
    this.#open.add(endpoint);
    void endpoint.gone.then(() => this.#left(endpoint));
    this.#stopLooking ??= this.#options.deps.clock.every(CHECK_MS, () => this.#look());
  }

  #left(endpoint: ByteStreamEndpoint): void {
    this.#open.delete(endpoint);
    if (this.#open.size > 0) return;
    this.#stopLooking?.();
    this.#stopLooking = undefined;
  }

  #look(): void {
    const nowMs = this.#options.deps.clock.now();
    for (const endpoint of [...this.#open]) endpoint.check(nowMs);
  }

  /**
   * Accepts no new client, and closes each connection once none of its calls is open, so that its client reconnects
   * elsewhere. Resolves when all connections are closed, or after `graceMs`.
   */
  retire(graceMs: number, reason: BridgeError): Promise<void> {
    this.#closedFor = reason;
    return drained(this.#options.deps.clock, graceMs, () => {
      for (const endpoint of [...this.#open]) if (endpoint.openCalls === 0) endpoint.close(reason);
      return this.#open.size > 0;
    });
  }

  close(reason: BridgeError): void {
    this.#closedFor = reason;
    for (const endpoint of [...this.#open]) endpoint.close(reason);
  }
}
