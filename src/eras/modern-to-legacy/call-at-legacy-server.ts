import type { BridgeError } from '../../errors.ts';
import type { TaskSupport } from '../../mcp/classify/tool-list.ts';
import { readServerInfo } from '../../mcp/translate/results.ts';
import type { LogLevel } from '../../mcp/vocabulary/client-declarations.ts';
import { CALL_TOOL, CANCELED, isInteractive } from '../../mcp/vocabulary/methods.ts';
import { featuresOf, type RevisionFeatures, servedRevision } from '../../mcp/vocabulary/revisions.ts';
import { URL_ELICITATION_REQUIRED } from '../../mcp/vocabulary/rpc-codes.ts';
import { type RpcError, rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Call } from '../../relay/call.ts';
import type { InitializeResult } from '../../relay/shared/legacy/initialize-result.ts';
import type { Frame } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { type Answered, legacyRequest, modernFailure, modernOutcome, readRpcError } from './call-messages.ts';
import { CallNotices } from './call-notices.ts';
import { CallPreparation, setsLevel } from './call-preparation.ts';
import type { DescribedClient } from './client-descriptions.ts';
import type { LegacyPool } from './pool/legacy-pool.ts';
import { SessionRequest, SessionUser } from './pool/session-user.ts';
import { type Follower, ParkedCall, type ParkedCallHost, type ParkingServices } from './questions/parked-call.ts';
import { CallQuestions, type ClientAsker, type InputQuestion, rootsQuestion } from './questions/questions.ts';
import { declined, RequiredElicitations, readUrlElicitations } from './questions/url-elicitations.ts';
import type { Continuation } from './questions/waiting-call.ts';
import { CallAsTask } from './tasks/call-as-task.ts';
import type { HostedTask } from './tasks/hosted-task.ts';
import type { HostedTasks } from './tasks/hosted-tasks.ts';
import type { CreatedTask, TaskTools } from './tasks/task-tools.ts';

/** The parts that all calls of one server share. */
export interface CallServices extends ParkingServices {
  readonly pool: LegacyPool;
  readonly taskTools: TaskTools;
  readonly hostedTasks: HostedTasks;
}

export interface CallAtLegacyServerOptions {
  readonly services: CallServices;
  readonly client: DescribedClient;
  /** The frame of the client's first request, with its envelope. */
  readonly request: Frame;
  /** The client's first request, which waits for the outcome. */
  readonly first: Follower;
}

/**
 * The call at its server:
 * - `waiting`: for a session whose server serves.
 * - `preparing`: the server is told its log level, and asked whether the tool can be called as a task.
 * - `asking`: not sent yet; the client is asked for what the server wanted to know before.
 * - `open`: the server has the request, and will answer it.
 * - `task`: runs at the server as a task.
 * - `refused`: the server wants its user to visit URLs first; the client is asked.
 * - `completing`: the user has agreed; it will be sent once more when the elicitation is complete.
 * - `hosted`: has become a task that its client follows by itself, and that uses the session in its place.
 * - `ending`: nobody waits for the task anymore; the server is told to end it.
 * - `over`: nothing more happens.
 */
type StateAtServer =
  | { readonly kind: 'waiting' | 'preparing' | 'asking' | 'refused' | 'over' }
  | { readonly kind: 'open'; readonly request: SessionRequest }
  | { readonly kind: 'task' | 'ending'; readonly task: CallAsTask }
  | { readonly kind: 'completing'; readonly stop: () => void }
  | { readonly kind: 'hosted'; readonly task: HostedTask };

const WAITING: StateAtServer = { kind: 'waiting' };
const PREPARING: StateAtServer = { kind: 'preparing' };
const ASKING: StateAtServer = { kind: 'asking' };
const REFUSED: StateAtServer = { kind: 'refused' };
const OVER: StateAtServer = { kind: 'over' };

/**
 * The client's side of the call:
 * - `plain`: nothing was asked, and the client's first request waits for the outcome.
 * - `asked`: the server has asked something; the park knows which requests follow the call.
 * - `nobody`: nobody waits, and nobody can come back.
 */
type Following =
  | { readonly kind: 'plain'; readonly first: Follower }
  | { readonly kind: 'asked'; readonly park: ParkedCall }
  | { readonly kind: 'nobody' };

const NOBODY: Following = { kind: 'nobody' };

/**
 * One call of a modern client at a legacy server, from the time it waits for a session to its outcome. Most calls are
 * followed by one request of the client, because nothing is asked in them.
 */
export class CallAtLegacyServer extends SessionUser implements ParkedCallHost, ClientAsker {
  readonly #services: CallServices;
  readonly #client: DescribedClient;
  readonly #request: Frame;
  readonly #method: string;
  /** The log level of the request that followed the call last. */
  #logLevel: LogLevel | undefined;
  #following: Following;
  #state: StateAtServer = WAITING;
  /** Undefined while no server has served. */
  #server: InitializeResult | undefined = undefined;
  // Most calls need none of these; each is made when there is something for it to do.
  #preparation: CallPreparation | undefined = undefined;
  #questions: CallQuestions | undefined = undefined;
  #notices: CallNotices | undefined = undefined;
  #elicitations: RequiredElicitations | undefined = undefined;

  constructor({ services, client, request, first }: CallAtLegacyServerOptions) {
    super(services.pool, client.wanted);
    this.#services = services;
    this.#client = client;
    this.#request = request;
    this.#method = request.method ?? '';
    this.#logLevel = first.logLevel;
    this.#following = { kind: 'plain', first };
  }

  /** Throws a BridgeError when there is no session to be had. */
  start(): void {
    if (this.wanted.capabilities.areAskable && isInteractive(this.#method)) this.leaseSession();
    else this.joinSession();
  }

  // ---- the client's side

  get followers(): Iterable<Follower> {
    const following = this.#following;
    if (following.kind === 'asked') return following.park.followers;
    return following.kind === 'plain' ? [following.first] : [];
  }

  get isParked(): boolean {
    return this.#following.kind === 'asked' && this.#following.park.isParked;
  }

  /** True while the client is not being asked, and a request waits for the outcome. */
  get #isAwaited(): boolean {
    const following = this.#following;
    return following.kind === 'asked' ? following.park.state === 'running' : following.kind === 'plain';
  }

  followed(follower: Follower): void {
    const { logLevel } = follower;
    this.#logLevel = logLevel;
    this.#notices?.followed(follower);
    const server = this.#server;
    const isAtServer = this.#state.kind !== 'over' && this.#state.kind !== 'ending' && this.#state.kind !== 'hosted';
    if (isAtServer && logLevel !== undefined && server !== undefined && setsLevel(server)) {
      this.#preparationFor(server).setLevel(logLevel);
    }
  }

  /** The client withdrew a request, or its connection broke. */
  detach(follower: Follower): void {
    const following = this.#following;
    if (following.kind === 'asked') return following.park.detach(follower);
    if (following.kind !== 'plain' || following.first !== follower) return;
    this.#following = NOBODY;
    this.over();
  }

  askClient(question: InputQuestion): void {
    const following = this.#following;
    if (following.kind === 'nobody') return question.refuse();
    const park = following.kind === 'asked' ? following.park : this.#openPark(following.first);
    park.askClient(question);
  }

  questionWithdrawn(question: InputQuestion): void {
    if (this.#following.kind === 'asked') this.#following.park.questionWithdrawn(question);
  }

  #openPark(first: Follower): ParkedCall {
    const { principal } = this.wanted;
    const serverInfo = readServerInfo(this.#server?.serverInfo);
    const park = new ParkedCall({
      services: this.#services,
      host: this,
      principal,
      request: this.#request,
      serverInfo,
      first,
    });
    this.#following = { kind: 'asked', park };
    return park;
  }

  /** The server has answered: `outcome` as the client gets it, under any id. */
  #finished(outcome: Frame): void {
    if (this.#following.kind === 'asked') this.#following.park.finished(outcome);
    else this.#settle(outcome);
  }

  /** The server is gone, or there is none. */
  #failed(error: RpcError): void {
    const failure = errorFrame(0, error);
    if (this.#following.kind === 'asked') this.#following.park.lost(failure);
    else this.#settle(failure);
  }

  #settle(outcome: Frame): void {
    if (this.#following.kind !== 'plain') return;
    const { first } = this.#following;
    this.#following = NOBODY;
    this.over();
    first.settle(outcome);
  }

  // ---- the way to the server

  opened(server: InitializeResult): void {
    this.#server = server;
    this.#state = PREPARING;
    const level = this.#logLevel;
    if (level !== undefined && setsLevel(server)) this.#preparationFor(server).start(level);
    else this.#prepare(server);
  }

  #prepare(server: InitializeResult): void {
    this.#state = PREPARING;
    // A server without tasks takes every call plainly.
    const mayBeTask = this.#method === CALL_TOOL && server.capabilities.tasks !== undefined;
    if (mayBeTask) this.#preparationFor(server).lookUp();
    else this.#begin('forbidden');
  }

  #preparationFor(server: InitializeResult): CallPreparation {
    const { deps, taskTools } = this.#services;
    this.#preparation ??= new CallPreparation({
      clock: deps.clock,
      user: this,
      taskTools,
      server,
      request: this.#request,
      ready: (support) => this.#begin(support),
    });
    return this.#preparation;
  }

  /** Prepares the call once more. The server has served before. */
  #prepareAgain(): void {
    if (this.#server !== undefined) this.#prepare(this.#server);
  }

  #begin(support: TaskSupport): void {
    if (this.isAskable) {
      this.#askForRoots();
      // The call goes on if there was nothing to ask, or if the limit of questions was reached.
      if (!this.#isAwaited) return;
    }
    const request = legacyRequest(this.#request, this.#features);
    if (support !== 'forbidden' && this.#runsAsTask(support)) return this.#sendAsTask(request);
    const sent = new SessionRequest(request, this.#method, (answer) => this.#answered(answer));
    this.#state = { kind: 'open', request: sent };
    this.sendRequest(sent);
  }

  /** An optional task is for a client that can follow it; a result that has to be waited for comes plainly as well. */
  #runsAsTask(support: 'required' | 'optional'): boolean {
    const { principal, declaresTasks } = this.#client;
    return support === 'required' || (declaresTasks && this.#services.hostedTasks.hasRoomFor(principal));
  }

  /** Asks the client for the roots that the server has asked for while no call could be asked. */
  #askForRoots(): void {
    const held = this.session.roots.takeWaiting();
    if (held.length > 0) this.#state = ASKING;
    for (const roots of held) {
      const question = rootsQuestion(roots);
      roots.onWithdrawn = () => this.#withdrawnBeforeSent(question);
      this.askClient(question);
    }
  }

  /** With nothing left to ask, the client is not kept waiting for the end of the window. */
  #withdrawnBeforeSent(question: InputQuestion): void {
    this.questionWithdrawn(question);
    if (this.#state.kind === 'asking' && this.#isAwaited) this.#prepareAgain();
  }

  #sendAsTask(request: Frame): void {
    const task = new CallAsTask({
      clock: this.#services.deps.clock,
      user: this,
      adopt: (created) => this.#adopt(created),
      answered: (outcome) => this.#answered(outcome),
    });
    this.#state = { kind: 'task', task };
    task.start(request);
  }

  /** The call has become a task at the server. True: its client follows the task from now on. */
  #adopt(created: CreatedTask): boolean {
    const { principal } = this.#client;
    // A client that cannot follow a task waits for its result.
    if (!this.#canFollowTask) return false;
    const parts = { principal, user: this, answered: this.#context, features: this.#features, task: created };
    const task = this.#services.hostedTasks.add(parts);
    if (task === undefined) return false;
    this.#leaveCall();
    this.#state = { kind: 'hosted', task };
    const outcome = task.created();
    const tell = (): void => {
      // A client that left meanwhile does not know of its task, and so cannot end it.
      if (this.#following.kind === 'nobody') task.cancel();
      else this.#finished(outcome);
    };
    // The client gets the task's id when other replicas know it: if this one ended before, they would know of no task.
    const stored = task.start();
    if (stored === undefined) tell();
    else void stored.then(tell);
    return true;
  }

  /** True if whatever waits for the outcome may get a task; a client that is being asked is taken at its first word. */
  get #canFollowTask(): boolean {
    const followers = [...this.followers];
    if (followers.length === 0) return this.#client.declaresTasks;
    return followers.every(({ declaresTasks }) => declaresTasks);
  }

  get #features(): RevisionFeatures {
    return featuresOf(servedRevision(this.#server?.protocolVersion).id);
  }

  // ---- what comes from the server

  heard(frame: Frame, call: Call | undefined): void {
    if (this.#state.kind === 'hosted') return this.#state.task.heard(frame);
    if (frame.kind === 'request') return this.#questionsOf().asked(frame, this.#features);
    if (frame.method === CANCELED) this.#questions?.withdrawn(frame);
    else this.#noticesOf().take(frame, call);
  }

  #questionsOf(): CallQuestions {
    this.#questions ??= new CallQuestions({ asker: this, send: (message) => void this.send(message) });
    return this.#questions;
  }

  #noticesOf(): CallNotices {
    const { calls, deps } = this.#services;
    this.#notices ??= new CallNotices({
      noticed: this,
      openBytes: () => calls.openBytes(this.wanted.principal),
      logLevel: this.#logLevel,
      log: deps.log,
    });
    return this.#notices;
  }

  #answered(outcome: Frame): void {
    if (outcome.kind === 'error') this.#refusedBy(outcome);
    else this.#finished(modernOutcome(outcome, this.#context));
  }

  get #context(): Answered {
    return { request: this.#request, server: this.#server };
  }

  #refusedBy(frame: Frame): void {
    const error = readRpcError(frame);
    const isRefusal = error.code === URL_ELICITATION_REQUIRED && isInteractive(this.#method);
    const elicitations = isRefusal ? readUrlElicitations(error) : undefined;
    if (elicitations === undefined) return this.#finished(modernFailure(frame, this.#context));
    this.#state = REFUSED;
    this.#elicitations ??= new RequiredElicitations({
      asker: this,
      declared: this.wanted.capabilities,
      failed: (reason) => this.#finished(errorFrame(0, reason)),
    });
    this.#elicitations.require(elicitations, error);
  }

  serverDrained(): void {
    for (const follower of this.followers) follower.serverDrained();
  }

  lost(reason: BridgeError): void {
    switch (this.#state.kind) {
      case 'hosted':
        return this.#state.task.lost(reason);
      case 'task':
      case 'ending':
        this.#state.task.lost();
    }
    this.#failed(rpcErrorOf(reason));
  }

  // ---- what the park decides

  proceed(): void {
    switch (this.#state.kind) {
      case 'asking':
        return this.#prepareAgain();
      case 'refused':
        return this.#visited();
      default:
        // The call runs at the server, which has the answers.
        return;
    }
  }

  /** The server itself refused the first attempt, so that this one is the first that does anything. */
  #visited(): void {
    const elicitations = this.#elicitations;
    if (elicitations === undefined) return;
    if (!elicitations.isAccepted) {
      return this.#finished(declined(this.#method, readServerInfo(this.#server?.serverInfo)));
    }
    const stop = elicitations.whenComplete(this.session.elicitations, () => this.#prepareAgain());
    this.#state = { kind: 'completing', stop };
  }

  over(): void {
    const state = this.#state;
    // The task uses the session in place of the call, and may have left it already.
    if (state.kind === 'hosted') return;
    this.#leaveCall();
    switch (state.kind) {
      case 'task':
        this.#state = { kind: 'ending', task: state.task };
        return state.task.end();
      case 'completing':
        state.stop();
    }
    this.#state = OVER;
    // To leave withdraws the request, if it is open.
    this.leaveSession();
  }

  /** The client is asked nothing more within this call. */
  #leaveCall(): void {
    this.#preparation?.stop();
    this.#questions = undefined;
    if (this.isAskable && this.#state.kind !== 'waiting') this.session.callOver();
  }

  forgotten(): void {
    this.#notices?.clear();
  }

  /** Headers of callers are not stored, so a server that wants to see them can be asked for nothing more elsewhere. */
  continuation(): Continuation | undefined {
    if (this.#state.kind !== 'open' || this.wanted.headers !== undefined) return undefined;
    return this.session.continuationOf(this.#state.request);
  }

  handedOver(): void {
    this.#state = OVER;
    this.#preparation?.stop();
    this.#questions = undefined;
    const { pool, deps } = this.#services;
    this.session.handOver();
    // Other calls of the session may be handed over in the same moment.
    deps.clock.after(0, () => pool.endHandedOver());
  }
}
