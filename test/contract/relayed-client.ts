import { systemClock } from '../../src/cli/system-deps.ts';
import { BridgeError } from '../../src/errors.ts';
import { type Era, LATEST_LEGACY_REVISION } from '../../src/mcp/vocabulary/revisions.ts';
import type { SessionDialer, UpstreamLink } from '../../src/relay/ports.ts';
import { Relay } from '../../src/relay/relay.ts';
import { SessionRestorer, type SessionRestorerOptions } from '../../src/relay/sessions/session-restorer.ts';
import { createTestDeps } from '../process/collected-log.ts';
import { relayParts } from '../support/calls.ts';
import { createFakeDeps, FakeLane, FakePeer } from '../support/fake-peers.ts';
import { clientFrame } from '../support/frames.ts';
import { waitFor } from '../support/wait-for.ts';

/** A message as parsed. */
export interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: { readonly content?: readonly { readonly text?: string }[]; readonly [key: string]: unknown };
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

export interface RelayedClientOptions {
  /** Default: legacy. */
  readonly era?: Era;
  readonly protocolVersion?: string;
  readonly capabilities?: object;
  /** What forwarded headers its calls bring along. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Keeps the state of the session, and restores it if it has begun elsewhere. */
  readonly kept?: Pick<SessionRestorerOptions, 'policy' | 'state'>;
}

/** A client that a real relay joins with the server behind `dialer`: only its own connection is pretended. */
export class RelayedClient {
  readonly peer = new FakePeer();
  readonly relay: Relay;
  readonly link: UpstreamLink;
  /** Everything the server said, in order. */
  readonly received: Message[] = [];
  /** Of the messages above, as they came. */
  readonly receivedBytes: Buffer[] = [];
  /** Why it ended, once it has. */
  ended: BridgeError | undefined;
  /** Called with each request of the server. */
  onRequest: (request: Message) => void = () => {};
  /** What forwarded headers its next messages bring along. */
  headers: RelayedClientOptions['headers'];
  readonly #options: RelayedClientOptions;
  #lastId = 0;

  constructor(dialer: SessionDialer, options: RelayedClientOptions = {}) {
    this.#options = options;
    this.headers = options.headers;
    this.relay = new Relay({
      log: createFakeDeps().log,
      ...relayParts(systemClock),
      era: options.era ?? 'legacy',
      onReady: () => {},
      onEnd: (reason) => {
        this.ended = reason;
      },
    });
    this.peer.onSend = ({ frame }) => {
      const message = frame.json() as Message;
      this.received.push(message);
      this.receivedBytes.push(frame.bytes);
      if (message.method !== undefined && message.id !== undefined) this.onRequest(message);
    };
    const { kept } = options;
    const restorer = kept && new SessionRestorer({ deps: createTestDeps().deps, ...kept, dialer, owner: this.relay });
    const isRestored = restorer !== undefined && kept?.state.offer !== undefined;
    this.link = isRestored ? restorer.begin() : dialer.dial(this.relay, kept?.state);
    this.relay.join(this.peer, this.link, restorer);
  }

  /** Sends a message as it stands. */
  send(message: string | object): void {
    const lane = Object.assign(new FakeLane(), this.headers && { headers: this.headers });
    this.relay.fromClient(clientFrame(message), lane);
  }

  /** Sends a request and returns its id at once. */
  start(method: string, params?: object, id: string | number = ++this.#lastId): string | number {
    this.send({ id, method, ...(params && { params }) });
    return id;
  }

  /** Resolves with the answer, whatever it is. */
  answer(id: string | number, timeoutMs = 60_000): Promise<Message> {
    const isAnswer = (message: Message): boolean => message.id === id && message.method === undefined;
    return waitFor(() => this.received.find(isAnswer), {
      timeoutMs,
      message: `an answer to request ${id}`,
    });
  }

  request(method: string, params?: object): Promise<Message> {
    return this.answer(this.start(method, params));
  }

  /** Calls a tool and resolves with the text it answers. */
  async call(name: string, args: object = {}, meta?: object): Promise<string> {
    const answer = await this.request('tools/call', { name, arguments: args, ...(meta && { _meta: meta }) });
    const text = answer.result?.content?.[0]?.text;
    if (text === undefined) throw new Error(`${name} was not answered with a text: ${JSON.stringify(answer)}`);
    return text;
  }

  notify(method: string, params?: object): void {
    this.send({ method, ...(params && { params }) });
  }

  startInitialize(): string | number {
    const { protocolVersion = LATEST_LEGACY_REVISION.id, capabilities = {} } = this.#options;
    const clientInfo = { name: 'contract-client', version: '1.0.0' };
    return this.start('initialize', { protocolVersion, capabilities, clientInfo });
  }

  /** The whole handshake. */
  async initialize(): Promise<Message> {
    const answer = await this.answer(this.startInitialize());
    if (answer.result === undefined) throw new Error(`initialize failed: ${JSON.stringify(answer)}`);
    this.notify('notifications/initialized');
    return answer;
  }

  /** Notifications of this method so far. */
  notifications(method: string): readonly Message[] {
    return this.received.filter((message) => message.method === method && message.id === undefined);
  }

  close(): void {
    this.relay.clientClosed(new BridgeError('ERR_SESSION_CLOSED', 'the client is gone'));
  }
}
