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

/** A link for one request that comes alone, whose listener hears what its client is told. Throws what the dialer throws. */
export function dialCall(dialer: CallDialer, listener: ServerListener, context: SoleCallContext): UpstreamLink {
  return new SoleCallLink(dialer.callServer(), listener, context);
}

class SoleCallLink implements UpstreamLink {
  readonly process = undefined;
  readonly #server: CallServer;
  listener: ServerListener;
  readonly #context: SoleCallContext;
  #call: ModernCall | undefined;

  constructor(server: CallServer, listener: ServerListener, context: SoleCallContext) {
    this.#server = server;
    this.listener = listener;
    this.#context = context;
  }

  send(frame: Frame, exchange?: Exchange): boolean {
    if (frame.kind === 'request') this.#start(frame, exchange);
    else if (frame.method === CANCELLED) this.#call?.clientLeft();
    return true;
  }

  #start(frame: Frame, exchange: Exchange | undefined): void {
    const { listener } = this;
    const { principal, metadata } = this.#context;
    const headers = exchange?.lane.headers ?? this.#context.headers;
    const peer: CallPeer = {
      isOpen: true,
      headers,
      listener: { clientDrained() {}, clientLeft() {} },
      send: (told) => {
        listener.fromServer(told, exchange);
        return true;
      },
      pause() {},
      resume: () => listener.serverDrained(),
    };
    const host: CallHost = { exchanges: createExchanges(new FakeClock()), log: pino({ level: 'silent' }), ended() {} };
    const call = new FailingCall(listener, host, { ...ORIGIN, principal, environment: undefined }, frame, peer);
    this.#call = call;
    call.start(frame, metadata, this.#server);
  }

  pause(): void {
    if (this.#call !== undefined) this.#call.servedBy.pause(this.#call);
  }

  resume(): void {
    this.#call?.clientDrained();
  }

  close(): void {
    this.#call?.clientLeft();
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
    this.#listener.serverClosed(error);
  }
}
