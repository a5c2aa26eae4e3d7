import type { Clock } from '../../../deps.ts';
import type { Readiness, ServerListener, UpstreamDialer, UpstreamLink } from '../../../relay/ports.ts';
import type { LinkClient } from '../ask/link-client.ts';
import { GreetedLink, type Handshake } from './greeted-link.ts';

/** Who waited for the verdict dials at once; a process that nobody has taken by then has missed its clients. */
export const HANDOVER_MS = 10_000;

interface Offer {
  readonly connection: LinkClient;
  readonly handshake: Handshake | undefined;
  readonly cancel: () => void;
}

/**
 * Gives out the process that detection has started before it starts new ones. Ends only what nobody has taken: the
 * dialer below belongs to somebody else.
 */
export class StartedProcesses implements UpstreamDialer {
  readonly #dialer: UpstreamDialer;
  readonly #clock: Clock;
  #offer: Offer | undefined;
  #isClosed = false;

  constructor(dialer: UpstreamDialer, clock: Clock) {
    this.#dialer = dialer;
    this.#clock = clock;
  }

  get name(): string {
    return this.#dialer.name;
  }

  /** The connection belongs to whoever dials next. One that was offered before and not taken is closed. */
  offer(connection: LinkClient, handshake?: Handshake): void {
    this.#withdraw();
    if (this.#isClosed) return connection.close();
    const cancel = this.#clock.after(HANDOVER_MS, () => this.#withdraw());
    this.#offer = { connection, handshake, cancel };
  }

  #withdraw(): void {
    this.#take()?.connection.close();
  }

  #take(): Offer | undefined {
    const offer = this.#offer;
    this.#offer = undefined;
    offer?.cancel();
    return offer;
  }

  dial(listener: ServerListener): UpstreamLink {
    const { connection, handshake } = this.#take() ?? {};
    // It may have ended meanwhile.
    if (connection === undefined || connection.end !== undefined) return this.#dialer.dial(listener);
    if (handshake === undefined) return connection.handTo(listener);
    return new GreetedLink({ connection, handshake, listener, dialNew: () => this.#dialer.dial(listener) });
  }

  readiness(): Readiness {
    return this.#dialer.readiness();
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#withdraw();
    return Promise.resolve();
  }

  killNow(): void {
    this.#dialer.killNow();
  }
}
