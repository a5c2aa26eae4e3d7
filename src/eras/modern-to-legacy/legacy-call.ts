import { assertNever, type BridgeError } from '../../errors.ts';
import { readServerInfo } from '../../mcp/translate/results.ts';
import type { LogLevel } from '../../mcp/vocabulary/client-declarations.ts';
import { CALL_TOOL, CANCELLED, isInteractive } from '../../mcp/vocabulary/methods.ts';
import type { Fields } from '../../mcp/vocabulary/payload.ts';
import { featuresOf, type RevisionFeatures, servedRevision } from '../../mcp/vocabulary/revisions.ts';
import { URL_ELICITATION_REQUIRED } from '../../mcp/vocabulary/rpc-codes.ts';
import { type RpcError, rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { InitializeResult } from '../../relay/shared/legacy/initialize-result.ts';
import type { Frame } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { type Answered, legacyRequest, modernFailure, modernOutcome, readRpcError } from './call-messages.ts';
import { CallNotices } from './call-notices.ts';
import { type CallForm, CallPreparation, setsLevel } from './call-preparation.ts';
import { FollowedCall, type FollowedCallOptions, type Follower, type ParkingServices } from './followed-call.ts';
import type { LegacyPool } from './pool/legacy-pool.ts';
import { SessionLink, type SessionLinkUser, SessionRequest } from './pool/session-link.ts';
import { CallQuestions, type InputQuestion, rootsQuestion } from './questions/questions.ts';
import { declined, RequiredElicitations, readUrlElicitations } from './questions/url-elicitations.ts';
import type { Continuation } from './questions/waiting-call.ts';
import { CallAsTask } from './tasks/call-as-task.ts';
import type { HostedTasks, TaskClient } from './tasks/hosted-tasks.ts';
import type { CreatedTask, TaskTools } from './tasks/task-tools.ts';

/** The parts that all calls of one server share. */
export interface CallServices extends ParkingServices {
  readonly pool: LegacyPool;
  readonly taskTools: TaskTools;
  readonly hostedTasks: HostedTasks;
}

export interface LegacyCallOptions extends FollowedCallOptions {
  readonly services: CallServices;
  readonly client: TaskClient;
}

/**
 * - `opening`: waits until the server serves.
 * - `preparing`: the server is told its log level, and asked how the tool is called.
 * - `asking`: not sent yet; the client is asked for what the server wanted to know before.
 * - `sent`: runs at the server, which will answer this request.
 * - `tasked`: runs at the server as a task.
 * - `refused`: the server wants its user to visit URLs first; the client is asked.
 * - `completing`: the user has agreed; it will be sent once more when the elicitation is complete.
 * - `adopted`: has become a task, which its client follows by itself.
 * - `over`: nothing more happens.
 */
type Step =
  | { readonly kind: 'opening' | 'preparing' | 'asking' | 'tasked' | 'refused' | 'adopted' | 'over' }
  | { readonly kind: 'sent'; readonly request: SessionRequest }
  | { readonly kind: 'completing'; readonly stop: () => void };

const OPENING: Step = { kind: 'opening' };
const PREPARING: Step = { kind: 'preparing' };
const ASKING: Step = { kind: 'asking' };
const TASKED: Step = { kind: 'tasked' };
const REFUSED: Step = { kind: 'refused' };
const ADOPTED: Step = { kind: 'adopted' };
const OVER: Step = { kind: 'over' };

/** Runs one call of a modern client at a legacy server. */
export class LegacyCall extends FollowedCall<LegacyCallOptions> implements SessionLinkUser {
  readonly #method: string;
  readonly #link: SessionLink;
  // Most calls need none of these; each is made when there is something for it to do.
  #task: CallAsTask | undefined;
  #preparation: CallPreparation | undefined;
  #questions: CallQuestions | undefined;
  #notices: CallNotices | undefined;
  #elicitations: RequiredElicitations | undefined;
  /** The log level of the request that followed the call last. */
  #logLevel: LogLevel | undefined;
  #step: Step = OPENING;
  #server: InitializeResult | undefined;

  constructor(options: LegacyCallOptions, first: Follower) {
    super(options, first);
    this.#method = options.request.method ?? '';
    this.#logLevel = first.logLevel;
    this.#link = new SessionLink(options.services.pool, options.wanted, this);
  }

  /** Throws a BridgeError when there is no session to be had. */
  start(): void {
    if (this.#mayBeAsked) this.#link.openAlone();
    else this.#link.open();
  }

  get #mayBeAsked(): boolean {
    return this.options.wanted.capabilities.areAskable && isInteractive(this.#method);
  }

  joined(follower: Follower): void {
    const { logLevel } = follower;
    this.#logLevel = logLevel;
    this.#notices?.joined(follower);
    const server = this.#server;
    if (logLevel === undefined || this.#step.kind === 'over' || server === undefined || !setsLevel(server)) return;
    this.#preparationFor(server).setLevel(logLevel);
  }

  protected get serverInfo(): Fields | undefined {
    return readServerInfo(this.#server?.serverInfo);
  }

  // ---- the way to the server

  opened(result: InitializeResult): void {
    this.#server = result;
    this.#step = PREPARING;
    const level = this.#logLevel;
    if (level !== undefined && setsLevel(result)) this.#preparationFor(result).start(level);
    else this.#prepare(result);
  }

  #prepare(server: InitializeResult): void {
    this.#step = PREPARING;
    // A server without tasks need not be looked at for how it takes the call.
    const mayBeTask = this.#method === CALL_TOOL && server.capabilities.tasks !== undefined;
    if (mayBeTask) this.#preparationFor(server).lookUp();
    else this.#askRoots('plain');
  }

  #preparationFor(server: InitializeResult): CallPreparation {
    const { services, request } = this.options;
    const { deps, taskTools } = services;
    this.#preparation ??= new CallPreparation({
      clock: deps.clock,
      link: this.#link,
      taskTools,
      server,
      request,
      ready: (form) => this.#askRoots(form),
    });
    return this.#preparation;
  }

  /** Prepares the call once more. The server has served before. */
  #prepareAgain(): void {
    if (this.#server !== undefined) this.#prepare(this.#server);
  }

  /**
   * Asks the client for the roots that the server has asked for while no call could be asked. Then the call is sent.
   */
  #askRoots(form: CallForm): void {
    const held = isInteractive(this.#method) ? this.#link.session.roots.takeWaiting() : [];
    if (held.length > 0) this.#step = ASKING;
    for (const roots of held) {
      const question = rootsQuestion(roots);
      roots.onWithdrawn = () => this.#withdrawnBeforeSent(question);
      this.asked(question);
    }
    // The call goes on if there was nothing to ask, or if the limit of questions was reached.
    if (!this.isRunning) return;
    const request = legacyRequest(this.options.request, this.#features);
    if (form === 'task') return this.#sendAsTask(request);
    const sent = new SessionRequest(request, this.#method, (answer) => this.#answered(answer));
    this.#step = { kind: 'sent', request: sent };
    this.#task = undefined;
    this.#link.sendRequest(sent);
  }

  #sendAsTask(request: Frame): void {
    this.#step = TASKED;
    this.#task = new CallAsTask({
      clock: this.options.services.deps.clock,
      link: this.#link,
      adopt: (task) => this.#adopt(task),
      answered: (outcome) => this.#answered(outcome),
    });
    this.#task.start(request);
  }

  /** With nothing left to ask, the client is not kept waiting for the end of the window. */
  #withdrawnBeforeSent(question: InputQuestion): void {
    this.withdrawn(question);
    if (this.#step.kind === 'asking' && this.isRunning) this.#prepareAgain();
  }

  #adopt(task: CreatedTask): boolean {
    const { services, client } = this.options;
    const { principal, declaresTasks } = client;
    // A client that cannot follow a task waits for its result.
    if (!declaresTasks) return false;
    const parts = { principal, link: this.#link, answered: this.#context, features: this.#features, task };
    const hosted = services.hostedTasks.add(parts);
    if (hosted === undefined) return false;
    this.#step = ADOPTED;
    this.finished(hosted.created());
    return true;
  }

  get #features(): RevisionFeatures {
    return featuresOf(servedRevision(this.#server?.protocolVersion).id);
  }

  // ---- what the park decides

  proceed(): void {
    switch (this.#step.kind) {
      case 'asking':
        return this.#prepareAgain();
      case 'refused':
        return this.#visited();
      default:
        // The call runs at the server, which has the answers.
        return;
    }
  }

  over(): void {
    const step = this.#step;
    this.#step = OVER;
    this.#preparation?.stop();
    this.#questions = undefined;
    if (step.kind === 'completing') step.stop();
    if (step.kind !== 'opening' && this.#mayBeAsked) this.#link.session.callOver();
    if (step.kind === 'adopted') return;
    // Closing the link withdraws what is open.
    if (this.#task === undefined) this.#link.close();
    else this.#task.end();
  }

  forgotten(): void {
    this.#notices?.clear();
  }

  /** Headers of callers are not stored, so a server that wants to see them can be asked for nothing more elsewhere. */
  continuation(): Continuation | undefined {
    const step = this.#step;
    if (step.kind !== 'sent' || this.options.wanted.headers !== undefined) return undefined;
    return this.#link.session.continuationOf(step.request);
  }

  handedOver(): void {
    this.#step = OVER;
    this.#preparation?.stop();
    this.#questions = undefined;
    const { pool, deps } = this.options.services;
    this.#link.session.handOver();
    // Other calls of the session may be handed over in the same moment.
    deps.clock.after(0, () => pool.endHandedOver());
  }

  // ---- what comes from the server

  fromServer(frame: Frame, exchange: Exchange | undefined): void {
    switch (frame.kind) {
      case 'result':
      case 'error':
        // Answers go to whatever has sent the request.
        return;
      case 'notification':
        if (frame.method === CANCELLED) return this.#questions?.withdrawn(frame);
        return this.#noticesOf().take(frame, exchange);
      case 'request':
        return this.#questionsOf().asked(frame, this.#features);
      default:
        return assertNever(frame.kind);
    }
  }

  #questionsOf(): CallQuestions {
    this.#questions ??= new CallQuestions({ park: this, send: (message) => void this.#link.send(message) });
    return this.#questions;
  }

  #noticesOf(): CallNotices {
    const { services, wanted } = this.options;
    const { calls, deps } = services;
    this.#notices ??= new CallNotices({
      call: this,
      openBytes: () => calls.openBytes(wanted.principal),
      logLevel: this.#logLevel,
      log: deps.log,
    });
    return this.#notices;
  }

  #answered(outcome: Frame): void {
    if (outcome.kind === 'error') this.#refusedBy(outcome);
    else this.finished(modernOutcome(outcome, this.#context));
  }

  get #context(): Answered {
    return { request: this.options.request, server: this.#server };
  }

  #refusedBy(frame: Frame): void {
    const error = readRpcError(frame);
    const isRefusal = error.code === URL_ELICITATION_REQUIRED && isInteractive(this.#method);
    const elicitations = isRefusal ? readUrlElicitations(error) : undefined;
    if (elicitations === undefined) return this.finished(modernFailure(frame, this.#context));
    this.#step = REFUSED;
    this.#elicitations ??= new RequiredElicitations({
      park: this,
      declared: this.options.wanted.capabilities,
      failed: (reason) => this.finished(errorFrame(0, reason)),
    });
    this.#elicitations.require(elicitations, error);
  }

  /** The server itself refused the first attempt, so that this one is the first that does anything. */
  #visited(): void {
    const elicitations = this.#elicitations;
    if (elicitations === undefined) return;
    if (!elicitations.isAccepted) return this.finished(declined(this.#method, this.serverInfo));
    const stop = elicitations.whenComplete(this.#link.session.elicitations, () => this.#prepareAgain());
    this.#step = { kind: 'completing', stop };
  }

  // ---- ends

  refused(error: RpcError): void {
    this.failed(error);
  }

  lost(reason: BridgeError): void {
    this.#task?.lost();
    this.failed(rpcErrorOf(reason));
  }

  serverDrained(): void {
    for (const follower of this.followers) follower.serverDrained();
  }
}
