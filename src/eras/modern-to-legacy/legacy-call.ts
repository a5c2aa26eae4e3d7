import type { Deps } from '../../deps.ts';
import { assertNever, BridgeError } from '../../errors.ts';
import { readServerInfo } from '../../mcp/translate/results.ts';
import { CANCELLED, isInteractive } from '../../mcp/vocabulary/methods.ts';
import { featuresOf, findRevision, OLDEST_REVISION, type RevisionFeatures } from '../../mcp/vocabulary/revisions.ts';
import { URL_ELICITATION_REQUIRED } from '../../mcp/vocabulary/rpc-codes.ts';
import { type RpcError, rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { InitializeResult } from '../../relay/shared/initialize-result.ts';
import type { Frame } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { HeldBytes } from '../parked-bytes.ts';
import { CallAttempt } from './call-attempt.ts';
import { CallNotices } from './call-notices.ts';
import { type CallForm, CallPreparation } from './call-preparation.ts';
import { CallQuestions } from './call-questions.ts';
import { type Follower, mostVerbose } from './follower.ts';
import type { HostedTasks } from './hosted-tasks.ts';
import { readRpcError } from './legacy-answers.ts';
import { legacyRequest } from './legacy-request.ts';
import { type Answered, modernFailure, modernOutcome } from './modern-outcome.ts';
import type { InputQuestion } from './open-questions.ts';
import { ParkedCall, type ParkedCallHost } from './parked-call.ts';
import type { ParkedCalls } from './parked-calls.ts';
import type { LegacyPool } from './pool/legacy-pool.ts';
import type { SessionWanted } from './pool/session-wanted.ts';
import { type RequestStates, requestDigest } from './request-state.ts';
import { RequiredElicitations } from './required-elicitations.ts';
import { rootsQuestion } from './server-question.ts';
import { SessionLink, type SessionLinkUser, upstreamExchange } from './session-link.ts';
import type { CreatedTask, TaskTools } from './task-tools.ts';
import { declined, readUrlElicitations } from './url-elicitations.ts';

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
  readonly #preparation: CallPreparation;
  readonly #attempt: CallAttempt;
  readonly #questions: CallQuestions;
  readonly #notices: CallNotices;
  readonly #elicitations: RequiredElicitations;
  #step: Step = OPENING;
  #server: InitializeResult | undefined;

  constructor(options: LegacyCallOptions) {
    const { deps, states, calls, taskTools, wanted, request } = options;
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
    const { clock } = deps;
    const exchangeFor = (message: Frame, method: string): Exchange => {
      return upstreamExchange({ request: message, method, nowMs: clock.now() });
    };
    const ready = (form: CallForm): void => this.#askRoots(form);
    this.#preparation = new CallPreparation({ clock, link, taskTools, request, exchangeFor, ready });
    const adopt = (task: CreatedTask): boolean => this.#adopt(task);
    const answered = (outcome: Frame): void => this.#answered(outcome);
    const ended = (): void => link.close(FINISHED);
    this.#attempt = new CallAttempt({ clock, link, exchangeFor, adopt, answered, ended });
    this.#questions = new CallQuestions({ park, send: (message) => void link.send(message) });
    const openBytes = (): HeldBytes => calls.openBytes(wanted.principal);
    this.#notices = new CallNotices({ park, openBytes, log: deps.log });
    const failed = (error: RpcError): void => this.#finish(error);
    this.#elicitations = new RequiredElicitations({ park, declared: wanted.capabilities, failed });
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
    this.#notices.joined(follower);
    if (follower.logLevel !== undefined && this.#step.kind !== 'over') this.#preparation.setLevel(follower.logLevel);
  }

  // ---- the way to the server

  opened(result: InitializeResult): void {
    this.#server = result;
    this.#park.serverInfo = readServerInfo(result.serverInfo);
    this.#step = PREPARING;
    this.#preparation.start(result, mostVerbose(this.#park.observers));
  }

  #prepare(): void {
    this.#step = PREPARING;
    this.#preparation.lookUp();
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
    if (this.#step.kind === 'asking' && this.#park.state === 'running') this.#prepare();
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
        return this.#prepare();
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
    this.#preparation.stop();
    const { level } = this.#preparation;
    if (level !== undefined) this.#link.session.holdLevel(level);
    this.#questions.clear();
    if (step.kind === 'completing') step.stop();
    if (step.kind !== 'opening' && this.#mayBeAsked) this.#link.session.callOver();
    if (step.kind !== 'adopted') this.#attempt.end();
  }

  forgotten(): void {
    this.#notices.clear();
  }

  // ---- what comes from the server

  fromServer(frame: Frame, exchange: Exchange | undefined): void {
    switch (frame.kind) {
      case 'result':
      case 'error':
        if (exchange === undefined) return;
        if (this.#step.kind === 'preparing') return this.#preparation.answered(frame, exchange);
        return this.#attempt.take(frame, exchange);
      case 'notification':
        if (frame.method === CANCELLED) return this.#questions.withdrawn(frame);
        return this.#notices.take(frame, exchange);
      case 'request':
        return this.#questions.asked(frame, this.#features);
      default:
        return assertNever(frame.kind);
    }
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
    this.#elicitations.require(elicitations, error);
  }

  #finish(error: RpcError): void {
    this.#park.finished(errorFrame(0, error));
  }

  /** The server itself refused the first attempt, so that this one is the first that does anything. */
  #visited(): void {
    if (!this.#elicitations.isAccepted) return this.#park.finished(declined(this.#method, this.#park.serverInfo));
    const stop = this.#elicitations.whenComplete(this.#link.session.elicitations, () => this.#prepare());
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
