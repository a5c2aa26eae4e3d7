import { toBridgeError, UNCLEAR } from '../../errors.ts';
import { isAmbiguous } from '../../mcp/classify/ambiguity.ts';
import { findProgressToken } from '../../mcp/classify/correlators.ts';
import { readRequestState } from '../../mcp/classify/input-responses.ts';
import { discoverResult } from '../../mcp/translate/results.ts';
import type { LogLevel } from '../../mcp/vocabulary/client-declarations.ts';
import { DISCOVER, isInteractive, isModernRequest, isTaskRequest, LISTEN } from '../../mcp/vocabulary/methods.ts';
import { type RpcError, rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { CallHandler } from '../../relay/modern-call.ts';
import type { InitializeResult } from '../../relay/shared/legacy/initialize-result.ts';
import type { OutcomeStorage } from '../../relay/shared-state.ts';
import { type Frame, idToken, withId } from '../../wire/frame.ts';
import { errorFrame, resultFrame } from '../../wire/write-message.ts';
import { CallAtLegacyServer, type CallServices } from './call-at-legacy-server.ts';
import { answerOf } from './call-messages.ts';
import type { DescribedClient } from './client-descriptions.ts';
import { ClientSubscription, type SubscriptionSlots } from './client-subscription.ts';
import { ContinuedCall, type ContinuingServices } from './continued-call.ts';
import { MAYBE_ELSEWHERE } from './questions/call-record.ts';
import type { Follower, ParkedCall } from './questions/parked-call.ts';
import { requestDigest, stateError } from './questions/request-state.ts';
import { decodeWaitingCall } from './questions/waiting-call.ts';
import { ServerDiscovery } from './server-discovery.ts';
import { askOfTask, NO_METHOD, taskExtensions, tasksToWatch } from './tasks/hosted-tasks.ts';

/** The parts that all requests to one server share. */
export interface RequestServices extends CallServices, ContinuingServices {
  readonly subscriptionSlots: SubscriptionSlots;
}

/** Takes what is to be told to the client about its request. */
export interface RequestListener {
  fromServer(frame: Frame): void;
  serverDrained(): void;
}

export interface ModernRequestOptions {
  readonly services: RequestServices;
  readonly client: DescribedClient;
  readonly frame: Frame;
  readonly listener: RequestListener;
}

/** The part that works on a request and answers it: a call, a subscription, a look at a task. */
interface RequestWork {
  /** The client withdrew the request, or its connection broke. */
  detach(request: Follower): void;
}

/**
 * - `open`: not answered; without `work` while it is looked for.
 * - `over`: answered or withdrawn.
 */
type RequestState = { readonly kind: 'open'; readonly frame: Frame; work?: RequestWork } | { readonly kind: 'over' };

type OpenRequest = Extract<RequestState, { kind: 'open' }>;

const OVER: RequestState = { kind: 'over' };

/** A request that goes on with a call of another replica, whose seal cannot be checked here. */
interface UnsealedRetry {
  readonly callId: string;
  readonly round: number;
  readonly digest: string;
}

/**
 * A request of a modern client to a legacy server, from its arrival to its answer. If the server asks something, the call
 * outlives the request, and another request follows the call.
 */
export class ModernRequest implements CallHandler, Follower {
  readonly #services: RequestServices;
  readonly #client: DescribedClient;
  readonly #listener: RequestListener;
  #state: RequestState;
  #progressToken: Buffer | undefined = undefined;

  constructor({ services, client, frame, listener }: ModernRequestOptions) {
    this.#services = services;
    this.#client = client;
    this.#listener = listener;
    this.#state = { kind: 'open', frame };
  }

  /** Called once. The request may be answered at once. */
  start(): void {
    const state = this.#state;
    if (state.kind !== 'open') return;
    try {
      this.#begin(state);
    } catch (thrown) {
      state.work?.detach(this);
      this.#refuse(rpcErrorOf(toBridgeError(thrown)));
    }
  }

  #begin(state: OpenRequest): void {
    const { frame } = state;
    const { refusal } = this.#client;
    if (refusal !== undefined) throw refusal;
    if (isAmbiguous(frame)) throw UNCLEAR;
    const method = frame.method ?? '';
    if (!isModernRequest(method)) return this.#refuse(NO_METHOD);
    if (isTaskRequest(method)) return this.#askOfTask(state);
    switch (method) {
      case DISCOVER:
        return this.#discover(state);
      case LISTEN:
        return this.#listen(state);
      default:
        return this.#call(state);
    }
  }

  #call(state: OpenRequest): void {
    const { frame } = state;
    const token = findProgressToken(frame);
    this.#progressToken = token && Buffer.from(frame.bytes.subarray(token.start, token.end));
    const continued = isInteractive(frame.method ?? '') ? readRequestState(frame) : undefined;
    if (continued !== undefined) return this.#retry(state, continued.text);
    const atServer = new CallAtLegacyServer({
      services: this.#services,
      client: this.#client,
      request: frame,
      first: this,
    });
    state.work = atServer;
    atServer.start();
  }

  /** Goes on with a call that has asked something. */
  #retry(state: OpenRequest, requestState: string | undefined): void {
    const { states, calls, outcomes } = this.#services;
    const { principal } = this.#client;
    const digest = requestDigest(state.frame);
    const opened = states.open(requestState, { principal, digest });
    if (opened.kind === 'refused') return this.#refuse(stateError(opened.fault));
    const { callId, round } = opened;
    const parked = opened.kind === 'opened' ? calls.find(callId) : undefined;
    if (parked !== undefined) return this.#follow(state, parked, round);
    const loss = opened.kind === 'opened' ? calls.lossOf(callId, principal) : 'state_lost';
    if (loss !== 'state_lost' || outcomes === undefined) return this.#refuse(stateError(loss));
    void this.#retryElsewhere(state, outcomes, { callId, round, digest });
  }

  /** Throws where another replica may have gone on with the call. */
  #follow(state: OpenRequest, parked: ParkedCall, round: number): void {
    if (parked.isDoubtful) throw MAYBE_ELSEWHERE;
    state.work = parked;
    if (!parked.retry(round, state.frame, this)) this.#refuse(stateError('state_lost'));
  }

  /** Another replica has run the call. Nobody could guess its id, and only its own caller with the same request is told. */
  async #retryElsewhere(state: OpenRequest, outcomes: OutcomeStorage, retry: UnsealedRetry): Promise<void> {
    const { callId, round, digest } = retry;
    try {
      const stored = await outcomes.find(callId, this.#client.principal);
      // The request may have been withdrawn meanwhile.
      if (this.#state !== state) return;
      const isSame = stored !== undefined && stored.digest === digest;
      const answer = isSame ? answerOf(stored) : undefined;
      if (answer !== undefined) return this.settle(answer);
      const parked =
        isSame && stored.state.kind === 'waiting' && this.#continue(callId, state.frame, stored.state.call);
      if (parked) this.#follow(state, parked, round);
      else this.#refuse(stateError('state_lost'));
    } catch (thrown) {
      this.#refuse(rpcErrorOf(toBridgeError(thrown)));
    }
  }

  /** Goes on with a call here, unless that goes on here already. Undefined: there is nothing left to come back to. */
  #continue(id: string, request: Frame, text: string): ParkedCall | undefined {
    const services = this.#services;
    const known = services.calls.find(id);
    if (known !== undefined) return known;
    if (services.outcomes?.isHeld === false) throw MAYBE_ELSEWHERE;
    const waiting = decodeWaitingCall(text);
    if (waiting === undefined) return undefined;
    services.deps.log.info('continuing a call that waited for its client at another replica');
    return new ContinuedCall({ services, wanted: this.#client.wanted, request, id, waiting }).start();
  }

  #listen(state: OpenRequest): void {
    const { frame } = state;
    const { deps, pool, hostedTasks, subscriptionSlots } = this.#services;
    const { principal, wanted } = this.#client;
    const tasks = tasksToWatch(frame, this.#client, hostedTasks);
    if ('code' in tasks) return this.#refuse(tasks);
    const refusal = subscriptionSlots.take(principal);
    if (refusal !== undefined) return this.#refuse(rpcErrorOf(refusal));
    const { clock, log } = deps;
    const closed = (): void => subscriptionSlots.release(principal);
    const stream = new ClientSubscription({ clock, log, pool, wanted, request: frame, tasks, host: this, closed });
    state.work = stream;
    stream.start();
  }

  #discover(state: OpenRequest): void {
    const { pool } = this.#services;
    const { wanted } = this.#client;
    const known = pool.knownResult(wanted);
    if (known !== undefined) return this.#discovered(known);
    const discovery = new ServerDiscovery(pool, wanted, {
      serves: (result) => this.#discovered(result),
      lost: (reason) => this.#refuse(rpcErrorOf(reason)),
    });
    state.work = discovery;
    discovery.joinSession();
  }

  #discovered(result: InitializeResult): void {
    const extensions = taskExtensions(result);
    this.settle(resultFrame(0, discoverResult(result, { extensions })));
  }

  #askOfTask(state: OpenRequest): void {
    const { pool, hostedTasks: tasks, outcomes } = this.#services;
    const client = this.#client;
    const server = pool.knownResult(client.wanted);
    const question = { request: state.frame, client, tasks, outcomes, server };
    state.work = { detach: askOfTask(question, (answer) => this.settle(answer)) };
  }

  /** Withdraws work that only this request waits for. A call that waits for its client goes on waiting. */
  withdraw(): void {
    const state = this.#state;
    this.#state = OVER;
    if (state.kind === 'open') state.work?.detach(this);
  }

  /** The server is not paused, because that would stop it for its other clients. */
  pause(): void {}
  resume(): void {}

  // ---- to the client

  get logLevel(): LogLevel | undefined {
    return this.#client.logLevel;
  }

  get progressToken(): Buffer | undefined {
    return this.#progressToken;
  }

  get declaresTasks(): boolean {
    return this.#client.declaresTasks;
  }

  notify(frame: Frame): void {
    if (this.#state.kind === 'open') this.#listener.fromServer(frame);
  }

  settle(outcome: Frame): void {
    const state = this.#state;
    if (state.kind !== 'open') return;
    this.#state = OVER;
    this.#listener.fromServer(withId(outcome, idToken(state.frame)));
  }

  #refuse(error: RpcError): void {
    this.settle(errorFrame(0, error));
  }

  serverDrained(): void {
    this.#listener.serverDrained();
  }
}
