import type { BridgeError } from '../../../../src/errors.ts';
import { UNDECLARED } from '../../../../src/mcp/translate/sessionless.ts';
import { CallRegistry } from '../../../../src/relay/call-registry.ts';
import { forEveryCaller } from '../../../../src/relay/dialer-adapters.ts';
import { Relay } from '../../../../src/relay/relay.ts';
import { SharedModernServer } from '../../../../src/relay/shared/modern/modern-era.ts';
import { asSessionDialer } from '../../../../src/upstream/connection.ts';
import { askWhenHanging } from '../../../../src/upstream/resilience/life-check.ts';
import type { Frame } from '../../../../src/wire/frame.ts';
import { createCalls, relayParts } from '../../../support/calls.ts';
import { type FakeConnection, FakeConnector } from '../../../support/fake-connections.ts';
import { createFakeDeps, FakeLane, FakePeer, messagesOf } from '../../../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../../../support/frames.ts';
import { FakeCaller } from '../../call-pair.ts';
import { EXITED, GONE, type Message, WATCHED } from '../legacy/shared-bridge.ts';

export const META = 'io.modelcontextprotocol/';
export const SUBSCRIPTION_ID = `${META}subscriptionId`;

export const ENVELOPE = {
  [`${META}protocolVersion`]: '2026-07-28',
  [`${META}clientCapabilities`]: {},
  [`${META}clientInfo`]: { name: 'c', version: '1' },
};

/** A shared modern server whose child is a fake connection, and its clients, each behind a relay of its own. */
export class ModernBridge {
  readonly dialer = new FakeConnector();
  readonly deps: ReturnType<typeof createFakeDeps>;
  readonly server: SharedModernServer;

  /** @param log default: silent */
  constructor({
    prewarm = false,
    isWatched = false,
    dialer = (_dialer: FakeConnector): void => {},
    log = createFakeDeps().log,
  } = {}) {
    dialer(this.dialer);
    const deps = { ...createFakeDeps(), log };
    this.deps = deps;
    if (isWatched) this.dialer.createLifeCheck = askWhenHanging({ ...WATCHED, era: 'modern', deps });
    this.server = new SharedModernServer({ dialer: asSessionDialer(this.dialer), deps, prewarm });
  }

  get clock() {
    return this.deps.clock;
  }

  /** The child that runs now, or ran last. */
  get link(): FakeConnection {
    return this.dialer.latest.link;
  }

  /** What the child was sent since the last look. */
  heard(): readonly Message[] {
    return messagesOf(this.link.take()) as Message[];
  }

  says(message: string | object): void {
    this.link.heardAt(this.clock.now());
    this.dialer.latest.listener.fromServer(serverFrame(message));
  }

  exits(reason: BridgeError = EXITED): void {
    this.dialer.latest.listener.serverClosed(reason);
  }

  /** A client on a pipe. */
  connect(options: { readonly requestTimeoutMs?: number } = {}): ModernClient {
    return new ModernClient(this, options);
  }

  /** A client whose requests come alone, as over HTTP. */
  connectAlone(): ModernCaller {
    return new ModernCaller(this);
  }
}

export class ModernClient {
  readonly peer = new FakePeer();
  readonly relay: Relay;
  readonly ends: BridgeError[] = [];

  constructor(bridge: ModernBridge, { requestTimeoutMs = 0 }: { readonly requestTimeoutMs?: number }) {
    this.relay = new Relay({
      log: bridge.deps.log,
      ...relayParts(bridge.deps.clock, { requestTimeoutMs }),
      era: 'modern',
      onReady: () => {},
      onEnd: (reason) => void this.ends.push(reason),
    });
    this.relay.join(this.peer, bridge.server.dial(this.relay));
  }

  says(message: string | object): Frame {
    const frame = clientFrame(message);
    this.relay.fromClient(frame, new FakeLane());
    return frame;
  }

  /** A request with its envelope, to which `meta` is added. */
  call(id: string | number, { method = 'tools/call', params = {}, meta = {} }: CallParts = {}): void {
    this.says({ id, method, params: { ...params, _meta: { ...ENVELOPE, ...meta } } });
  }

  listen(id: string | number, notifications: object = { toolsListChanged: true }): void {
    this.call(id, { method: 'subscriptions/listen', params: { notifications } });
  }

  leaves(): void {
    this.relay.clientClosed(GONE);
  }

  /** What it was told since the last look. */
  heard(): readonly Message[] {
    return messagesOf(this.peer.take()) as Message[];
  }

  /** The same as the bytes it was given. */
  heardTexts(): readonly string[] {
    return this.peer.take().map(({ frame }) => frame.bytes.toString());
  }
}

/** A client whose requests come alone, and know nothing of each other. */
export class ModernCaller {
  readonly #modernCalls: CallRegistry;
  readonly #open = new Set<FakeCaller>();
  #heard: string[] = [];

  constructor({ server, deps }: ModernBridge) {
    const calls = createCalls(deps.clock);
    this.#modernCalls = new CallRegistry({ dialers: forEveryCaller(server), deps, calls, requestTimeoutMs: 0 });
  }

  get size(): number {
    return this.#modernCalls.size;
  }

  /** Returns the request's own client. */
  says(message: string | object): FakeCaller {
    const frame = clientFrame(message);
    const caller = new FakeCaller();
    caller.onSend = () => this.#told(caller);
    this.#open.add(caller);
    const origin = {
      transport: 'streamable-http',
      principal: 'p',
      environment: undefined,
      headers: undefined,
    } as const;
    this.#modernCalls.open({ ...origin, frame, metadata: UNDECLARED }, () => caller);
    return caller;
  }

  #told(caller: FakeCaller): void {
    const last = caller.sent.at(-1);
    if (last === undefined) return;
    this.#heard.push(last.bytes.toString());
    if (last.isResponse) this.#open.delete(caller);
  }

  /** Withdraws all that it has open. */
  leaves(): void {
    for (const caller of this.#open) caller.listener.clientLeft();
    this.#open.clear();
  }

  /** The texts of what its requests were told since the last look. */
  heardTexts(): readonly string[] {
    return this.#heard.splice(0);
  }
}

export interface CallParts {
  readonly method?: string;
  readonly params?: object;
  readonly meta?: object;
}

/** The subscription a message says it is of. */
export function subscriptionOf(message: Message | undefined): unknown {
  const { _meta } = (message?.params ?? message?.result ?? {}) as { _meta?: Record<string, unknown> };
  return _meta?.[SUBSCRIPTION_ID];
}

export function acknowledgment(subscriptionId: unknown, notifications: object = { toolsListChanged: true }): object {
  const params = { _meta: { [SUBSCRIPTION_ID]: subscriptionId }, notifications };
  return { method: 'notifications/subscriptions/acknowledged', params };
}

export function change(subscriptionId: unknown, method = 'notifications/tools/list_changed', params = {}): object {
  return { method, params: { ...params, _meta: { [SUBSCRIPTION_ID]: subscriptionId } } };
}
