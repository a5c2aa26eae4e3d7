import type { BridgeError } from '../../errors.ts';
import type { Call } from '../../relay/call.ts';
import { type Frame, hasPlainId, type JsonRpcId } from '../../wire/frame.ts';
import { Outgoing } from '../remote/link-messages.ts';
import { PostedCall, type PostHost, type Posting } from '../remote/posted-call.ts';
import type { ServerEnvironment } from '../remote/remote-environment.ts';
import { isOutOfReach } from '../resilience/reachability.ts';
import { createPosting, type PostedMessage, postRequest } from './posting.ts';
import { ToolHeaders } from './tool-headers.ts';

/**
 * Limit of open subscriptions at one server for all clients together. Each is a connection as long as its client lives.
 */
const MAX_SUBSCRIPTIONS = 1024;
/** Limit of principals whose tools are remembered. The least recently used is dropped. */
const MAX_PRINCIPALS = 256;

type Doubted = (call: Call | undefined) => void;

export interface StatelessServerOptions {
  readonly environment: ServerEnvironment;
  /** Called with undefined when the server has answered, otherwise with the reason why it could not be reached. */
  readonly reachable: (error: BridgeError | undefined) => void;
  readonly doubted: Doubted;
}

/** A modern server over HTTP: options and state shared by all clients. */
export class StatelessServer {
  readonly environment: ServerEnvironment;
  /**
   * Call this when the server rejects a client's request in a way that no modern server does, before the rejection is
   * passed on.
   */
  readonly doubted: Doubted;
  readonly #reachable: StatelessServerOptions['reachable'];
  readonly #posting: Posting;
  /** Headers of tools by principal, least recently used first. */
  readonly #tools = new Map<string, ToolHeaders>();
  #lastId = 0;
  #subscriptions = 0;

  constructor({ environment, reachable, doubted }: StatelessServerOptions) {
    this.environment = environment;
    this.doubted = doubted;
    this.#reachable = reachable;
    this.#posting = createPosting(environment);
  }

  /** Posts a message now. */
  post(owner: PostHost, message: PostedMessage): PostedCall {
    const request = postRequest(this.environment, message);
    return new PostedCall(this.#posting, owner, new Outgoing(message.frame), request);
  }

  /** Call this when the server responds. */
  responded(): void {
    this.#reachable(undefined);
  }

  /** Call this when a message was not answered. */
  failed(error: BridgeError): void {
    if (isOutOfReach(error)) this.#reachable(error);
  }

  /** Notes the form of the id under which the server answered a request. */
  matched(answer: Frame, request: Frame): void {
    if (answer.id === request.id && hasPlainId(answer)) return;
    this.environment.idWarnings.changed(answer.id as JsonRpcId, request.id as JsonRpcId);
  }

  /** Returns the known tools of a principal, since a server may offer different tools to each. */
  toolsOf(principal: string | undefined): ToolHeaders {
    const known = principal === undefined ? undefined : this.#tools.get(principal);
    const tools = known ?? new ToolHeaders(this.environment.http.clock, this.environment.log);
    if (principal === undefined) return tools;
    this.#tools.delete(principal);
    this.#tools.set(principal, tools);
    const [oldest] = this.#tools.keys();
    if (this.#tools.size > MAX_PRINCIPALS && oldest !== undefined) this.#tools.delete(oldest);
    return tools;
  }

  /** Returns an id for a request, which is never used twice. */
  nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  /** Returns a random number from 0 to 1. */
  random(): number {
    return Math.random();
  }

  /**
   * Counts a new subscription. Returns false if the server has as many as are allowed. Each counted one has to be
   * removed.
   */
  addSubscription(): boolean {
    if (this.#subscriptions >= MAX_SUBSCRIPTIONS) return false;
    this.#subscriptions += 1;
    return true;
  }

  removeSubscription(): void {
    this.#subscriptions -= 1;
  }
}
