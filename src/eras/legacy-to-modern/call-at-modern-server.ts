import { assertNever, type BridgeError } from '../../errors.ts';
import { resultTypeOf, withInputAnswers } from '../../mcp/classify/input-required.ts';
import { stampMetadata } from '../../mcp/classify/request-metadata.ts';
import { legacyFailure } from '../../mcp/translate/errors.ts';
import { CALL_TOOL } from '../../mcp/vocabulary/methods.ts';
import { asFields, type Fields, readFields } from '../../mcp/vocabulary/payload.ts';
import { findCommonModern } from '../../mcp/vocabulary/revisions.ts';
import { INVALID_PARAMS, UNSUPPORTED_REVISION } from '../../mcp/vocabulary/rpc-codes.ts';
import type { Call } from '../../relay/call.ts';
import { type Frame, withId } from '../../wire/frame.ts';
import { OPEN_BRACE } from '../../wire/json/ascii.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { AbsorbedTask, declaringTasks, MAX_TASK_ID_LENGTH, needsTasks } from './absorbed-task.ts';
import { type CallKeeper, errorAnswer, inputFailure, violation } from './call-host.ts';
import { CallRounds } from './call-rounds.ts';
import type { Asker } from './upstream-requests.ts';

/**
 * - `idle`: not sent yet.
 * - `asked`: the server has the request.
 * - `requiring`: the server requires input or a pause before the request is repeated.
 * - `following`: the server has made a task of the call.
 * - `ended`: answered or withdrawn.
 */
type StateAtServer =
  | { readonly kind: 'idle' | 'ended' }
  | { readonly kind: 'asked'; readonly request: Call }
  | { readonly kind: 'requiring'; readonly rounds: CallRounds }
  | { readonly kind: 'following'; readonly task: AbsorbedTask };

/**
 * A legacy client's request to a modern server. It takes as many requests there as the server needs rounds.
 * [spec 2026-07-28 basic/patterns/mrtr#client-requirements-basic-workflow]
 */
export class CallAtModernServer implements Asker {
  readonly call: Call;
  readonly #host: CallKeeper<CallAtModernServer>;
  /** The client's request. Each request to the server is derived from it. */
  readonly #frame: Frame;
  #state: StateAtServer = { kind: 'idle' };
  /** Undefined in most calls, which the server answers at once. */
  #rounds: CallRounds | undefined;
  #hasRenegotiated = false;
  /** True if the server accepts this call as a task only. The bridge then declares that the client can follow tasks. */
  #declaresTasks = false;

  constructor(host: CallKeeper<CallAtModernServer>, frame: Frame, call: Call) {
    this.#host = host;
    this.#frame = frame;
    this.call = call;
  }

  /** Sends the request. Returns false if the server's side is full. */
  start(): boolean {
    const request = this.#stamped();
    if (request.bytes[request.payloadStart] !== OPEN_BRACE) {
      this.#end(errorFrame(this.call.id, NO_OBJECT));
      return true;
    }
    return this.#ask(request);
  }

  #stamped(): Frame {
    const metadata = this.#host.metadata();
    return stampMetadata(this.#frame, this.#declaresTasks ? declaringTasks(metadata) : metadata);
  }

  #ask(request: Frame): boolean {
    const { requests } = this.#host;
    const sent = requests.open(this, request, this.call.lane);
    this.#state = { kind: 'asked', request: sent };
    return requests.send(request, sent);
  }

  /**
   * Repeats the request, with the answers of the last round if there was one. Capacity of the server's side is not
   * awaited, because each answer causes at most one further request.
   */
  #askAgain(): void {
    const request = this.#stamped();
    const inputs = this.#rounds?.inputs;
    this.#ask(inputs === undefined ? request : withInputAnswers(request, inputs));
  }

  // ---- from the server

  notified(frame: Frame): void {
    if (this.#state.kind === 'asked') this.#host.tell(frame, this.call);
  }

  /** A server can end subscriptions this way, and nothing else. [spec 2026-07-28 basic/patterns/cancellation] */
  withdrawn(): void {
    this.#fail(violation(this.#host.serverName, 'it withdrew a request of its client'));
  }

  answered(frame: Frame): void {
    if (this.#state.kind !== 'asked') return;
    if (frame.kind === 'error') return this.#refused(frame);
    const type = resultTypeOf(frame);
    switch (type) {
      case 'complete':
        return this.#end(this.#toLegacy(frame));
      case 'input_required':
        return this.#require(frame);
      case 'task':
        if (this.#declaresTasks) return this.#follow(readFields(frame, CREATED_TASK));
        return this.#fail(violation(this.#host.serverName, 'it made a task of a call that did not allow it'));
      case undefined:
        return this.#fail(violation(this.#host.serverName, 'its result has a type that is no text'));
      default:
        // Extensions may add types of results. A type that neither side has declared is an error.
        // [spec 2026-07-28 basic#resulttype]
        if (this.#declaresExtensions) return this.#end(this.#toLegacy(frame));
        return this.#fail(violation(this.#host.serverName, 'its result is of a type that is not known'));
    }
  }

  #toLegacy(result: Frame): Frame {
    return this.#host.toLegacyResult(withId(result, this.call.id), this.#frame);
  }

  /** Returns true if the client has declared extensions. The tasks that the bridge follows itself do not count. */
  get #declaresExtensions(): boolean {
    return this.#host.profile.capabilities.extensions !== undefined;
  }

  #refused(frame: Frame): void {
    if (this.#state.kind === 'asked') {
      const { code, data } = readFields(frame, ['code', 'data']);
      // In both cases the server has not started the call.
      if (code === UNSUPPORTED_REVISION && this.#renegotiate(data)) return;
      if (typeof code === 'number' && this.#mustBeTask(code, data)) return;
    }
    this.#end(legacyFailure(frame, this.#frame));
  }

  /**
   * Repeats the request once in another revision, if the server was replaced by one that speaks other revisions. The
   * server has not used the request yet.
   */
  #renegotiate(data: unknown): boolean {
    const supported = asFields(data)?.supported;
    const revision = Array.isArray(supported) ? findCommonModern(supported) : undefined;
    if (revision === undefined || this.#hasRenegotiated) return false;
    this.#hasRenegotiated = true;
    this.#host.useRevision(revision);
    this.#askAgain();
    return true;
  }

  #mustBeTask(code: number, data: unknown): boolean {
    if (this.#declaresTasks || this.call.method !== CALL_TOOL || !needsTasks(code, data)) return false;
    this.#declaresTasks = true;
    this.#askAgain();
    return true;
  }

  #follow(created: Fields): void {
    const { taskId } = created;
    if (typeof taskId !== 'string' || taskId.length > MAX_TASK_ID_LENGTH) {
      return this.#fail(violation(this.#host.serverName, 'its task has no id that can be kept'));
    }
    const rounds = this.#openRounds();
    const task = new AbsorbedTask(
      {
        host: this.#host,
        call: this.call,
        hold: (bytes) => rounds.hold(bytes),
        onAnswered: (answer) => {
          if (answer.kind === 'error') this.#refused(answer);
          else this.#end(this.#toLegacy(answer));
        },
        onViolation: (reason) => this.#fail(reason),
        onInputFailed: (reason) => this.#failInput(reason),
      },
      taskId,
    );
    this.#state = { kind: 'following', task };
    // The task already has the inputs of earlier rounds.
    rounds.clear();
    task.start(created);
  }

  #require(inputRequired: Frame): void {
    const rounds = this.#openRounds();
    this.#state = { kind: 'requiring', rounds };
    rounds.require(inputRequired);
  }

  #openRounds(): CallRounds {
    this.#rounds ??= new CallRounds({
      host: this.#host,
      call: this.call,
      onReady: () => this.#askAgain(),
      onViolation: (reason) => this.#fail(reason),
      onInputFailed: (reason) => this.#failInput(reason),
    });
    return this.#rounds;
  }

  // ---- the end

  /** Withdraws the call. Returns false if the server's side is full. */
  cancel(reason: string): boolean {
    const hasCapacity = this.#leaveState(reason);
    this.#ended();
    return hasCapacity;
  }

  /** The task of this call, which the server continues even without a client. */
  get task(): AbsorbedTask | undefined {
    return this.#state.kind === 'following' ? this.#state.task : undefined;
  }

  /**
   * Ends the call with its session. The server cannot be notified anymore, but the client may still have an open
   * question.
   */
  abandon(): void {
    const state = this.#state;
    this.#ended();
    if (state.kind === 'requiring') state.rounds.cancel('the session has ended');
    if (state.kind === 'following') state.task.abandon();
  }

  #fail(error: BridgeError): void {
    this.#end(errorAnswer(this.call.id, error));
  }

  #failInput(error: BridgeError): void {
    this.#end(inputFailure(this.call.id, this.call.method, error));
  }

  #end(answer: Frame): void {
    this.#leaveState('the call has ended');
    this.#ended();
    this.#host.listener.fromServer(answer, this.call);
  }

  #ended(): void {
    this.#state = ENDED;
    this.#rounds?.clear();
    this.#host.ended(this);
  }

  /** Ends the request, the questions or the timer of the current state. */
  #leaveState(reason: string): boolean {
    const state = this.#state;
    switch (state.kind) {
      case 'asked':
        return this.#host.requests.cancel(state.request, reason);
      case 'requiring':
        state.rounds.cancel(reason);
        return true;
      case 'following':
        state.task.cancel(reason);
        return true;
      case 'idle':
      case 'ended':
        return true;
      default:
        return assertNever(state);
    }
  }
}

/** Members of a created task that are read. */
const CREATED_TASK = ['taskId', 'pollIntervalMs'];

const ENDED: StateAtServer = { kind: 'ended' };

const NO_OBJECT = {
  code: INVALID_PARAMS,
  message: 'params must be an object: this server takes what it has to know of a client in params._meta.',
};
