import { BridgeError } from '../../../../src/errors.ts';
import { Relay } from '../../../../src/relay/relay.ts';
import { createSharedLegacyServer } from '../../../../src/relay/shared/legacy/legacy-era.ts';
import { asSessionDialer } from '../../../../src/upstream/connection.ts';
import { askWhenHanging } from '../../../../src/upstream/resilience/life-check.ts';
import type { Frame } from '../../../../src/wire/frame.ts';
import { relayParts } from '../../../support/calls.ts';
import { type FakeConnection, FakeConnector } from '../../../support/fake-connections.ts';
import { createFakeDeps, FakeLane, FakePeer, messagesOf } from '../../../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../../../support/frames.ts';

export const EXITED = new BridgeError('ERR_UPSTREAM_EXITED', 'the server exited with code 1');
export const GONE = new BridgeError('ERR_SESSION_CLOSED', 'the client left');

/** The pause before the first restart, where the dialer names none. */
export const RESTART_MS = 250;

/** Of a child that is watched. */
export const WATCHED = {
  name: 'fake-server',
  requestTimeoutMs: 10_000,
  hangTimeoutMs: 3000,
  clientInfo: { name: 'bridge', version: '0' },
};

/** A message as tests read it. */
export interface Message {
  readonly jsonrpc?: string;
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: { readonly bridge?: Readonly<Record<string, unknown>> };
  };
}

export const SERVER_RESULT = {
  protocolVersion: '2025-11-25',
  capabilities: {
    tools: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    logging: {},
    tasks: { list: {}, cancel: {} },
  },
  serverInfo: { name: 'fake', version: '1' },
  instructions: 'be kind',
};

export interface ClientOptions {
  readonly protocolVersion?: string;
  readonly capabilities?: object;
}

/** A shared server whose child is a fake connection, and its clients, each behind a relay of its own. */
export class SharedBridge {
  readonly dialer = new FakeConnector();
  readonly deps: ReturnType<typeof createFakeDeps>;
  readonly server: ReturnType<typeof createSharedLegacyServer>;

  /** @param log default: silent */
  constructor({
    prewarm = false,
    handshakeTimeoutMs = 0,
    isWatched = false,
    dialer = (_dialer: FakeConnector): void => {},
    log = createFakeDeps().log,
  } = {}) {
    dialer(this.dialer);
    const deps = { ...createFakeDeps(), log };
    this.deps = deps;
    if (isWatched) this.dialer.createLifeCheck = askWhenHanging({ ...WATCHED, era: 'legacy', deps });
    this.server = createSharedLegacyServer({
      dialer: asSessionDialer(this.dialer),
      deps,
      prewarm,
      handshakeTimeoutMs,
      clientInfo: { name: 'bridge', version: '0' },
    });
  }

  get clock() {
    return this.deps.clock;
  }

  /** The child that was started last. */
  get link(): FakeConnection {
    return this.dialer.latest.link;
  }

  /** What the child was told since the last look. */
  heard(): readonly Message[] {
    return messagesOf(this.link.take()) as Message[];
  }

  /** The child says something. */
  says(message: string | object): Frame {
    const frame = serverFrame(message);
    this.link.heardAt(this.clock.now());
    this.dialer.latest.listener.fromServer(frame);
    return frame;
  }

  /** The child answers the handshake of the bridge; what it was told until then is forgotten. */
  answerHandshake(result: unknown = SERVER_RESULT): void {
    const hello = this.heard().find(({ method }) => method === 'initialize');
    if (hello?.id === undefined) throw new Error('the child has not been asked to initialize');
    this.says({ id: hello.id, result });
  }

  exits(reason = EXITED): void {
    this.dialer.latest.listener.serverClosed(reason);
  }

  /** After the end of a child: lets the pause pass and the next one be initialized; returns what else it was told. */
  restart(result: unknown = SERVER_RESULT): readonly (readonly [method: string | undefined, params: unknown])[] {
    const before = this.dialer.dialed.length;
    this.clock.advance(RESTART_MS);
    if (this.dialer.dialed.length !== before + 1) throw new Error('no restart');
    this.answerHandshake(result);
    return this.heard().map(({ method, params }) => [method, params]);
  }

  /** A client that has not said anything yet. */
  connect(options: ClientOptions & { readonly requestTimeoutMs?: number } = {}): SharedClient {
    return new SharedClient(this, options);
  }

  /** A client after its handshake; nobody remembers what was said. */
  join(options: ClientOptions & { readonly requestTimeoutMs?: number } = {}): SharedClient {
    const client = this.connect(options);
    client.initialize();
    if (this.link.sent.some(({ frame }) => frame.method === 'initialize')) this.answerHandshake();
    client.says({ method: 'notifications/initialized' });
    client.peer.take();
    this.link.take();
    return client;
  }

  /** The requests the child was sent since the last look, answered with an empty result. */
  answerAll(): void {
    for (const { id, method } of this.heard())
      if (id !== undefined && method !== undefined) this.says({ id, result: {} });
  }
}

export class SharedClient {
  readonly peer = new FakePeer();
  readonly lane = new FakeLane();
  readonly relay: Relay;
  readonly ends: BridgeError[] = [];
  readonly #options: ClientOptions;

  constructor(bridge: SharedBridge, options: ClientOptions & { readonly requestTimeoutMs?: number }) {
    this.#options = options;
    this.relay = new Relay({
      log: bridge.deps.log,
      ...relayParts(bridge.deps.clock, { requestTimeoutMs: options.requestTimeoutMs ?? 0 }),
      onReady: () => {},
      onEnd: (reason) => void this.ends.push(reason),
    });
    this.relay.join(this.peer, bridge.server.dial(this.relay));
  }

  initialize(id: string | number = 'init'): void {
    const { protocolVersion = '2025-11-25', capabilities = {} } = this.#options;
    this.says({ id, method: 'initialize', params: { protocolVersion, capabilities, clientInfo: { name: 'c' } } });
  }

  says(message: string | object): Frame {
    const frame = clientFrame(message);
    this.relay.fromClient(frame, this.lane);
    return frame;
  }

  call(id: string | number, method = 'tools/call', params: object = {}): void {
    this.says({ id, method, params });
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

/** The only element. */
export function only<Item>(items: readonly Item[]): Item {
  if (items.length !== 1) throw new Error(`expected one, got ${items.length}: ${JSON.stringify(items)}`);
  return items[0] as Item;
}

/** The stable code in an error of the bridge. */
export function reasonOf(message: Message | undefined): unknown {
  return message?.error?.data?.bridge?.reason;
}
