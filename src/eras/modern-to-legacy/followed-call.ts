import type { Deps } from '../../deps.ts';
import type { LogLevel } from '../../mcp/vocabulary/client-declarations.ts';
import type { Fields } from '../../mcp/vocabulary/payload.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import type { OutcomeStorage } from '../../relay/shared-state.ts';
import type { Frame } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { SessionWanted } from './pool/session-wanted.ts';
import { type CallObserver, ParkedCall, type ParkedCallHost, type RestoredCall } from './questions/parked-call.ts';
import type { ParkedCalls } from './questions/parked-calls.ts';
import type { ClientAsker, InputQuestion } from './questions/questions.ts';
import { type RequestStates, requestDigest } from './questions/request-state.ts';
import type { Continuation } from './questions/waiting-call.ts';

/** A request of the client that follows a call. */
export interface Follower extends CallObserver {
  readonly logLevel: LogLevel | undefined;
  /** The progress token as the client wrote it. */
  readonly progressToken: Buffer | undefined;
  notify(frame: Frame): void;
  serverDrained(): void;
}

/** The parts that parking a call needs. */
export interface ParkingServices {
  readonly deps: Deps;
  readonly states: RequestStates;
  readonly calls: ParkedCalls<ParkedCall<Follower>>;
  /** Storage for outcomes that outlive this process, with those of other bridges; undefined: none. */
  readonly outcomes: OutcomeStorage | undefined;
}

export interface FollowedCallOptions {
  readonly services: ParkingServices;
  readonly wanted: SessionWanted;
  /** The client's first request, with its envelope. */
  readonly request: Frame;
}

/**
 * - `plain`: nothing was asked, and the client's first request waits for the outcome.
 * - `asked`: the server has asked something; the park knows who follows the call.
 * - `over`: nobody waits, and nobody can come back.
 */
type Following =
  | { readonly kind: 'plain'; readonly first: Follower }
  | { readonly kind: 'asked'; readonly park: ParkedCall<Follower> }
  | { readonly kind: 'over' };

const OVER: Following = { kind: 'over' };

/**
 * A call of a modern client, and the requests that follow it. Most calls are followed by one, because nothing is asked
 * in them.
 */
export abstract class FollowedCall<Options extends FollowedCallOptions = FollowedCallOptions>
  implements ParkedCallHost<Follower>, ClientAsker
{
  protected readonly options: Options;
  #following: Following;

  /** `first`: the client's first request; undefined: `restore` follows. */
  constructor(options: Options, first: Follower | undefined) {
    this.options = options;
    this.#following = first === undefined ? OVER : { kind: 'plain', first };
  }

  abstract joined(follower: Follower): void;
  abstract proceed(): void;
  abstract over(): void;
  abstract forgotten(): void;
  abstract continuation(): Continuation | undefined;
  abstract handedOver(): void;
  /** The server's name and version, for the `_meta` of results. */
  protected abstract get serverInfo(): Fields | undefined;

  get followers(): Iterable<Follower> {
    const following = this.#following;
    if (following.kind === 'asked') return following.park.observers;
    return following.kind === 'plain' ? [following.first] : [];
  }

  /** The client is being asked something, and nobody follows. */
  get isParked(): boolean {
    if (this.#following.kind !== 'asked') return false;
    const { state, observers } = this.#following.park;
    return state === 'parked' && observers.size === 0;
  }

  /** True while the client is not being asked, and a request waits for the outcome. */
  protected get isRunning(): boolean {
    return this.#following.kind === 'asked'
      ? this.#following.park.state === 'running'
      : this.#following.kind === 'plain';
  }

  /** The client withdrew a request, or its connection broke. */
  detach(follower: Follower): void {
    const following = this.#following;
    if (following.kind === 'asked') return following.park.detach(follower);
    if (following.kind !== 'plain' || following.first !== follower) return;
    this.#following = OVER;
    this.over();
  }

  // ---- what the server says

  asked(question: InputQuestion): void {
    const following = this.#following;
    if (following.kind === 'over') return question.refuse();
    const { deps } = this.options.services;
    const park = following.kind === 'asked' ? following.park : this.#openPark(deps.randomId, following.first);
    park.asked(question);
  }

  withdrawn(question: InputQuestion): void {
    if (this.#following.kind === 'asked') this.#following.park.withdrawn(question);
  }

  /** Waits for the client under the id that it had at another bridge. Undefined: there is no capacity for that. */
  protected restore(id: string, restored: RestoredCall): ParkedCall<Follower> | undefined {
    const park = this.#openPark(() => id, undefined);
    return park.restore(restored) ? park : undefined;
  }

  #openPark(createId: () => string, first: Follower | undefined): ParkedCall<Follower> {
    const { services, wanted, request } = this.options;
    const { deps, states, calls, outcomes: storage } = services;
    const park = new ParkedCall<Follower>({
      createId,
      clock: deps.clock,
      states,
      calls,
      storage,
      host: this,
      principal: wanted.principal,
      requestBytes: request.bytes.length,
      digest: () => requestDigest(request),
      serverInfo: this.serverInfo,
      first,
    });
    this.#following = { kind: 'asked', park };
    return park;
  }

  /** The server has answered: `outcome` as the client gets it, under any id. */
  protected finished(outcome: Frame): void {
    if (this.#following.kind === 'asked') this.#following.park.finished(outcome);
    else this.#settle(outcome);
  }

  /** The server is gone, or there is none. */
  protected failed(error: RpcError): void {
    const failure = errorFrame(0, error);
    if (this.#following.kind === 'asked') this.#following.park.lost(failure);
    else this.#settle(failure);
  }

  #settle(outcome: Frame): void {
    if (this.#following.kind !== 'plain') return;
    const { first } = this.#following;
    this.#following = OVER;
    this.over();
    first.settle(outcome);
  }
}
