import pino from 'pino';
import type { BridgeError } from '../../src/errors.ts';
import type { RequestMetadata } from '../../src/mcp/classify/request-metadata.ts';
import { CANCELED } from '../../src/mcp/vocabulary/methods.ts';
import type { Call } from '../../src/relay/call.ts';
import { type CallHost, type CallPeer, type CallServer, ModernCall } from '../../src/relay/modern-call.ts';
import type { CallContext, CallDialer, ServerListener, UpstreamLink } from '../../src/relay/ports.ts';
import type { Frame } from '../../src/wire/frame.ts';
import { createCalls, ORIGIN } from './calls.ts';
import { FakeClock } from './fake-clock.ts';

/** The sender of a request that comes alone. */
export interface SoleCallContext extends CallContext {
  readonly metadata: RequestMetadata;
  /** Default: nothing proves which client it is. */
  readonly identity?: object | undefined;
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
  readonly #calls = new Map<Call | undefined, ModernCall>();
  readonly #host: CallHost = {
    calls: createCalls(new FakeClock()),
    log: pino({ level: 'silent' }),
    ended() {},
  };

  constructor(server: CallServer, listener: ServerListener, context: SoleCallContext) {
    this.#server = server;
    this.listener = listener;
    this.#context = context;
  }

  send(frame: Frame, call?: Call): boolean {
    if (frame.kind === 'request') return this.#start(frame, call);
    if (frame.method === CANCELED) this.#calls.get(call)?.clientLeft();
    return true;
  }

  #start(frame: Frame, call: Call | undefined): boolean {
    const { listener } = this;
    const { principal, metadata, identity } = this.#context;
    let isTaken = true;
    const peer: CallPeer = {
      isOpen: true,
      headers: call?.lane.headers ?? this.#context.headers,
      listener: { clientDrained() {}, clientLeft() {} },
      send: (told) => {
        listener.fromServer(told, call);
        return true;
      },
      pause() {
        isTaken = false;
      },
      resume: () => listener.serverDrained(),
    };
    const origin = { ...ORIGIN, principal, identity, environment: undefined };
    const own = new FailingCall(listener, this.#host, origin, frame, peer);
    this.#calls.set(call, own);
    own.start(frame, metadata, this.#server);
    return isTaken;
  }

  pause(): void {
    for (const own of this.#calls.values()) if (own.isOpen) own.servedBy.pause(own);
  }

  resume(): void {
    for (const own of this.#calls.values()) own.clientDrained();
  }

  close(): void {
    for (const own of this.#calls.values()) own.clientLeft();
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
