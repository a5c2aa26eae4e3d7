import { assertNever, type BridgeError } from '../../errors.ts';
import { resultTypeOf, withInputAnswers } from '../../mcp/classify/input-required.ts';
import { stampMetadata } from '../../mcp/classify/request-metadata.ts';
import { legacyFailure } from '../../mcp/translate/errors.ts';
import { CALL_TOOL } from '../../mcp/vocabulary/methods.ts';
import { asFields, type Fields, readFields } from '../../mcp/vocabulary/payload.ts';
import { findCommonModern } from '../../mcp/vocabulary/revisions.ts';
import { INVALID_PARAMS, UNSUPPORTED_REVISION } from '../../mcp/vocabulary/rpc-codes.ts';
import type { Exchange } from '../../relay/exchange.ts';
import { type Frame, withId } from '../../wire/frame.ts';
import { OPEN_BRACE } from '../../wire/json/ascii.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { AbsorbedTask, declaringTasks, MAX_TASK_ID_LENGTH, needsTasks } from './absorbed-task.ts';
import { type CallKeeper, errorAnswer, inputFailure, violation } from './call-host.ts';
import { CallRounds } from './call-rounds.ts';
import type { Asker } from './upstream-requests.ts';

/**
 * - `idle`: not sent yet.
 * - `asked`: the server has it.
 * - `requiring`: the server requires something before it is asked again.
 * - `following`: the server has made a task of it.
 * - `ended`: answered or withdrawn.
 */
type CallState =
  | { readonly kind: 'idle' | 'ended' }
  | { readonly kind: 'asked'; readonly request: Exchange }
  | { readonly kind: 'requiring'; readonly rounds: CallRounds }
  | { readonly kind: 'following'; readonly task: AbsorbedTask };

/**
 * One request of the client at a modern server, which takes as many requests there as the server needs rounds.
 * [spec 2026-07-28 basic/patterns/mrtr#client-requirements-basic-workflow]
 */
export class ClientCall implements Asker {
  readonly exchange: Exchange;
  readonly #host: CallKeeper<ClientCall>;
  /** What the client sent; each request to the server is made of it anew. */
  readonly #frame: Frame;
  #state: CallState = { kind: 'idle' };
  /** Rare: most calls are answered in one. */
  #rounds: CallRounds | undefined;
  #hasRenegotiated = false;
  /** The server takes this call as a task only, so it was declared that its client can follow one. */
  #declaresTasks = false;

  constructor(host: CallKeeper<ClientCall>, frame: Frame, exchange: Exchange) {
    this.#host = host;
    this.#frame = frame;
    this.exchange = exchange;
  }

  /** False: the server's side is full. */
  start(): boolean {
    const request = this.#stamped();
    if (request.bytes[request.payloadStart] !== OPEN_BRACE) {
      this.#end(errorFrame(this.exchange.id, NO_OBJECT));
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
    const exchange = requests.open(this, request, this.exchange.lane);
    this.#state = { kind: 'asked', request: exchange };
    return requests.send(request, exchange);
  }

  /**
   * Makes the request again, with the answers of the last round if there was one. Nobody waits here until the server's
   * side has capacity: one request at most follows from each answer.
   */
  #askAgain(): void {
    const request = this.#stamped();
    const inputs = this.#rounds?.inputs;
    this.#ask(inputs === undefined ? request : withInputAnswers(request, inputs));
  }

  // ---- from the server

  notified(frame: Frame): void {
    if (this.#state.kind === 'asked') this.#host.tell(frame, this.exchange);
  }

  /** [spec 2026-07-28 basic/patterns/cancellation] a server can end subscriptions so, and nothing else. */
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
        // [spec 2026-07-28 basic#resulttype] extensions may add types. What no side has declared is an error.
        if (this.#declaresExtensions) return this.#end(this.#toLegacy(frame));
        return this.#fail(violation(this.#host.serverName, 'its result is of a type that is not known'));
    }
  }

  #toLegacy(result: Frame): Frame {
    return this.#host.toLegacyResult(withId(result, this.exchange.id), this.#frame);
  }

  /** Tasks do not count: they are the bridge's own affair. */
  get #declaresExtensions(): boolean {
    return this.#host.profile.capabilities.extensions !== undefined;
  }

  #refused(frame: Frame): void {
    if (this.#state.kind === 'asked') {
      const { code, data } = readFields(frame, ['code', 'data']);
      // The server has not begun with it.
      if (code === UNSUPPORTED_REVISION && this.#renegotiate(data)) return;
      if (typeof code === 'number' && this.#mustBeTask(code, data)) return;
    }
    this.#end(legacyFailure(frame, this.#frame));
  }

  /** The server was replaced by one of other revisions. It took nothing of the request, so it is sent again, once. */
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
    if (this.#declaresTasks || this.exchange.method !== CALL_TOOL || !needsTasks(code, data)) return false;
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
        exchange: this.exchange,
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
    // The task has what the call was asked for before.
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
      exchange: this.exchange,
      onReady: () => this.#askAgain(),
      onViolation: (reason) => this.#fail(reason),
      onInputFailed: (reason) => this.#failInput(reason),
    });
    return this.#rounds;
  }

  // ---- the end

  /** The client has withdrawn it. False: the server's side is full. */
  cancel(reason: string): boolean {
    const hasCapacity = this.#leaveState(reason);
    this.#ended();
    return hasCapacity;
  }

  /** What the server goes on with when nobody is there any more. */
  get task(): AbsorbedTask | undefined {
    return this.#state.kind === 'following' ? this.#state.task : undefined;
  }

  /** The session is over. The server cannot be told any more; the client may still have a question open. */
  abandon(): void {
    const state = this.#state;
    this.#ended();
    if (state.kind === 'requiring') state.rounds.cancel('the session has ended');
    if (state.kind === 'following') state.task.abandon();
  }

  #fail(error: BridgeError): void {
    this.#end(errorAnswer(this.exchange.id, error));
  }

  #failInput(error: BridgeError): void {
    this.#end(inputFailure(this.exchange.id, this.exchange.method, error));
  }

  #end(answer: Frame): void {
    this.#leaveState('the call has ended');
    this.#ended();
    this.#host.listener.fromServer(answer, this.exchange);
  }

  #ended(): void {
    this.#state = ENDED;
    this.#rounds?.clear();
    this.#host.ended(this);
  }

  /** Lets go of what the state holds: a request, questions, a timer. */
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

/** What is looked at of a task that was made. */
const CREATED_TASK = ['taskId', 'pollIntervalMs'];

const ENDED: CallState = { kind: 'ended' };

const NO_OBJECT = {
  code: INVALID_PARAMS,
  message: 'params must be an object: this server takes what it has to know of a client in params._meta.',
};
