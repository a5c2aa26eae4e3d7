import { isDeepStrictEqual } from 'node:util';
import { type BridgeError, toBridgeError } from '../../../errors.ts';
import { INITIALIZE } from '../../../mcp/vocabulary/methods.ts';
import { type Fields, readPayload } from '../../../mcp/vocabulary/payload.ts';
import type { Exchange } from '../../../relay/exchange.ts';
import type { ServerListener, ServerProcess, UpstreamLink } from '../../../relay/ports.ts';
import type { Frame } from '../../../wire/frame.ts';
import { resultFrame } from '../../../wire/write-message.ts';
import type { LinkClient } from '../ask/link-client.ts';

/** A handshake that a server has been through, but for `notifications/initialized`. */
export interface Handshake {
  /** What the server was told. */
  readonly params: Fields;
  /** The `InitializeResult` of the server. */
  readonly result: object;
}

export interface GreetedLinkOptions {
  readonly connection: LinkClient;
  readonly handshake: Handshake;
  readonly listener: ServerListener;
  /** A link to a server that has not been initialized. Throws what `dial` throws. */
  readonly dialNew: () => UpstreamLink;
}

/**
 * - `greeted`: the server has answered an `initialize`, but not this client's yet.
 * - `open`: messages pass.
 * - `closed`: nothing more is said to the client.
 */
type LinkState =
  | { readonly kind: 'greeted'; readonly link: UpstreamLink }
  | { readonly kind: 'open'; readonly link: UpstreamLink }
  | { readonly kind: 'closed'; readonly link: UpstreamLink };

/**
 * A link to a server that was initialized when its era was found out, as if it had not been: a client that says the same
 * gets the same answer, and one that says something else another server.
 */
export class GreetedLink implements UpstreamLink {
  readonly #options: GreetedLinkOptions;
  #state: LinkState;

  constructor(options: GreetedLinkOptions) {
    this.#options = options;
    this.#state = { kind: 'greeted', link: options.connection.handTo(options.listener) };
  }

  send(frame: Frame, exchange?: Exchange): boolean {
    switch (this.#state.kind) {
      case 'open':
        return this.#state.link.send(frame, exchange);
      case 'greeted':
        if (frame.method === INITIALIZE) return this.#initialize(frame, exchange);
        return this.#state.link.send(frame, exchange);
      case 'closed':
        return true;
    }
  }

  #initialize(frame: Frame, exchange: Exchange | undefined): boolean {
    const { connection, handshake } = this.#options;
    if (!isDeepStrictEqual(readPayload(frame), handshake.params)) return this.#startAnew(frame, exchange);
    this.#state = { kind: 'open', link: this.#state.link };
    queueMicrotask(() => {
      if (this.#state.kind === 'closed' || connection.end !== undefined) return;
      this.#options.listener.fromServer(resultFrame(frame.id ?? 0, handshake.result), exchange);
    });
    return true;
  }

  #startAnew(frame: Frame, exchange: Exchange | undefined): boolean {
    this.#options.connection.close();
    try {
      const link = this.#options.dialNew();
      this.#state = { kind: 'open', link };
      return link.send(frame, exchange);
    } catch (thrown) {
      queueMicrotask(() => this.#end(toBridgeError(thrown)));
      return true;
    }
  }

  #end(reason: BridgeError): void {
    if (this.#state.kind === 'closed') return;
    this.#state = { kind: 'closed', link: this.#state.link };
    this.#options.listener.serverClosed(reason);
  }

  get process(): ServerProcess | undefined {
    return this.#state.link.process;
  }

  pause(): void {
    if (this.#state.kind !== 'closed') this.#state.link.pause();
  }

  resume(): void {
    if (this.#state.kind !== 'closed') this.#state.link.resume();
  }

  close(reason: BridgeError): void {
    const { kind, link } = this.#state;
    this.#state = { kind: 'closed', link };
    if (kind !== 'closed') link.close(reason);
  }
}
