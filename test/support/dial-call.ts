import pino from 'pino';
import type { BridgeError } from '../../src/errors.ts';
import type { RequestMetadata } from '../../src/mcp/classify/request-metadata.ts';
import { CANCELLED } from '../../src/mcp/vocabulary/methods.ts';
import type { Exchange } from '../../src/relay/exchange.ts';
import { type CallHost, type CallPeer, type CallServer, ModernCall } from '../../src/relay/modern-call.ts';
import type { CallContext, CallDialer, ServerListener, UpstreamLink } from '../../src/relay/ports.ts';
import type { Frame } from '../../src/wire/frame.ts';
import { createExchanges, ORIGIN } from './exchanges.ts';
import { FakeClock } from './fake-clock.ts';

/** The sender of a request that comes alone. */
export interface SoleCallContext extends CallContext {
  readonly metadata: RequestMetadata;
}

/**
 * A link whose requests each come alone, and whose listener hears what their clients are told. Throws what the dialer
 * throws.
 */
export function dialCall(dialer: CallDialer, listener: ServerListener, context: SoleCallContext): UpstreamLink {
  return new SoleCallsLink(dialer.callServer(), listener, context);
}

class SoleCallsLink implements UpstreamLink {
  readonly process = undefined;
  readonly #server: CallServer;
  listener: ServerListener;
  readonly #context: SoleCallContext;
  readonly #calls = new Map<Exchange | undefined, ModernCall>();
  readonly #host: CallHost = {
    exchanges: createExchanges(new FakeClock()),
    log: pino({ level: 'silent' }),
    ended() {},
  };

  constructor(server: CallServer, listener: ServerListener, context: SoleCallContext) {
    this.#server = server;
    this.listener = listener;
    this.#context = context;
  }

  send(frame: Frame, exchange?: Exchange): boolean {
    if (frame.kind === 'request') return this.#start(frame, exchange);
    if (frame.method === CANCELLED) this.#calls.get(exchange)?.clientLeft();
    return true;
  }

  #start(frame: Frame, exchange: Exchange | undefined): boolean {
    const { listener } = this;
    const { principal, metadata } = this.#context;
    let isTaken = true;
    const peer: CallPeer = {
      isOpen: true,
      headers: exchange?.lane.headers ?? this.#context.headers,
      listener: { clientDrained() {}, clientLeft() {} },
      send: (told) => {
        listener.fromServer(told, exchange);
        return true;
      },
      pause() {
        isTaken = false;
      },
      resume: () => listener.serverDrained(),
    };
    const origin = { ...ORIGIN, principal, environment: undefined };
    const call = new FailingCall(listener, this.#host, origin, frame, peer);
    this.#calls.set(exchange, call);
    call.start(frame, metadata, this.#server);
    return isTaken;
  }

  pause(): void {
    for (const call of this.#calls.values()) if (call.isOpen) call.servedBy.pause(call);
  }

  resume(): void {
    for (const call of this.#calls.values()) call.clientDrained();
  }

  close(): void {
    for (const call of this.#calls.values()) call.clientLeft();
  }
}

/** Tells the listener why there is no answer, instead of putting it into words for a client. */
class FailingCall extends ModernCall {
  readonly #listener: ServerListener;

  constructor(listener: ServerListener, ...parts: ConstructorParameters<typeof ModernCall>) {
    super(...parts);
    this.#listener = listener;
  }

  override fail(error: BridgeError): void {
    if (!this.isOpen) return;
    this.settle();
    this.#listener.serverFault({ error, kind: 'error', id: this.id });
  }
}
