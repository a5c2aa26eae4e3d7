import type { Deps } from '../../deps.ts';
import { assertNever, BridgeError } from '../../errors.ts';
import { readServerInfo } from '../../mcp/translate/results.ts';
import type { LogLevel } from '../../mcp/vocabulary/log-levels.ts';
import { CANCELLED, isInteractive } from '../../mcp/vocabulary/methods.ts';
import { featuresOf, findRevision, OLDEST_REVISION, type RevisionFeatures } from '../../mcp/vocabulary/revisions.ts';
import { URL_ELICITATION_REQUIRED } from '../../mcp/vocabulary/rpc-codes.ts';
import { type RpcError, rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { InitializeResult } from '../../relay/shared/legacy/initialize-result.ts';
import type { Frame } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { CallAttempt } from './call-attempt.ts';
import { type Answered, legacyRequest, modernFailure, modernOutcome, readRpcError } from './call-messages.ts';
import { CallNotices } from './call-notices.ts';
import { type CallForm, CallPreparation, hasChoice, setsLevel } from './call-preparation.ts';
import type { HostedTasks } from './hosted-tasks.ts';
import { type Follower, mostVerbose, ParkedCall, type ParkedCallHost } from './parked-call.ts';
import type { ParkedCalls } from './parked-calls.ts';
import type { LegacyPool } from './pool/legacy-pool.ts';
import type { SessionWanted } from './pool/session-wanted.ts';
import { CallQuestions, type InputQuestion, rootsQuestion } from './questions.ts';
import { type RequestStates, requestDigest } from './request-state.ts';
import { SessionLink, type SessionLinkUser, upstreamExchange } from './session-link.ts';
import type { CreatedTask, TaskTools } from './task-tools.ts';
import { declined, RequiredElicitations, readUrlElicitations } from './url-elicitations.ts';

export interface LegacyCallOptions {
  readonly deps: Deps;
  readonly pool: LegacyPool;
  readonly states: RequestStates;
  readonly calls: ParkedCalls<ParkedCall<Follower>>;
  readonly taskTools: TaskTools;
  readonly wanted: SessionWanted;
  /** The client's first request, with its envelope. */
  readonly request: Frame;
  /** Where its client can follow tasks; undefined: it waits for the result. */
  readonly hostedTasks: HostedTasks | undefined;
}

/**
 * - `opening`: waits until the server serves.
 * - `preparing`: the server is told its log level, and asked how the tool is called.
 * - `asking`: not sent yet; the client is asked for what the server wanted to know before.
 * - `sent`: runs at the server.
 * - `refused`: the server wants its user to visit URLs first; the client is asked.
 * - `completing`: the user has agreed; it will be sent once more when the elicitation is complete.
 * - `adopted`: has become a task, which its client follows by itself.
 * - `over`: nothing more happens.
 */
type Step =
  | { readonly kind: 'opening' | 'preparing' | 'asking' | 'sent' | 'refused' | 'adopted' | 'over' }
  | { readonly kind: 'completing'; readonly stop: () => void };

const OPENING: Step = { kind: 'opening' };
const PREPARING: Step = { kind: 'preparing' };
const ASKING: Step = { kind: 'asking' };
const SENT: Step = { kind: 'sent' };
const REFUSED: Step = { kind: 'refused' };
const ADOPTED: Step = { kind: 'adopted' };
const OVER: Step = { kind: 'over' };

/** Runs one call of a modern client at a legacy server. Which requests of the client follow it, its park knows. */
export class LegacyCall implements SessionLinkUser, ParkedCallHost<Follower> {
  readonly #options: LegacyCallOptions;
  readonly #method: string;
  readonly #link: SessionLink;
  readonly #park: ParkedCall<Follower>;
  readonly #attempt: CallAttempt;
  // Most calls need none of these; each is made when there is something for it to do.
  #preparation: CallPreparation | undefined;
  #questions: CallQuestions | undefined;
  #notices: CallNotices | undefined;
  #elicitations: RequiredElicitations | undefined;
  /** The log level of the request that followed the call last. */
  #logLevel: LogLevel | undefined;
  #step: Step = OPENING;
  #server: InitializeResult | undefined;

  constructor(options: LegacyCallOptions) {
    const { deps, states, calls, wanted, request } = options;
    this.#options = options;
    this.#method = request.method ?? '';
    const link = new SessionLink(this);
    const park = new ParkedCall<Follower>({
      createId: deps.randomId,
      clock: deps.clock,
      states,
      calls,
      host: this,
      principal: wanted.principal,
      requestBytes: request.bytes.length,
      digest: () => requestDigest(request),
    });
    this.#link = link;
    this.#park = park;
    const adopt = (task: CreatedTask): boolean => this.#adopt(task);
    const answered = (outcome: Frame): void => this.#answered(outcome);
    const ended = (): void => link.close(FINISHED);
    const exchangeFor = (message: Frame, method: string): Exchange => this.#exchangeFor(message, method);
    this.#attempt = new CallAttempt({ clock: deps.clock, link, exchangeFor, adopt, answered, ended });
  }

  #exchangeFor(request: Frame, method: string): Exchange {
    return upstreamExchange({ request, method, nowMs: this.#options.deps.clock.now() });
  }

  /** Throws a BridgeError when there is no session to be had. */
  start(follower: Follower): void {
    this.#park.attach(follower);
    const { pool, wanted } = this.#options;
    if (this.#mayBeAsked) this.#link.openAlone(pool, wanted);
    else this.#link.open(pool, wanted);
  }

  get #mayBeAsked(): boolean {
    return this.#options.wanted.capabilities.areAskable && isInteractive(this.#method);
  }

  /** By which the client's requests follow the call. */
  get park(): ParkedCall<Follower> {
    return this.#park;
  }

  joined(follower: Follower): void {
    const { logLevel } = follower;
    this.#logLevel = logLevel;
    this.#notices?.joined(follower);
    const server = this.#server;
    if (logLevel === undefined || this.#step.kind === 'over' || server === undefined || !setsLevel(server)) return;
    this.#preparationFor(server).setLevel(logLevel);
  }

  // ---- the way to the server

  opened(result: InitializeResult): void {
    this.#server = result;
    this.#park.serverInfo = readServerInfo(result.serverInfo);
    this.#step = PREPARING;
    const level = mostVerbose(this.#park.observers);
    if (level !== undefined && setsLevel(result)) this.#preparationFor(result).start(level);
    else this.#prepare(result);
  }

  #prepare(server: InitializeResult): void {
    this.#step = PREPARING;
    if (hasChoice(this.#method, server)) this.#preparationFor(server).lookUp();
    else this.#askRoots('plain');
  }

  #preparationFor(server: InitializeResult): CallPreparation {
    const { deps, taskTools, request } = this.#options;
    this.#preparation ??= new CallPreparation({
      clock: deps.clock,
      link: this.#link,
      taskTools,
      server,
      request,
      exchangeFor: (message, method) => this.#exchangeFor(message, method),
      ready: (form) => this.#askRoots(form),
    });
    return this.#preparation;
  }

  /** Called once the server serves. */
  #prepareAgain(): void {
    if (this.#server !== undefined) this.#prepare(this.#server);
  }

  /** What the server wanted to know when nobody could be asked, this client is asked before its call is sent. */
  #askRoots(form: CallForm): void {
    const held = isInteractive(this.#method) ? this.#link.session.roots.takeWaiting() : [];
    if (held.length > 0) this.#step = ASKING;
    for (const roots of held) {
      const question = rootsQuestion(roots);
      roots.onWithdrawn = () => this.#withdrawnBeforeSent(question);
      this.#park.asked(question);
    }
    // None, or there was no room to ask.
    if (this.#park.state !== 'running') return;
    this.#step = SENT;
    this.#attempt.start(legacyRequest(this.#options.request, this.#features), form);
  }

  /** With nothing left to ask, the client is not kept waiting for the end of the window. */
  #withdrawnBeforeSent(question: InputQuestion): void {
    this.#park.withdrawn(question);
    if (this.#step.kind === 'asking' && this.#park.state === 'running') this.#prepareAgain();
  }

  #adopt(task: CreatedTask): boolean {
    const { hostedTasks, wanted } = this.#options;
    const { principal } = wanted;
    const parts = { principal, link: this.#link, answered: this.#context, features: this.#features, task };
    const hosted = hostedTasks?.add(parts);
    if (hosted === undefined) return false;
    this.#step = ADOPTED;
    this.#park.finished(hosted.created());
    return true;
  }

  get #features(): RevisionFeatures {
    return featuresOf((findRevision(this.#server?.protocolVersion) ?? OLDEST_REVISION).id);
  }

  // ---- what the park decides

  proceed(): void {
    switch (this.#step.kind) {
      case 'asking':
        return this.#prepareAgain();
      case 'refused':
        return this.#visited();
      default:
        // It runs, and has its answers.
        return;
    }
  }

  over(): void {
    const step = this.#step;
    this.#step = OVER;
    this.#preparation?.stop();
    const level = this.#preparation?.level;
    if (level !== undefined) this.#link.session.holdLevel(level);
    this.#questions = undefined;
    if (step.kind === 'completing') step.stop();
    if (step.kind !== 'opening' && this.#mayBeAsked) this.#link.session.callOver();
    if (step.kind !== 'adopted') this.#attempt.end();
  }

  forgotten(): void {
    this.#notices?.clear();
  }

  // ---- what comes from the server

  fromServer(frame: Frame, exchange: Exchange | undefined): void {
    switch (frame.kind) {
      case 'result':
      case 'error':
        if (exchange === undefined) return;
        if (this.#step.kind === 'preparing') return this.#preparation?.answered(frame, exchange);
        return this.#attempt.take(frame, exchange);
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
    this.#questions ??= new CallQuestions({ park: this.#park, send: (message) => void this.#link.send(message) });
    return this.#questions;
  }

  #noticesOf(): CallNotices {
    const { calls, wanted, deps } = this.#options;
    this.#notices ??= new CallNotices({
      park: this.#park,
      openBytes: () => calls.openBytes(wanted.principal),
      logLevel: this.#logLevel,
      log: deps.log,
    });
    return this.#notices;
  }

  #answered(outcome: Frame): void {
    if (outcome.kind === 'error') this.#failed(outcome);
    else this.#park.finished(modernOutcome(outcome, this.#context));
  }

  get #context(): Answered {
    return { request: this.#options.request, server: this.#server };
  }

  #failed(frame: Frame): void {
    const error = readRpcError(frame);
    const isRefusal = error.code === URL_ELICITATION_REQUIRED && isInteractive(this.#method);
    const elicitations = isRefusal ? readUrlElicitations(error) : undefined;
    if (elicitations === undefined) return this.#park.finished(modernFailure(frame, this.#context));
    this.#step = REFUSED;
    this.#elicitations ??= new RequiredElicitations({
      park: this.#park,
      declared: this.#options.wanted.capabilities,
      failed: (reason) => this.#finish(reason),
    });
    this.#elicitations.require(elicitations, error);
  }

  #finish(error: RpcError): void {
    this.#park.finished(errorFrame(0, error));
  }

  /** The server itself refused the first attempt, so that this one is the first that does anything. */
  #visited(): void {
    const elicitations = this.#elicitations;
    if (elicitations === undefined) return;
    if (!elicitations.isAccepted) return this.#park.finished(declined(this.#method, this.#park.serverInfo));
    const stop = elicitations.whenComplete(this.#link.session.elicitations, () => this.#prepareAgain());
    this.#step = { kind: 'completing', stop };
  }

  // ---- ends

  refused(error: RpcError): void {
    this.#park.lost(errorFrame(0, error));
  }

  lost(reason: BridgeError): void {
    this.#attempt.lost();
    this.#park.lost(errorFrame(0, rpcErrorOf(reason)));
  }

  serverDrained(): void {
    for (const follower of this.#park.observers) follower.serverDrained();
  }
}

const FINISHED = new BridgeError('ERR_SESSION_CLOSED', 'The client does not follow this call any more.');
