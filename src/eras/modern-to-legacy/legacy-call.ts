import type { Deps } from '../../deps.ts';
import { assertNever, BridgeError } from '../../errors.ts';
import { findCancelledId } from '../../mcp/correlators.ts';
import { replaceCode } from '../../mcp/era-errors.ts';
import { type LogLevel, parseLogLevel, severityOf } from '../../mcp/log-levels.ts';
import {
  CALL_TOOL,
  CANCELLED,
  ELICIT,
  isInteractive,
  isListChanged,
  LIST_TOOLS,
  LOG_MESSAGE,
  PROGRESS,
  RESOURCE_UPDATED,
  SET_LEVEL,
} from '../../mcp/methods.ts';
import { readServerInfo } from '../../mcp/modern-results.ts';
import { readPayload } from '../../mcp/payload.ts';
import { featuresOf, type RevisionFeatures } from '../../mcp/revision-features.ts';
import { findRevision, OLDEST_REVISION } from '../../mcp/revisions.ts';
import { INTERNAL_ERROR, URL_ELICITATION_REQUIRED } from '../../mcp/rpc-codes.ts';
import { type RpcError, rpcErrorOf } from '../../mcp/rpc-errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { LegacyPool, SessionWanted } from '../../relay/legacy-pool.ts';
import type { Lane } from '../../relay/ports.ts';
import type { InitializeResult } from '../../relay/shared/initialize-result.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame, notificationFrame, requestFrame } from '../../wire/write-message.ts';
import type { InputQuestion } from '../open-questions.ts';
import { type CallHost, type CallObserver, MAX_CALL_MS, ParkedCall } from '../parked-call.ts';
import type { ParkedCalls } from '../parked-calls.ts';
import { type RequestStates, requestDigest } from '../request-state.ts';
import { readRpcError } from './legacy-answers.ts';
import { legacyRequest } from './legacy-request.ts';
import { LegacySeat, type SeatUser, upstreamExchange } from './legacy-seat.ts';
import { type Answered, modernFailure, modernOutcome } from './modern-outcome.ts';
import { ProgressRelay } from './progress-relay.ts';
import { rootsQuestion, serverQuestion } from './server-question.ts';
import {
  asTask,
  CANCEL_TASK,
  createdTaskId,
  offersTasks,
  TASK_RESULT,
  type TaskTools,
  ToolPages,
} from './task-tools.ts';
import {
  COMPLETION_MS,
  declined,
  isAccept,
  MAX_URL_ROUNDS,
  readUrlElicitations,
  takesUrls,
  URL_MODE_MISSING,
  type UrlElicitation,
} from './url-elicitations.ts';

/** A server that takes longer to set its log level serves the call as it is. */
export const LEVEL_MS = 2000;
/** How long a server may take to end a task before it is left alone with it. */
export const CANCEL_TASK_MS = 2000;

/** A request of the client that follows this call. */
export interface Follower extends CallObserver {
  readonly logLevel: LogLevel | undefined;
  /** As the client wrote it. */
  readonly progressToken: Buffer | undefined;
  notify(frame: Frame): void;
  serverDrained(): void;
}

export interface LegacyCallOptions {
  readonly deps: Deps;
  readonly pool: LegacyPool;
  readonly states: RequestStates;
  readonly calls: ParkedCalls<Follower>;
  readonly taskTools: TaskTools;
  readonly wanted: SessionWanted;
  /** The client's first request, with its envelope. */
  readonly request: Frame;
  /** That the user lets pass with it; see `Lane`. */
  readonly headers: Lane['headers'];
}

/**
 * - `opening`: waits until the server serves.
 * - `levelling`: waits until the server logs as the client wants it.
 * - `listing`: waits for the list of tools, which says how the tool is called.
 * - `asking`: not sent yet; the client is asked for what the server wanted to know before.
 * - `creating`: sent as a task, which the server has not accepted yet.
 * - `sent`: runs at the server, perhaps as a task.
 * - `refused`: the server wants its user to visit URLs first; the client is asked.
 * - `completing`: the user has agreed; it will be sent once more when the visit has had its effect.
 * - `withdrawing`: over, but for the task, which the server is told to end.
 * - `over`: nothing more happens.
 */
type Step =
  | { readonly kind: 'opening' }
  | { readonly kind: 'levelling'; readonly exchange: Exchange; readonly cancel: () => void }
  | { readonly kind: 'asking' }
  | { readonly kind: 'listing'; readonly exchange: Exchange; readonly pages: ToolPages }
  | { readonly kind: 'creating'; readonly exchange: Exchange }
  | { readonly kind: 'sent'; readonly exchange: Exchange; readonly taskId: string | undefined }
  | { readonly kind: 'refused'; readonly elicitations: readonly UrlElicitation[]; isAccepted: boolean }
  | { readonly kind: 'completing'; readonly stop: () => void }
  | { readonly kind: 'withdrawing'; readonly exchange: Exchange; readonly cancel: () => void }
  | { readonly kind: 'over' };

const OVER: Step = { kind: 'over' };

/** Runs one call of a modern client at a legacy server. Which requests of the client follow it, its park knows. */
export class LegacyCall implements SeatUser, CallHost<Follower> {
  readonly #options: LegacyCallOptions;
  readonly #method: string;
  readonly #seat: LegacySeat;
  readonly #park: ParkedCall<Follower>;
  /** The server's open questions by their id. */
  readonly #questions = new Map<JsonRpcId, InputQuestion>();
  readonly #progress = new ProgressRelay();
  #step: Step = { kind: 'opening' };
  #server: InitializeResult | undefined;
  #level: LogLevel | undefined;
  #urlRounds = 0;
  /** The server that ran the call is gone. */
  #isLost = false;

  constructor(options: LegacyCallOptions) {
    const { deps, states, calls, wanted, request } = options;
    this.#options = options;
    this.#method = request.method ?? '';
    this.#seat = new LegacySeat(this);
    this.#park = new ParkedCall({
      id: deps.randomId(),
      clock: deps.clock,
      states,
      calls,
      host: this,
      principal: wanted.principal,
      digest: () => requestDigest(this.#method, readPayload(request)),
    });
  }

  /** Throws a BridgeError when there is no session to be had. */
  start(follower: Follower): void {
    this.#park.attach(follower);
    this.#seat.open(this.#options.pool, this.#options.wanted);
  }

  /** By which the client's requests follow the call. */
  get park(): ParkedCall<Follower> {
    return this.#park;
  }

  joined(follower: Follower): void {
    this.#progress.joined(follower);
    const { logLevel } = follower;
    if (this.#step.kind === 'opening' || logLevel === undefined || logLevel === this.#level) return;
    this.#setLevel(logLevel);
  }

  // ---- the way to the server

  opened(result: InitializeResult): void {
    this.#server = result;
    this.#park.serverInfo = readServerInfo(result.serverInfo);
    const wanted = mostVerbose(this.#park.observers);
    if (wanted === undefined || !('logging' in result.capabilities)) return this.#ready();
    const { clock } = this.#options.deps;
    const cancel = clock.after(LEVEL_MS, () => this.#ready());
    const exchange = this.#exchangeFor(LEVEL_REQUEST, SET_LEVEL);
    this.#step = { kind: 'levelling', exchange, cancel };
    this.#sendLevel(wanted, exchange);
  }

  #setLevel(level: LogLevel): void {
    if (this.#server === undefined || !('logging' in this.#server.capabilities)) return;
    this.#sendLevel(level, this.#exchangeFor(LEVEL_REQUEST, SET_LEVEL));
  }

  #sendLevel(level: LogLevel, exchange: Exchange): void {
    this.#level = level;
    this.#seat.send(requestFrame(exchange.id, SET_LEVEL, { level }), exchange);
  }

  #ready(): void {
    if (this.#step.kind === 'levelling') this.#step.cancel();
    this.#forward();
  }

  /** With nothing left to ask, the client is not kept waiting for the end of the window. */
  #withdrawnBeforeSent(question: InputQuestion): void {
    this.#park.withdrawn(question);
    if (this.#step.kind === 'asking' && this.#park.state === 'running') this.#forward();
  }

  #forward(): void {
    const isTool = this.#method === CALL_TOOL && offersTasks(this.#server?.capabilities ?? {});
    if (!isTool) return this.#askRoots('plain');
    const { session } = this.#seat;
    const isTask = this.#options.taskTools.isRequired(session, readPayload(this.#options.request)?.name);
    if (isTask === undefined) return this.#listTools(new ToolPages(session.toolsVersion), {});
    this.#askRoots(isTask ? 'task' : 'plain');
  }

  #listTools(pages: ToolPages, params: object): void {
    const request = requestFrame('tools', LIST_TOOLS, params);
    const exchange = this.#exchangeFor(request, LIST_TOOLS);
    this.#step = { kind: 'listing', exchange, pages };
    this.#seat.send(request, exchange);
  }

  #listed(pages: ToolPages, answer: Frame): void {
    const cursor = pages.take(answer);
    if (cursor !== undefined) return this.#listTools(pages, { cursor });
    this.#options.taskTools.learn(this.#seat.session, pages.toolsVersion, pages.required);
    const isTask = pages.required.has(String(readPayload(this.#options.request)?.name));
    this.#askRoots(isTask ? 'task' : 'plain');
  }

  /** What the server wanted to know when nobody could be asked, this client is asked before its call is sent. */
  #askRoots(form: 'plain' | 'task'): void {
    const held = isInteractive(this.#method) ? this.#seat.session.roots.takeWaiting() : [];
    if (held.length > 0) this.#step = { kind: 'asking' };
    for (const roots of held) {
      const question = rootsQuestion(roots);
      roots.onWithdrawn = () => this.#withdrawnBeforeSent(question);
      this.#park.asked(question);
    }
    // None, or there was no room to ask.
    if (this.#park.state !== 'running') return;
    if (form === 'task') this.#sendAsTask();
    else this.#send();
  }

  #send(): void {
    const { request } = this.#options;
    const exchange = this.#exchangeFor(request, this.#method);
    this.#step = { kind: 'sent', exchange, taskId: undefined };
    this.#seat.send(legacyRequest(request, this.#features), exchange);
  }

  #sendAsTask(): void {
    const { request } = this.#options;
    const exchange = this.#exchangeFor(request, this.#method);
    this.#step = { kind: 'creating', exchange };
    this.#seat.send(asTask(legacyRequest(request, this.#features), MAX_CALL_MS), exchange);
  }

  /** [spec 2025-11-25 basic/utilities/tasks#result-retrieval] answered when the task has ended. */
  #created(answer: Frame): void {
    const taskId = createdTaskId(answer);
    if (taskId === undefined) return this.#succeeded(answer);
    const request = requestFrame('task', TASK_RESULT, { taskId });
    // What the server asks meanwhile is asked in the call that became the task.
    const exchange = this.#exchangeFor(request, CALL_TOOL);
    this.#step = { kind: 'sent', exchange, taskId };
    this.#seat.send(request, exchange);
  }

  #exchangeFor(request: Frame, method: string): Exchange {
    const { deps, headers } = this.#options;
    return upstreamExchange({ request, method, nowMs: deps.clock.now(), headers });
  }

  get #features(): RevisionFeatures {
    return featuresOf((findRevision(this.#server?.protocolVersion) ?? OLDEST_REVISION).id);
  }

  // ---- what the park decides

  proceed(): void {
    switch (this.#step.kind) {
      case 'asking':
        return this.#forward();
      case 'refused':
        return this.#visited(this.#step.elicitations, this.#step.isAccepted);
      default:
        // It runs, and has its answers.
        return;
    }
  }

  waiting(isWaiting: boolean): void {
    if (this.#step.kind === 'sent') this.#step.exchange.openQuestions = isWaiting ? 1 : 0;
  }

  over(): void {
    const step = this.#step;
    this.#step = OVER;
    if (step.kind === 'levelling') step.cancel();
    if (step.kind === 'completing') step.stop();
    const isOpen = step.kind === 'sent' && step.exchange.state.kind === 'open' && !this.#isLost;
    if (isOpen && step.taskId !== undefined) return this.#endTask(step.taskId, step.exchange);
    // Withdraws what is open, and leaves the log level to the others.
    this.#seat.close(FINISHED);
  }

  /** To withdraw the question for its result does not end a task. */
  #endTask(taskId: string, exchange: Exchange): void {
    exchange.cancel('client');
    this.#seat.send(notificationFrame(CANCELLED, { requestId: exchange.id }), exchange);
    const request = requestFrame('cancel', CANCEL_TASK, { taskId });
    const cancelling = this.#exchangeFor(request, CANCEL_TASK);
    const cancel = this.#options.deps.clock.after(CANCEL_TASK_MS, () => this.#seat.close(FINISHED));
    this.#step = { kind: 'withdrawing', exchange: cancelling, cancel };
    this.#seat.send(request, cancelling);
  }

  #taskEnded(cancelTimer: () => void): void {
    this.#step = OVER;
    cancelTimer();
    this.#seat.close(FINISHED);
  }

  // ---- what comes from the server

  fromServer(frame: Frame, exchange: Exchange | undefined): void {
    switch (frame.kind) {
      case 'result':
      case 'error':
        return this.#answered(frame, exchange);
      case 'notification':
        return this.#notified(frame, exchange);
      case 'request':
        return this.#asked(frame);
      default:
        return assertNever(frame.kind);
    }
  }

  #answered(frame: Frame, exchange: Exchange | undefined): void {
    const step = this.#step;
    if (!('exchange' in step) || exchange !== step.exchange) return;
    exchange.settle();
    switch (step.kind) {
      case 'levelling':
        return this.#ready();
      case 'listing':
        return this.#listed(step.pages, frame);
      case 'creating':
        return frame.kind === 'error' ? this.#failed(frame) : this.#created(frame);
      case 'sent':
        this.#questions.clear();
        return frame.kind === 'error' ? this.#failed(frame) : this.#succeeded(frame);
      case 'withdrawing':
        return this.#taskEnded(step.cancel);
      default:
        return assertNever(step);
    }
  }

  #succeeded(frame: Frame): void {
    this.#park.finished(modernOutcome(frame, this.#context));
  }

  get #context(): Answered {
    return { request: this.#options.request, server: this.#server };
  }

  #failed(frame: Frame): void {
    const error = readRpcError(frame);
    if (error.code === URL_ELICITATION_REQUIRED && isInteractive(this.#method)) return this.#urlsRequired(error);
    this.#park.finished(modernFailure(error, this.#context));
  }

  #finish(error: RpcError): void {
    this.#park.finished(errorFrame(0, error));
  }

  #notified(frame: Frame, exchange: Exchange | undefined): void {
    switch (frame.method) {
      case PROGRESS:
        return this.#progress.take(frame, this.#park.observers);
      case LOG_MESSAGE:
        return this.#logged(frame);
      case CANCELLED:
        return this.#withdrawn(frame);
      default:
        // Changes are for those who listen to them.
        if (exchange === undefined || isListChanged(frame.method) || frame.method === RESOURCE_UPDATED) return;
        for (const follower of this.#park.observers) follower.notify(frame);
    }
  }

  #logged(frame: Frame): void {
    const level = parseLogLevel(readPayload(frame)?.level);
    if (level === undefined) return;
    for (const follower of this.#park.observers) {
      const isWanted = follower.logLevel !== undefined && severityOf(level) >= severityOf(follower.logLevel);
      if (isWanted) follower.notify(frame);
    }
  }

  #asked(frame: Frame): void {
    const { id } = frame;
    if (id === undefined) return;
    const send = (message: Frame): void => {
      if (message.isResponse) this.#questions.delete(id);
      this.#seat.send(message);
    };
    const question = serverQuestion(frame, { features: this.#features, send });
    this.#questions.set(id, question);
    this.#park.asked(question);
  }

  #withdrawn(frame: Frame): void {
    const id = findCancelledId(frame)?.value;
    const question = id === undefined ? undefined : this.#questions.get(id);
    if (id === undefined || question === undefined) return;
    this.#questions.delete(id);
    this.#park.withdrawn(question);
  }

  // ---- visits of URLs

  #urlsRequired(error: RpcError): void {
    const elicitations = readUrlElicitations(error);
    if (elicitations === undefined) return this.#park.finished(modernFailure(error, this.#context));
    if (!takesUrls(this.#options.wanted.capabilities.capabilities)) return this.#finish(URL_MODE_MISSING);
    this.#urlRounds += 1;
    if (this.#urlRounds > MAX_URL_ROUNDS) {
      const bridge = { reason: 'too_many_rounds', originalCode: error.code };
      return this.#finish(replaceCode({ ...error, data: undefined }, INTERNAL_ERROR, bridge));
    }
    const step: Step = { kind: 'refused', elicitations, isAccepted: true };
    this.#step = step;
    for (const { request } of elicitations) {
      this.#park.asked({
        method: ELICIT,
        request,
        answer: (response) => {
          step.isAccepted &&= isAccept(response);
        },
        // Nobody waits for these answers but the client itself.
        refuse: () => this.#finish(NO_ROOM),
        keepAlive: undefined,
      });
    }
  }

  /** The server itself refused the first attempt, so that this one is the first that does anything. */
  #visited(elicitations: readonly UrlElicitation[], isAccepted: boolean): void {
    if (!isAccepted) return this.#park.finished(declined(this.#method, this.#park.serverInfo));
    const ids = elicitations.flatMap(({ elicitationId }) => (elicitationId === undefined ? [] : [elicitationId]));
    const stop = this.#seat.session.elicitations.whenCompleted(ids, COMPLETION_MS, () => this.#forward());
    this.#step = { kind: 'completing', stop };
  }

  // ---- ends

  refused(error: RpcError): void {
    this.#park.lost(errorFrame(0, error));
  }

  lost(reason: BridgeError): void {
    this.#isLost = true;
    if (this.#step.kind === 'withdrawing') this.#taskEnded(this.#step.cancel);
    this.#park.lost(errorFrame(0, rpcErrorOf(reason)));
  }

  serverDrained(): void {
    for (const follower of this.#park.observers) follower.serverDrained();
  }
}

const LEVEL_REQUEST = requestFrame('level', SET_LEVEL);
const FINISHED = new BridgeError('ERR_SESSION_CLOSED', 'The client does not follow this call any more.');
const NO_ROOM: RpcError = { code: INTERNAL_ERROR, message: 'too many calls wait for their clients; try again later' };

function mostVerbose(followers: Iterable<Follower>): LogLevel | undefined {
  let most: LogLevel | undefined;
  for (const { logLevel } of followers) {
    if (logLevel !== undefined && (most === undefined || severityOf(logLevel) < severityOf(most))) most = logLevel;
  }
  return most;
}
