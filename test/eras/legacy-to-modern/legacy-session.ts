import { pino } from 'pino';
import { createLegacyToModernDialer, HELD_LIMITS } from '../../../src/eras/legacy-to-modern/dialer.ts';
import type { ParkedBytesLimits } from '../../../src/eras/parked-bytes.ts';
import type { BridgeError } from '../../../src/errors.ts';
import type { SessionDialer } from '../../../src/relay/ports.ts';
import { Relay } from '../../../src/relay/relay.ts';
import { relayParts } from '../../support/calls.ts';
import { createFakeDeps, type Dialed, FakeDialer, FakeLane, FakePeer, messagesOf } from '../../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';

export const META = 'io.modelcontextprotocol/';

export const TASKS_EXTENSION = `${META}tasks`;

/** Of a server that takes a call as a task only. */
export const NEEDS_TASKS = {
  code: -32021,
  message: 'tasks',
  data: { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
};

/** A message, as loosely as tests look at it. */
export interface Message {
  readonly id?: string | number;
  readonly method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was sent
  readonly params?: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly result?: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly error?: any;
}

export const CAPABILITIES = {
  logging: {},
  completions: {},
  tools: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
};

export const DISCOVERY = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: CAPABILITIES,
  instructions: 'be kind',
  ttlMs: 0,
  cacheScope: 'public',
  _meta: { [`${META}serverInfo`]: { name: 'modern', version: '3' } },
};

export interface ClientOptions {
  readonly revision?: string;
  readonly capabilities?: object;
  readonly clientInfo?: object | undefined;
}

/** A modern server for legacy clients, without transports on either side. */
export class LegacyFront {
  readonly dialer = new FakeDialer();
  readonly deps = createFakeDeps();
  readonly upstream: SessionDialer;

  constructor({
    random = (): number => 0,
    log = pino({ level: 'silent' }),
    heldLimits = HELD_LIMITS as ParkedBytesLimits,
  } = {}) {
    const { dialer } = this;
    const deps = { ...this.deps, log };
    const clientInfoFallback = { name: 'mcp-portage', version: '0' };
    this.upstream = createLegacyToModernDialer({ dialer, deps, clientInfoFallback, random, heldLimits });
  }

  get clock() {
    return this.deps.clock;
  }

  connect(): LegacySession {
    return new LegacySession(this);
  }

  /** After the handshake, with nothing kept of it. */
  open(options: ClientOptions = {}, discovery: object = DISCOVERY): LegacySession {
    const session = this.connect();
    session.initialize(options);
    session.serverAnswers(discovery);
    session.says({ method: 'notifications/initialized' });
    session.heard();
    session.asked();
    return session;
  }
}

export class LegacySession {
  readonly peer = new FakePeer();
  readonly relay: Relay;
  readonly ends: BridgeError[] = [];
  readonly clock;
  readonly #server: Dialed;
  /** Ids of requests the server has seen, latest last; subscriptions apart. */
  readonly ids: (string | number)[] = [];
  readonly listens: number[] = [];

  constructor(front: LegacyFront) {
    this.clock = front.clock;
    this.relay = new Relay({
      log: front.deps.log,
      ...relayParts(front.clock),
      onReady: () => {},
      onEnd: (reason) => void this.ends.push(reason),
    });
    this.relay.join(this.peer, front.upstream.dial(this.relay));
    this.#server = front.dialer.latest;
    this.#server.link.onSend = ({ frame }) => {
      if (frame.kind !== 'request' || frame.id === undefined) return;
      if (frame.method === 'subscriptions/listen') this.listens.push(frame.id as number);
      else this.ids.push(frame.id);
    };
  }

  get link() {
    return this.#server.link;
  }

  // ---- the client

  says(message: string | object, lane = new FakeLane()): void {
    this.relay.fromClient(clientFrame(message), lane);
  }

  initialize({ revision = '2025-11-25', capabilities = {}, clientInfo }: ClientOptions = {}): void {
    const info = clientInfo ?? { name: 'c', version: '1', title: 'C' };
    const params = { protocolVersion: revision, capabilities, clientInfo: info };
    this.says({ id: 'init', method: 'initialize', params });
  }

  call(id: string | number, params: object = { name: 'work' }, method = 'tools/call'): void {
    this.says({ id, method, params });
  }

  /** What the client was told since the last look. */
  heard(): readonly Message[] {
    return messagesOf(this.peer.take()) as Message[];
  }

  // ---- the server

  /** What the server was sent since the last look. */
  asked(): readonly Message[] {
    return messagesOf(this.link.take()) as Message[];
  }

  /** The texts of the same. */
  askedTexts(): readonly string[] {
    return this.link.take().map(({ frame }) => frame.bytes.toString());
  }

  serverSays(message: string | object): void {
    this.#server.listener.fromServer(serverFrame(message));
  }

  /** Answers the latest request. */
  serverAnswers(result: object): void {
    this.serverSays({ id: this.ids.at(-1), result });
  }

  serverRefuses(error: object): void {
    this.serverSays({ id: this.ids.at(-1), error });
  }

  serverCloses(reason: BridgeError): void {
    this.#server.listener.serverClosed(reason);
  }
}

export const done = (text = 'done'): object => ({ resultType: 'complete', content: [{ type: 'text', text }] });
