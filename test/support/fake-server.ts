import type { BridgeError } from '../../src/errors.ts';
import type { Call } from '../../src/relay/call.ts';
import { CallsOverLinks } from '../../src/relay/call-over-link.ts';
import type { CallServer } from '../../src/relay/modern-call.ts';
import type {
  CallContext,
  CallerDialers,
  CallerEnvironment,
  DialerForCaller,
  ServerFault,
  ServerListener,
  UpstreamDialer,
  UpstreamLink,
} from '../../src/relay/ports.ts';
import type { Readiness } from '../../src/relay/readiness.ts';
import type { Frame, JsonRpcId } from '../../src/wire/frame.ts';
import { errorFrame, notificationFrame, requestFrame, resultFrame } from '../../src/wire/write-message.ts';
import type { SoleCallContext } from './dial-call.ts';
import { serverFrame } from './frames.ts';

/** What a fake server does by itself with a request; without one it stays silent. */
export type RequestScript = (request: Frame, connection: FakeConnection) => void;

/** The name under which there can be a script for methods that have none of their own. */
export const ANY_METHOD = '*';

const answerInitialize: RequestScript = (request, connection) => {
  const { params } = request.json() as { params?: { protocolVersion: unknown } | null };
  connection.answer(request, {
    // A client may send what it likes, and the server under it has to outlive that.
    protocolVersion: params?.protocolVersion ?? '2025-11-25',
    capabilities: { tools: { listChanged: true }, logging: {} },
    serverInfo: { name: 'fake', version: '1.0.0' },
  });
};

/** A server inside the test: answers what it has a script for and does the rest when it is told to. */
export class FakeServer implements UpstreamDialer, CallerDialers {
  readonly name = 'fake server';
  readonly connections: FakeConnection[] = [];
  readonly scripts = new Map<string, RequestScript>([['initialize', answerInitialize]]);
  state: Readiness = { state: 'ready' };
  /** Thrown at the next attempts to connect. */
  refusal: BridgeError | undefined;

  dial(listener: ServerListener): UpstreamLink {
    return this.#connect(listener, undefined, undefined);
  }

  dialCalls(listener: ServerListener, context: CallContext): UpstreamLink {
    return this.#connect(listener, context, undefined);
  }

  callServer(): CallServer {
    return this.#callServer((listener, context) => this.dialCall(listener, context));
  }

  /** Called for each request that comes alone, once it has come. */
  dialCall(listener: ServerListener, context: SoleCallContext): UpstreamLink {
    return this.#connect(listener, context, undefined);
  }

  #callServer(dial: FakeServer['dialCall']): CallServer {
    if (this.refusal !== undefined) throw this.refusal;
    return new CallsOverLinks((listener, { principal, lane }, metadata) =>
      dial(listener, { principal, metadata, headers: lane.headers }),
    );
  }

  forCaller(environment: CallerEnvironment | undefined): DialerForCaller {
    // By way of the methods that tests override, where nothing is told.
    if (environment === undefined) return this;
    return {
      dial: (listener) => this.#connect(listener, undefined, environment),
      dialCalls: (listener, context) => this.#connect(listener, context, environment),
      callServer: () => this.#callServer((listener, context) => this.#connect(listener, context, environment)),
    };
  }

  linkEnded(): void {}

  #connect(
    listener: ServerListener,
    context: FakeContext | undefined,
    environment: CallerEnvironment | undefined,
  ): UpstreamLink {
    if (this.refusal !== undefined) throw this.refusal;
    const connection = new FakeConnection(listener, this.scripts, context);
    connection.environment = environment;
    this.connections.push(connection);
    return connection;
  }

  /** The connection made last. */
  get latest(): FakeConnection {
    const latest = this.connections.at(-1);
    if (latest === undefined) throw new Error('nobody has connected to the fake server');
    return latest;
  }

  readiness(): Readiness {
    return this.state;
  }

  async close(): Promise<void> {}
  killNow(): void {}
}

type FakeContext = CallContext & Partial<SoleCallContext>;

interface Awaited {
  readonly method: string;
  readonly found: (frame: Frame) => void;
}

/** One client's connection to the fake server, seen from the server. */
export class FakeConnection implements UpstreamLink {
  /** Everything the client sent, in order. */
  readonly received: Frame[] = [];
  /** The call each of them came with. */
  readonly calls: (Call | undefined)[] = [];
  /** Taking a message while true says "full". */
  isFull = false;
  /** The bridge has asked this server to be silent. */
  isPaused = false;
  /** How often it has asked that. */
  pauses = 0;
  closedFor: BridgeError | undefined;
  readonly process = undefined;
  /** The client that modern requests were dialed for, and the metadata of one that came alone. */
  readonly context: FakeContext | undefined;
  /** What its process would have been told of the caller. */
  environment: CallerEnvironment | undefined;
  listener: ServerListener;
  readonly #scripts: ReadonlyMap<string, RequestScript>;
  readonly #seen = new Set<Frame>();
  #resumed: (() => void)[] = [];
  #awaited: Awaited[] = [];

  constructor(listener: ServerListener, scripts: ReadonlyMap<string, RequestScript>, context: FakeContext | undefined) {
    this.context = context;
    this.listener = listener;
    this.#scripts = scripts;
  }

  // ---- what the bridge calls

  send(frame: Frame, call?: Call): boolean {
    this.received.push(frame);
    this.calls.push(call);
    const script =
      frame.kind === 'request' ? (this.#scripts.get(frame.method ?? '') ?? this.#scripts.get(ANY_METHOD)) : undefined;
    // Never within `send`: a process does not answer before it was asked.
    if (script !== undefined) setImmediate(() => this.closedFor ?? script(frame, this));
    for (const awaited of this.#awaited) {
      if (awaited.method !== frame.method) continue;
      this.#seen.add(frame);
      this.#awaited = this.#awaited.filter((other) => other !== awaited);
      awaited.found(frame);
      break;
    }
    return !this.isFull;
  }

  pause(): void {
    if (!this.isPaused) this.pauses += 1;
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    for (const resume of this.#resumed.splice(0)) resume();
  }

  close(reason: BridgeError): void {
    this.closedFor ??= reason;
  }

  // ---- what tests call

  /** The next message with this method that no earlier call of `next` has returned. */
  next(method: string): Promise<Frame> {
    const unseen = this.received.find((frame) => frame.method === method && !this.#seen.has(frame));
    if (unseen !== undefined) {
      this.#seen.add(unseen);
      return Promise.resolve(unseen);
    }
    return new Promise((found) => this.#awaited.push({ method, found }));
  }

  /** The client's answers to requests of this server. */
  get answers(): readonly Frame[] {
    return this.received.filter((frame) => frame.isResponse);
  }

  say(frame: Frame | string): void {
    this.listener.fromServer(typeof frame === 'string' ? serverFrame(frame) : frame);
  }

  answer(request: Frame, result: unknown = {}): void {
    this.say(resultFrame(request.id as JsonRpcId, result));
  }

  refuse(request: Frame, code: number, message: string): void {
    this.say(errorFrame(request.id as JsonRpcId, { code, message }));
  }

  notify(method: string, params?: object): void {
    this.say(notificationFrame(method, params));
  }

  ask(id: JsonRpcId, method: string, params?: object): void {
    this.say(requestFrame(id, method, params));
  }

  fault(fault: ServerFault): void {
    this.listener.serverFault(fault);
  }

  /** Resolves as soon as the bridge lets this server speak. */
  async mayTalk(): Promise<void> {
    if (this.isPaused) await new Promise<void>((resume) => this.#resumed.push(resume));
  }

  /** Takes some messages, and is full again with the next. */
  drainBriefly(): void {
    this.isFull = true;
    this.listener.serverDrained();
  }

  /** Takes messages again after having been full. */
  drain(): void {
    this.isFull = false;
    this.listener.serverDrained();
  }

  die(reason: BridgeError): void {
    this.listener.serverClosed(reason);
  }
}
