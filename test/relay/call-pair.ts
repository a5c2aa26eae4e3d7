import { readRequestMetadata } from '../../src/mcp/classify/request-metadata.ts';
import { CallRegistry, type CallRegistryOptions } from '../../src/relay/call-registry.ts';
import { forEveryCaller } from '../../src/relay/dialer-adapters.ts';
import type { CallListener, CallPeer } from '../../src/relay/modern-call.ts';
import type { ServerListener } from '../../src/relay/ports.ts';
import type { Frame, JsonRpcId } from '../../src/wire/frame.ts';
import { type CallsParts, createCalls, FakeObserver } from '../support/calls.ts';
import { createFakeDeps, type Dialed, FakeDialer, type FakeLink, messagesOf } from '../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../support/frames.ts';

const META = 'io.modelcontextprotocol/';

export const ENVELOPE = { [`${META}protocolVersion`]: '2026-07-28', [`${META}clientCapabilities`]: {} };

/** The client of one call: keeps what it is given. */
export class FakeCaller implements CallPeer {
  isOpen = true;
  /** What `send` answers. */
  hasCapacity = true;
  isPaused = false;
  readonly sent: Frame[] = [];
  listener: CallListener = { clientDrained() {}, clientLeft() {} };
  /** Called with each message, as a real client would react to it. */
  onSend: () => void = () => {};

  send(frame: Frame): boolean {
    this.sent.push(frame);
    this.onSend();
    return this.hasCapacity;
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
  }

  /** What it was told, parsed. */
  get heard(): readonly unknown[] {
    return this.sent.map((frame) => frame.json());
  }
}

/** One call with both its ends. */
export class OpenedCall {
  readonly request: Frame;
  readonly client: FakeCaller;
  readonly #dialed: Dialed | undefined;

  constructor(request: Frame, client: FakeCaller, dialed: Dialed | undefined) {
    this.request = request;
    this.client = client;
    this.#dialed = dialed;
  }

  get #ends(): Dialed {
    if (this.#dialed === undefined) throw new Error('the call has reached no server');
    return this.#dialed;
  }

  get link(): FakeLink {
    return this.#ends.link;
  }

  get server(): ServerListener {
    return this.#ends.listener;
  }

  readonly says = (message: string | object): void => this.server.fromServer(serverFrame(message));

  /** What the link was sent since the last look, parsed. */
  readonly linkHeard = (): readonly unknown[] => messagesOf(this.link.take());
}

export interface CallParts {
  readonly id?: JsonRpcId;
  readonly method?: string;
  readonly principal?: string;
  readonly name?: string;
  /** The call that is asked again, with answers. */
  readonly requestState?: string;
}

export interface CallBenchOptions extends Partial<Omit<CallRegistryOptions, 'calls'>> {
  readonly calls?: CallsParts;
}

/** A registry of calls before a dialer whose links only keep what they get. */
export class CallBench {
  readonly dialer = new FakeDialer();
  readonly deps = createFakeDeps();
  readonly modernCalls: CallRegistry;

  readonly observer = new FakeObserver();

  constructor({ calls: parts, ...options }: CallBenchOptions = {}) {
    const { dialer, deps, observer } = this;
    const calls = createCalls(deps.clock, { observer, ...parts });
    this.modernCalls = new CallRegistry({
      dialers: forEveryCaller(dialer),
      deps,
      calls,
      requestTimeoutMs: 0,
      ...options,
    });
  }

  get clock() {
    return this.deps.clock;
  }

  open(parts: CallParts = {}): OpenedCall {
    const { id = 1, method = 'tools/call', principal = 'anonymous', name = 'x', requestState } = parts;
    const request = clientFrame({ id, method, params: { name, requestState, _meta: ENVELOPE } });
    const metadata = readRequestMetadata(request);
    if ('fault' in metadata) throw new Error(metadata.fault);
    let client: FakeCaller | undefined;
    const origin = { transport: 'streamable-http', principal, environment: undefined, headers: undefined } as const;
    this.modernCalls.open({ frame: request, metadata, ...origin }, () => {
      client = new FakeCaller();
      return client;
    });
    if (client === undefined) throw new Error('no peer was made');
    return new OpenedCall(request, client, this.dialer.dialed.at(-1));
  }
}
