import type { Clock } from '../../deps.ts';
import type { Readiness, ServerListener, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import type { LinkClient } from './link-client.ts';

/** Who waited for the verdict dials at once; a connection that nobody has taken by then has missed its clients. */
export const HANDOVER_MS = 10_000;

interface Offer {
  readonly connection: LinkClient;
  readonly cancel: () => void;
}

/**
 * Gives out the connection on which detection has asked before it makes new ones. Ends only what nobody has taken: the dialer
 * below belongs to somebody else.
 */
export class OpenedConnections implements SessionDialer {
  readonly #dialer: SessionDialer;
  readonly #clock: Clock;
  #offer: Offer | undefined;
  #isClosed = false;

  constructor(dialer: SessionDialer, clock: Clock) {
    this.#dialer = dialer;
    this.#clock = clock;
  }

  get name(): string {
    return this.#dialer.name;
  }

  /**
   * The connection belongs to whoever dials next. One that was offered before and not taken is closed.
   */
  offer(connection: LinkClient): void {
    this.#take()?.close();
    if (this.#isClosed) return connection.close();
    connection.takeBack();
    this.#offer = { connection, cancel: this.#clock.after(HANDOVER_MS, () => this.#take()?.close()) };
  }

  #take(): LinkClient | undefined {
    const offer = this.#offer;
    this.#offer = undefined;
    offer?.cancel();
    return offer?.connection;
  }

  dial(listener: ServerListener): UpstreamLink {
    const connection = this.#take();
    // It may have ended meanwhile.
    if (connection === undefined || connection.end !== undefined) return this.#dialer.dial(listener);
    return connection.open(listener);
  }

  readiness(): Readiness {
    return this.#dialer.readiness();
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#take()?.close();
    return Promise.resolve();
  }

  killNow(): void {
    this.#dialer.killNow();
  }
}
