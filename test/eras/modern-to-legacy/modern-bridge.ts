import { createModernToLegacyDialer, type ModernToLegacyOptions } from '../../../src/eras/modern-to-legacy/dialer.ts';
import { BridgeError } from '../../../src/errors.ts';
import { readRequestMetadata } from '../../../src/mcp/classify/request-metadata.ts';
import { Call } from '../../../src/relay/call.ts';
import type { CallDialer, UpstreamLink } from '../../../src/relay/ports.ts';
import type { JsonRpcId } from '../../../src/wire/frame.ts';
import { notificationFrame } from '../../../src/wire/write-message.ts';
import { dialCall } from '../../support/dial-call.ts';
import {
  createFakeDeps,
  type Dialed,
  FakeDialer,
  FakeLane,
  FakeServerListener,
  messagesOf,
} from '../../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';

const LEFT = new BridgeError('ERR_SESSION_CLOSED', 'the client left');

/** A message as tests read it. */
export interface Message {
  readonly id?: JsonRpcId;
  readonly method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into messages of all shapes
  readonly params?: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly result?: any;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: { readonly bridge?: object } };
}

export const SERVER_RESULT = {
  protocolVersion: '2025-11-25',
  capabilities: {
    tools: { listChanged: true },
    prompts: {},
    resources: { subscribe: true, listChanged: true },
    logging: {},
  },
  serverInfo: { name: 'old', version: '1' },
  instructions: 'be kind',
};

export const ALL = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} };

export interface AskOptions {
  readonly id?: JsonRpcId;
  readonly principal?: string;
  readonly capabilities?: object;
  /** Undefined: it says nothing of itself. */
  readonly clientInfo?: object | undefined;
  readonly logLevel?: string;
  readonly progressToken?: JsonRpcId;
  /** As the client wrote it. */
  readonly rawToken?: string;
  /** What proves, to somebody in between, that requests are of one client. */
  readonly identity?: object;
  /** Default: one for this request alone, as over HTTP. */
  readonly connection?: ModernConnection | undefined;
}

/** Modern clients, the translation, and a legacy server that says what the test wants. */
export class ModernBridge {
  readonly dialer = new FakeDialer();
  readonly deps = createFakeDeps();
  readonly modern: CallDialer;
  /** What `initialize` answers by itself; undefined: nothing. */
  greeting: object | undefined;
  readonly #namesCalls: boolean;

  /** @param namesCalls the transport says what an answer belongs to; default: where it is to be believed */
  constructor({
    greeting = SERVER_RESULT,
    namesCalls,
    ...options
  }: Partial<ModernToLegacyOptions> & { greeting?: object; namesCalls?: boolean } = {}) {
    this.greeting = greeting;
    this.#namesCalls = namesCalls ?? options.attribution === 'stream';
    this.dialer.onDial = (dialed) => this.#greet(dialed);
    this.modern = createModernToLegacyDialer({
      dialer: this.dialer,
      deps: this.deps,
      handshakeTimeoutMs: 0,
      clientInfo: { name: 'bridge', version: '0' },
      sharing: 'by-name',
      ...options,
    });
  }

  #greet({ link, listener }: Dialed): void {
    link.onSend = ({ frame, call }) => {
      if (frame.method === 'initialize' && this.greeting !== undefined) {
        listener.fromServer(serverFrame({ id: frame.id, result: this.greeting }), this.#namesCalls ? call : undefined);
      }
    };
  }

  get clock() {
    return this.deps.clock;
  }

  /** What a session's server was told since the last look, without the handshake. */
  heard(session = this.dialer.dialed.length - 1): readonly Message[] {
    const messages = messagesOf(this.dialer.dialed[session]?.link.take() ?? []) as Message[];
    return messages.filter(({ method }) => method !== 'initialize' && method !== 'notifications/initialized');
  }

  /** The only message, which must have this method. */
  heardOnly(method: string): Message & { readonly id: JsonRpcId } {
    const messages = this.heard();
    const [message] = messages;
    if (messages.length !== 1 || message?.method !== method) throw new Error(`heard ${JSON.stringify(messages)}`);
    return message as Message & { readonly id: JsonRpcId };
  }

  says(message: string | object, session = this.dialer.dialed.length - 1): void {
    this.dialer.dialed[session]?.listener.fromServer(serverFrame(message));
  }

  /** Says something on the stream of a request, as only HTTP can. */
  saysOn(call: Call | undefined, message: object): void {
    this.dialer.latest.listener.fromServer(serverFrame(message), call);
  }

  exits(session = this.dialer.dialed.length - 1): void {
    this.dialer.dialed[session]?.listener.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', 'the server exited'));
  }

  /** One request of a modern client, as a link of its own. */
  ask(method: string, params: object = {}, options: AskOptions = {}): ModernRequest {
    return new ModernRequest(this.modern, method, params, options);
  }

  call(params: object = {}, options: AskOptions = {}): ModernRequest {
    return this.ask('tools/call', { name: 'x', arguments: {}, ...params }, { capabilities: ALL, ...options });
  }

  /** A client on a connection of its own, such as a pipe. */
  connect(principal = 'ada'): ModernConnection {
    const listener = new FakeServerListener();
    return { listener, link: this.modern.dialCalls(listener, { principal, headers: undefined }) };
  }

  /** A call with params as the client wrote them, without their braces. */
  raw(params: string): ModernRequest {
    return new ModernRequest(this.modern, 'tools/call', params, { capabilities: ALL });
  }

  /** Lets the window pass in which questions are collected. */
  collect(): void {
    this.clock.advance(25);
  }
}

/** What carries all requests of one client. */
export interface ModernConnection {
  readonly listener: FakeServerListener;
  readonly link: UpstreamLink;
}

export class ModernRequest {
  readonly listener: FakeServerListener;
  readonly call: Call;
  readonly #link: UpstreamLink;

  constructor(modern: CallDialer, method: string, params: object | string, options: AskOptions) {
    const {
      id = 7,
      principal = 'ada',
      identity,
      capabilities = {},
      logLevel,
      progressToken,
      rawToken,
      connection,
    } = options;
    const { clientInfo } = { clientInfo: { name: 'c', version: '1' }, ...options };
    const envelope = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': capabilities,
      ...(clientInfo !== undefined && { 'io.modelcontextprotocol/clientInfo': clientInfo }),
      ...(logLevel !== undefined && { 'io.modelcontextprotocol/logLevel': logLevel }),
      ...(progressToken !== undefined && { progressToken }),
    };
    const members = typeof params === 'string' ? params : JSON.stringify(params).slice(1, -1);
    const own = members === '' ? '' : `${members},`;
    const token = rawToken === undefined ? '' : `"progressToken":${rawToken},`;
    const meta = `{${token}${JSON.stringify(envelope).slice(1)}`;
    const frame = clientFrame(
      `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"${method}","params":{${own}"_meta":${meta}}}`,
    );
    const metadata = readRequestMetadata(frame);
    if ('fault' in metadata) throw new Error(metadata.fault);
    this.call = new Call(id, method, new FakeLane(), progressToken, 0);
    this.listener = connection?.listener ?? new FakeServerListener();
    this.#link =
      connection?.link ?? dialCall(modern, this.listener, { principal, identity, metadata, headers: undefined });
    this.#link.send(frame, this.call);
  }

  /** What the client was told since the last look. */
  told(): readonly Message[] {
    const { received } = this.listener;
    const [own, others] = [true, false].map((isOwn) => received.filter(({ call }) => (call === this.call) === isOwn));
    received.splice(0, received.length, ...(others ?? []));
    return messagesOf(own ?? []) as Message[];
  }

  /** Its answer, the only thing it was told. */
  answer(): Message {
    const messages = this.told();
    const [message] = messages;
    if (message === undefined || messages.length !== 1) throw new Error(`told ${JSON.stringify(messages)}`);
    return message;
  }

  leaves(): void {
    this.#link.close(LEFT);
  }

  cancels(): void {
    this.#link.send(notificationFrame('notifications/cancelled', { requestId: this.call.id }), this.call);
  }
}
