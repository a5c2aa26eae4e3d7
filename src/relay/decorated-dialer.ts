import type { CallContext, Readiness, ServerListener, UpstreamDialer, UpstreamLink } from './ports.ts';

/** Makes the link of a session of links that it dials itself. */
export type DecorateSession = (dialer: UpstreamDialer, listener: ServerListener) => UpstreamLink;

/** A dialer whose sessions get something more. Modern requests pass it by: they are over with their answer. */
export class DecoratedDialer implements UpstreamDialer {
  readonly #dialer: UpstreamDialer;
  readonly #decorate: DecorateSession;

  /** @param dialer closed together with this one */
  constructor(dialer: UpstreamDialer, decorate: DecorateSession) {
    this.#dialer = dialer;
    this.#decorate = decorate;
  }

  get name(): string {
    return this.#dialer.name;
  }

  dial(listener: ServerListener, context?: CallContext): UpstreamLink {
    return context === undefined ? this.#decorate(this.#dialer, listener) : this.#dialer.dial(listener, context);
  }

  readiness(): Readiness {
    return this.#dialer.readiness();
  }

  close(): Promise<void> {
    return this.#dialer.close();
  }

  killNow(): void {
    this.#dialer.killNow();
  }
}
