import { BridgeError, toBridgeError, UNCLEAR } from '../../errors.ts';
import { isAmbiguous } from '../../mcp/classify/ambiguity.ts';
import { findProgressToken } from '../../mcp/classify/correlators.ts';
import { readRequestState } from '../../mcp/classify/input-responses.ts';
import type { RequestMetadata } from '../../mcp/classify/request-metadata.ts';
import { MAX_CAPABILITIES_BYTES } from '../../mcp/translate/capabilities.ts';
import { discoverResult } from '../../mcp/translate/results.ts';
import { type LogLevel, parseLogLevel } from '../../mcp/vocabulary/client-declarations.ts';
import {
  CANCELLED,
  DISCOVER,
  isClientNotification,
  isInteractive,
  isModernRequest,
  isTaskRequest,
  LISTEN,
} from '../../mcp/vocabulary/methods.ts';
import { INVALID_REQUEST } from '../../mcp/vocabulary/rpc-codes.ts';
import { type RpcError, rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import { declaresTasks } from '../../mcp/vocabulary/task-extension.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { ServerListener, UpstreamLink } from '../../relay/ports.ts';
import type { InitializeResult } from '../../relay/shared/legacy/initialize-result.ts';
import type { OutcomeStorage } from '../../relay/shared-state.ts';
import { encodeId, type Frame, idToken, withId } from '../../wire/frame.ts';
import { errorFrame, resultFrame } from '../../wire/write-message.ts';
import { answerOf } from './call-messages.ts';
import { ClientSubscription, type SubscriptionSlots } from './client-subscription.ts';
import { ContinuedCall, type ContinuingServices } from './continued-call.ts';
import type { Follower } from './followed-call.ts';
import { type CallServices, LegacyCall } from './legacy-call.ts';
import { passNotification } from './pass-notification.ts';
import { tooManyCapabilities } from './pool/legacy-pool.ts';
import { SessionLink, type SessionLinkUser } from './pool/session-link.ts';
import type { SessionWanted } from './pool/session-wanted.ts';
import { MAYBE_ELSEWHERE } from './questions/call-record.ts';
import type { ParkedCall } from './questions/parked-call.ts';
import { requestDigest, stateError } from './questions/request-state.ts';
import { decodeWaitingCall } from './questions/waiting-call.ts';
import { askOfTask, NO_METHOD, type TaskClient, taskExtensions, tasksToWatch } from './tasks/hosted-tasks.ts';

/** The parts that all conversations with one server share. */
export interface ConversationServices extends CallServices, ContinuingServices {
  readonly subscriptionSlots: SubscriptionSlots;
}

export interface ConversationOptions {
  readonly services: ConversationServices;
  readonly listener: ServerListener;
  readonly wanted: SessionWanted;
  readonly metadata: RequestMetadata;
}

/**
 * - `fresh`: nothing was asked yet.
 * - `following`: a call.
 * - `listening`: to changes.
 * - `discovering`: waits until the server serves.
 * - `looking`: after a task.
 * - `over`: answered, withdrawn or closed.
 */
type ConversationState =
  | { readonly kind: 'fresh' }
  | { readonly kind: 'following'; readonly exchange: Exchange | undefined; call: FollowableCall | undefined }
  | { readonly kind: 'listening'; readonly exchange: Exchange | undefined; readonly stream: ClientSubscription }
  | { readonly kind: 'discovering'; readonly exchange: Exchange | undefined; readonly link: SessionLink }
  | LookingState
  | { readonly kind: 'over' };

/** A request that goes on with a call of another replica, whose seal cannot be checked here. */
interface UnsealedRetry {
  readonly callId: string;
  readonly round: number;
  readonly digest: string;
  readonly request: Frame;
}

/** A new call, or one that has waited for its client. */
interface FollowableCall {
  /** The client withdrew a request, or its connection broke. */
  detach(follower: Follower): void;
}

interface LookingState {
  readonly kind: 'looking';
  readonly exchange: Exchange | undefined;
  stop: () => void;
}

const OVER: ConversationState = { kind: 'over' };
/** Before there is a request. */
const NO_ID = encodeId(0);

/**
 * A request of a modern client to a legacy server, from its arrival to its answer. To the relay it is a link to a
 * modern server. If the server asks something, the call outlives the request, and another request follows it.
 */
export class Conversation implements UpstreamLink, Follower {
  /** No more of the metadata is kept than these fields: each call would keep whatever its client has put into it. */
  listener: ServerListener;
  readonly #services: ConversationOptions['services'];
  readonly #wanted: SessionWanted;
  readonly #client: TaskClient;
  readonly logLevel: LogLevel | undefined;
  /** The error for capabilities that are too large to be read, which would take seconds; undefined: they are not. */
  readonly #refusal: BridgeError | undefined;
  #state: ConversationState = { kind: 'fresh' };
  #id = NO_ID;
  #progressToken: Buffer | undefined;

  constructor(options: ConversationOptions) {
    const { services, listener, wanted, metadata } = options;
    this.listener = listener;
    this.#services = services;
    const { capabilitiesBytes = 0 } = metadata;
    const isTooLarge = capabilitiesBytes > MAX_CAPABILITIES_BYTES;
    this.#refusal = isTooLarge ? tooManyCapabilities(capabilitiesBytes) : undefined;
    const declared = isTooLarge ? {} : metadata.capabilities;
    this.#client = { principal: wanted.principal, declaresTasks: declaresTasks(declared) };
    this.logLevel = parseLogLevel(metadata.logLevel);
    this.#wanted = wanted;
  }

  // ---- from the client

  /** The server's process serves other clients as well. */
  get process(): undefined {
    return undefined;
  }

  /** False: a notification waits for the server. A request has nothing after it that could be held back. */
  send(frame: Frame, exchange?: Exchange): boolean {
    if (frame.kind === 'request') this.#request(frame, exchange);
    else if (frame.method === CANCELLED) this.#cancelled(exchange);
    else if (frame.kind === 'notification' && !isClientNotification(frame.method ?? '')) return this.#pass(frame);
    // All other notifications of the specification mean nothing in this era, and nobody was asked anything.
    return true;
  }

  #pass(notification: Frame): boolean {
    if (this.#refusal !== undefined || isAmbiguous(notification)) return true;
    const services = this.#services;
    const { pool, deps } = services;
    const drained = (): void => this.listener.serverDrained();
    return passNotification(notification, { pool, wanted: this.#wanted, log: deps.log, drained });
  }

  #request(frame: Frame, exchange: Exchange | undefined): void {
    if (this.#state.kind !== 'fresh') {
      return this.listener.fromServer(errorFrame(idToken(frame), ONE_REQUEST), exchange);
    }
    this.#id = idToken(frame);
    this.#state = { kind: 'following', exchange, call: undefined };
    try {
      this.#begin(frame, exchange);
    } catch (thrown) {
      this.#answer(errorFrame(this.#id, rpcErrorOf(toBridgeError(thrown))));
    }
  }

  #begin(frame: Frame, exchange: Exchange | undefined): void {
    if (this.#refusal !== undefined) throw this.#refusal;
    if (isAmbiguous(frame)) throw UNCLEAR;
    const method = frame.method ?? '';
    if (!isModernRequest(method)) return this.#refuse(NO_METHOD);
    if (isTaskRequest(method)) return this.#askOfTask(frame, exchange);
    if (method === DISCOVER) return this.#discover(exchange);
    if (method === LISTEN) return this.#listen(frame, exchange);
    const token = findProgressToken(frame);
    this.#progressToken = token && Buffer.from(frame.bytes.subarray(token.start, token.end));
    const state = isInteractive(method) ? readRequestState(frame) : undefined;
    if (state !== undefined) return this.#retry(frame, state.text);
    const services = this.#services;
    const call = new LegacyCall({ services, wanted: this.#wanted, client: this.#client, request: frame }, this);
    this.#followed(call);
    call.start();
  }

  #retry(frame: Frame, state: string | undefined): void {
    const { states, calls, outcomes } = this.#services;
    const { principal } = this.#wanted;
    const digest = requestDigest(frame);
    const opened = states.open(state, { principal, digest });
    if (opened.kind === 'refused') return this.#refuse(stateError(opened.fault));
    const { callId, round } = opened;
    const call = opened.kind === 'opened' ? calls.find(callId) : undefined;
    if (call !== undefined) {
      if (!this.#follow(call, round, frame)) this.#refuse(stateError('state_lost'));
      return;
    }
    const loss = opened.kind === 'opened' ? calls.lossOf(callId, principal) : 'state_lost';
    if (loss !== 'state_lost' || outcomes === undefined) return this.#refuse(stateError(loss));
    void this.#retryElsewhere(outcomes, { callId, round, digest, request: frame });
  }

  /** False: there is nothing left to come back to. Throws where another replica may have gone on with it. */
  #follow(call: ParkedCall<Follower>, round: number, request: Frame): boolean {
    if (call.isDoubtful) throw MAYBE_ELSEWHERE;
    this.#followed(call);
    return call.retry(round, request, this);
  }

  /** Another replica has run the call. Nobody could guess its id, and only its own caller with the same request is told. */
  async #retryElsewhere(outcomes: OutcomeStorage, retry: UnsealedRetry): Promise<void> {
    try {
      const stored = await outcomes.find(retry.callId, this.#wanted.principal);
      // The request may have been withdrawn meanwhile.
      if (this.#state.kind !== 'following') return;
      const isSame = stored !== undefined && stored.digest === retry.digest;
      const answer = isSame ? answerOf(stored) : undefined;
      if (answer !== undefined) return this.settle(answer);
      const isFollowed = isSame && stored.state.kind === 'waiting' && this.#goOn(retry, stored.state.call);
      if (!isFollowed) this.#refuse(stateError('state_lost'));
    } catch (thrown) {
      this.#refuse(rpcErrorOf(toBridgeError(thrown)));
    }
  }

  /** Goes on with a call here, unless that goes on here already. False: there is nothing left to come back to. */
  #goOn({ callId, round, request }: UnsealedRetry, text: string): boolean {
    const call = this.#services.calls.find(callId) ?? this.#continue(callId, request, text);
    return call !== undefined && this.#follow(call, round, request);
  }

  #continue(callId: string, request: Frame, text: string): ParkedCall<Follower> | undefined {
    const services = this.#services;
    if (services.outcomes?.isHeld === false) throw MAYBE_ELSEWHERE;
    const waiting = decodeWaitingCall(text);
    if (waiting === undefined) return undefined;
    services.deps.log.info('went on with a call that had waited for its client at another replica');
    return new ContinuedCall({ services, wanted: this.#wanted, request, waiting }).start(callId);
  }

  #followed(call: FollowableCall): void {
    if (this.#state.kind === 'following') this.#state.call = call;
  }

  #listen(frame: Frame, exchange: Exchange | undefined): void {
    const services = this.#services;
    const tasks = tasksToWatch(frame, this.#client, services.hostedTasks);
    if ('code' in tasks) return this.#refuse(tasks);
    const refusal = services.subscriptionSlots.take(this.#wanted.principal);
    if (refusal !== undefined) return this.#refuse(rpcErrorOf(refusal));
    const stream = new ClientSubscription({
      clock: services.deps.clock,
      log: services.deps.log,
      pool: services.pool,
      wanted: this.#wanted,
      request: frame,
      tasks,
      host: {
        tell: (told) => (told.isResponse ? this.#answer(told) : this.listener.fromServer(told, exchange)),
        serverDrained: () => this.listener.serverDrained(),
      },
    });
    this.#state = { kind: 'listening', exchange, stream };
    stream.start();
  }

  #discover(exchange: Exchange | undefined): void {
    const known = this.#services.pool.knownResult(this.#wanted);
    if (known !== undefined) return this.#discovered(known);
    const user: SessionLinkUser = {
      opened: (result) => this.#discovered(result),
      refused: (error) => this.#refuse(error),
      lost: (reason) => this.#refuse(rpcErrorOf(reason)),
      fromServer: () => {},
      serverDrained: () => {},
    };
    const link = new SessionLink(this.#services.pool, this.#wanted, user);
    this.#state = { kind: 'discovering', exchange, link };
    link.open();
  }

  #discovered(result: InitializeResult): void {
    const extensions = taskExtensions(result);
    this.#answer(resultFrame(this.#id, discoverResult(result, { extensions })));
  }

  #askOfTask(request: Frame, exchange: Exchange | undefined): void {
    const { pool, hostedTasks: tasks, outcomes } = this.#services;
    const state: LookingState = { kind: 'looking', exchange, stop: () => {} };
    this.#state = state;
    const client = this.#client;
    const server = pool.knownResult(this.#wanted);
    state.stop = askOfTask({ request, client, tasks, outcomes, server }, (answer) => this.settle(answer));
  }

  #cancelled(exchange: Exchange | undefined): void {
    const state = this.#state;
    if (state.kind === 'fresh' || state.kind === 'over' || state.exchange !== exchange) return;
    this.close(CLOSED);
  }

  // ---- to the client

  get progressToken(): Buffer | undefined {
    return this.#progressToken;
  }

  notify(frame: Frame): void {
    if (this.#state.kind === 'following') this.listener.fromServer(frame, this.#state.exchange);
  }

  settle(outcome: Frame): void {
    this.#answer(withId(outcome, this.#id));
  }

  serverDrained(): void {
    this.listener.serverDrained();
  }

  #refuse(error: RpcError): void {
    this.#answer(errorFrame(this.#id, error));
  }

  #answer(frame: Frame): void {
    const state = this.#state;
    if (state.kind === 'fresh' || state.kind === 'over') return;
    this.#leave(state);
    this.listener.fromServer(frame, state.exchange);
  }

  #leave(state: ConversationState): void {
    this.#state = OVER;
    switch (state.kind) {
      case 'following':
        state.call?.detach(this);
        return;
      case 'listening':
        state.stream.close();
        this.#services.subscriptionSlots.release(this.#wanted.principal);
        return;
      case 'discovering':
        state.link.close();
        return;
      case 'looking':
        state.stop();
        return;
      default:
        return;
    }
  }

  /** The server is not paused, because that would stop it for its other clients. */
  pause(): void {}
  resume(): void {}

  /** The client is gone. What it waited for alone is withdrawn; a call that waits for the client goes on waiting. */
  close(_reason: BridgeError): void {
    this.#leave(this.#state);
  }
}

const CLOSED = new BridgeError('ERR_SESSION_CLOSED', 'The client no longer waits for an answer.');
const ONE_REQUEST: RpcError = { code: INVALID_REQUEST, message: 'a conversation is one request' };
