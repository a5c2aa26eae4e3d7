import type { BridgeError } from '../errors.ts';
import type { Frame } from '../wire/frame.ts';
import type { Exchange } from './exchange.ts';
import type {
  CallContext,
  CallerDialers,
  Readiness,
  ServerFault,
  ServerListener,
  ServerProcess,
  SessionDialer,
  UpstreamDialer,
  UpstreamLink,
} from './ports.ts';
import type { SessionState } from './sessions/session-state.ts';

/** A link made of a link: what a subclass does not change passes as it is, in both directions. */
export abstract class PassingLink implements UpstreamLink, ServerListener {
  protected readonly listener: ServerListener;
  /** The link below; it was dialled with this one as its listener. */
  protected abstract link: UpstreamLink;

  constructor(listener: ServerListener) {
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

  serverClosed(reason: BridgeError): void {
    this.listener.serverClosed(reason);
  }
}

/**
 * Makes the link of a session of links that it dials itself.
 * @param sent the client's first request, if it was sent already on the link that is dialled first
 */
export type DecorateSession = (
  dialer: SessionDialer,
  listener: ServerListener,
  session: SessionState | undefined,
  sent?: SentRequest,
) => UpstreamLink;

/** A client's request, with the exchange it came by. */
export interface SentRequest {
  readonly frame: Frame;
  readonly exchange: Exchange | undefined;
}

/** A dialer whose sessions get something more. */
export class DecoratedSessions<Decorated extends SessionDialer = SessionDialer> implements SessionDialer {
  protected readonly dialer: Decorated;
  readonly #decorate: DecorateSession;

  /** @param dialer closed together with this one */
  constructor(dialer: Decorated, decorate: DecorateSession) {
    this.dialer = dialer;
    this.#decorate = decorate;
  }

  get name(): string {
    return this.dialer.name;
  }

  dial(listener: ServerListener, session?: SessionState): UpstreamLink {
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

/** Modern requests pass it by: they are over with their answer. */
export class DecoratedDialer extends DecoratedSessions<UpstreamDialer> implements UpstreamDialer {
  dialCalls(listener: ServerListener, context: CallContext): UpstreamLink {
    return this.dialer.dialCalls(listener, context);
  }
}

/** Requests of modern clients on connections of a server that need not be told for whom they are. */
export class CallsOverSessions extends DecoratedSessions implements UpstreamDialer {
  constructor(dialer: SessionDialer) {
    super(dialer, (own, listener) => own.dial(listener));
  }

  dialCalls(listener: ServerListener): UpstreamLink {
    return this.dialer.dial(listener);
  }
}

/** Gives all callers one dialer, for nothing is told of any of them. */
export function forEveryCaller(dialer: UpstreamDialer): CallerDialers {
  return {
    name: dialer.name,
    forCaller: () => dialer,
    readiness: () => dialer.readiness(),
    close: () => dialer.close(),
    killNow: () => dialer.killNow(),
  };
}
