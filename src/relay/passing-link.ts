import type { BridgeError } from '../errors.ts';
import type { Frame } from '../wire/frame.ts';
import type { ClientRequest, Exchange } from './exchange.ts';
import type {
  CallContext,
  CallerDialers,
  LinkOwner,
  Readiness,
  RestorePolicy,
  ServerFault,
  ServerProcess,
  SessionDialer,
  UpstreamDialer,
  UpstreamLink,
} from './ports.ts';
import type { SessionState } from './sessions/session-state.ts';

/** A link that wraps a link. A subclass changes some messages, and all others pass unchanged in both directions. */
export abstract class PassingLink implements UpstreamLink, LinkOwner {
  listener: LinkOwner;
  /** The wrapped link. It was dialled with this link as its listener. */
  protected abstract link: UpstreamLink;

  constructor(listener: LinkOwner) {
    this.listener = listener;
  }

  get process(): ServerProcess | undefined {
    return this.link.process;
  }

  send(frame: Frame, exchange?: Exchange): boolean {
    return this.link.send(frame, exchange);
  }

  pause(): void {
    this.link.pause();
  }

  resume(): void {
    this.link.resume();
  }

  close(reason: BridgeError): void {
    this.link.close(reason);
  }

  fromServer(frame: Frame, exchange?: Exchange): void {
    this.listener.fromServer(frame, exchange);
  }

  serverFault(fault: ServerFault): void {
    this.listener.serverFault(fault);
  }

  serverDrained(): void {
    this.listener.serverDrained();
  }

  serverFound(link: UpstreamLink): void {
    this.link = link;
  }

  serverClosed(reason: BridgeError): void {
    this.listener.serverClosed(reason);
  }
}

/**
 * Makes the link of a session, which dials the links below itself.
 * @param sent the client's first request, if it was already sent on the first of these links
 */
export type DecorateSession = (
  dialer: SessionDialer,
  listener: LinkOwner,
  session: SessionState | undefined,
  sent?: ClientRequest,
) => UpstreamLink;

/** A dialer that wraps the link of each session. */
export class DecoratedSessions<Decorated extends SessionDialer = SessionDialer> implements SessionDialer {
  protected readonly dialer: Decorated;
  readonly #decorate: DecorateSession;

  /** @param dialer the wrapped dialer, closed together with this one */
  constructor(dialer: Decorated, decorate: DecorateSession) {
    this.dialer = dialer;
    this.#decorate = decorate;
  }

  get name(): string {
    return this.dialer.name;
  }

  dial(listener: LinkOwner, session?: SessionState): UpstreamLink {
    return this.#decorate(this.dialer, listener, session);
  }

  readiness(): Readiness {
    return this.dialer.readiness();
  }

  close(): Promise<void> {
    return this.dialer.close();
  }

  killNow(): void {
    this.dialer.killNow();
  }
}

/** Wraps sessions only. A modern request is over with its answer, so its link is not wrapped. */
export class DecoratedDialer extends DecoratedSessions<UpstreamDialer> implements UpstreamDialer {
  dialCalls(listener: LinkOwner, context: CallContext): UpstreamLink {
    return this.dialer.dialCalls(listener, context);
  }
}

/** Serves modern requests on the connections of a server whose connections do not depend on the caller. */
export class CallsOverSessions extends DecoratedSessions implements UpstreamDialer {
  constructor(dialer: SessionDialer) {
    super(dialer, (own, listener) => own.dial(listener));
  }

  dialCalls(listener: LinkOwner): UpstreamLink {
    return this.dialer.dial(listener);
  }
}

/** Gives all callers the same dialer, because the server's processes get no variables that describe a caller. */
export function forEveryCaller(dialer: UpstreamDialer, restores?: RestorePolicy): CallerDialers {
  return {
    name: dialer.name,
    restores,
    forCaller: () => dialer,
    linkEnded: () => {},
    readiness: () => dialer.readiness(),
    close: () => dialer.close(),
    killNow: () => dialer.killNow(),
  };
}
