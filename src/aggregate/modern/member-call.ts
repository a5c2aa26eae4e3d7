import { type BridgeError, toBridgeError } from '../../errors.ts';
import type { RequestMetadata } from '../../mcp/classify/request-metadata.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Lane } from '../../relay/call.ts';
import type { CallListener, CallPeer } from '../../relay/modern-call.ts';
import type { CallerEnvironment } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { Member, MemberServer } from '../members.ts';

/** The sender of a modern request. */
export interface ModernCaller {
  readonly principal: string;
  readonly environment: CallerEnvironment | undefined;
  readonly headers: Lane['headers'];
  readonly traceHeaders: Lane['traceHeaders'];
  /** Stands for the client of a pipe, all of whose requests have it; see `CallOrigin`. */
  readonly identity: object | undefined;
}

/** Takes what the client of a request gets. */
export interface RequestSink {
  readonly isOpen: boolean;
  fromServer(frame: Frame): void;
  serverDrained(): void;
}

export interface MemberCallOptions {
  readonly member: Member;
  readonly caller: ModernCaller;
  readonly metadata: RequestMetadata;
  /** Takes a message of the server about the request; its answer, or an error of the bridge, is the last one. */
  readonly told: (frame: Frame) => void;
  /** The server takes messages again. */
  readonly drained: () => void;
}

/**
 * - `starting`: the server is being started.
 * - `open`: the server works on the request.
 * - `over`: answered or withdrawn.
 */
type State = 'starting' | 'open' | 'over';

const NOBODY: CallListener = { clientDrained() {}, clientLeft() {} };

/** A request to a single server. The aggregate is the client. */
export class MemberCall implements CallPeer {
  readonly headers: Lane['headers'];
  readonly traceHeaders: Lane['traceHeaders'];
  listener: CallListener = NOBODY;
  readonly #options: MemberCallOptions;
  #state: State = 'starting';
  #isPaused = false;
  #isFull = false;

  constructor(options: MemberCallOptions) {
    const { member, caller } = options;
    this.#options = options;
    this.headers = member.viewOf(caller).headers;
    this.traceHeaders = caller.traceHeaders;
  }

  get isOpen(): boolean {
    return this.#state !== 'over';
  }

  /** True while the server has not taken the request. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Called once. */
  start(request: Frame): void {
    const { member } = this.#options;
    if (member.running !== undefined) return this.#open(member.running, request);
    member.start().then(
      (server) => {
        if (this.#state === 'starting') this.#open(server, request);
      },
      (thrown: unknown) => this.#fail(request, toBridgeError(thrown)),
    );
  }

  #open({ modernCalls }: MemberServer, frame: Frame): void {
    const { member, caller, metadata } = this.#options;
    const { principal, identity } = caller;
    const { headers, environment } = member.viewOf(caller);
    this.#state = 'open';
    try {
      modernCalls.open(
        { frame, metadata, principal, environment, headers, identity, transport: 'aggregate', introduction: undefined },
        () => this,
      );
    } catch (thrown) {
      this.#fail(frame, toBridgeError(thrown));
    }
  }

  #fail(request: Frame, error: BridgeError): void {
    if (this.isOpen) this.send(errorFrame(request.id, rpcErrorOf(error)));
  }

  // ---- from the client

  withdraw(): void {
    const state = this.#state;
    this.#state = 'over';
    if (state === 'open') this.listener.clientLeft();
  }

  stop(): void {
    this.#isPaused = true;
  }

  goOn(): void {
    this.#isPaused = false;
    if (this.#state === 'open') this.listener.clientDrained();
  }

  // ---- from the server

  send(frame: Frame): boolean {
    if (!this.isOpen) return true;
    if (frame.isResponse) this.#state = 'over';
    this.#options.told(frame);
    return !this.#isPaused;
  }

  pause(): void {
    this.#isFull = true;
  }

  resume(): void {
    if (!this.#isFull) return;
    this.#isFull = false;
    this.#options.drained();
  }
}
