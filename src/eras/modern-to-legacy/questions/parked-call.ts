import type { Clock, Deps } from '../../../deps.ts';
import { assertNever } from '../../../errors.ts';
import { inputRequiredFrame } from '../../../mcp/translate/input-requests.ts';
import type { LogLevel } from '../../../mcp/vocabulary/client-declarations.ts';
import type { Fields } from '../../../mcp/vocabulary/payload.ts';
import { rpcErrorOf } from '../../../mcp/vocabulary/rpc-errors.ts';
import type { OutcomeStorage } from '../../../relay/shared-state.ts';
import type { Frame } from '../../../wire/frame.ts';
import { errorFrame } from '../../../wire/write-message.ts';
import { MAX_ASKING_MS } from '../../asking-limits.ts';
import { CallRecord, MAYBE_ELSEWHERE } from './call-record.ts';
import type { KeptOutcome, ParkedCalls } from './parked-calls.ts';
import { type ClientAsker, type InputQuestion, type KeyedQuestion, OpenQuestions } from './questions.ts';
import { type RequestStates, requestDigest, type StateBinding } from './request-state.ts';
import type { Continuation, WaitingCall } from './waiting-call.ts';

/** Servers that ask several things at once do so within a moment; one `input_required` shall hold them all. */
export const COALESCING_MS = 25;
/** Each further question restarts the window, up to here. */
export const MAX_COALESCING_MS = 100;
/** Time for a client to come back with its answers, in each round. */
export const PARK_MS = 5 * 60_000;
/** Time for which an outcome is kept for a client that asks for it again. */
export const RETENTION_MS = 60_000;

/** A request of the client that follows a call: the first one, or a retry. */
export interface Follower {
  readonly logLevel: LogLevel | undefined;
  /** The progress token as the client wrote it. */
  readonly progressToken: Buffer | undefined;
  /** True if the answer may be a task. [SEP-2663] Each request declares this anew, also one that goes on with a call. */
  readonly declaresTasks: boolean;
  notify(frame: Frame): void;
  serverDrained(): void;
  /** Takes the answer, under an id that is not the request's own. Called once; the request follows nothing anymore. */
  settle(outcome: Frame): void;
}

/** The run of a call at the server, as its parking needs it. */
export interface ParkedCallHost {
  /** A request follows the call from now on, or has come back for its outcome, which is passed next. */
  followed(follower: Follower): void;
  /** Every question was answered, and somebody waits for the outcome again. */
  proceed(): void;
  /** The outcome came, or nobody wants it anymore: let go of the server. Called once. */
  over(): void;
  /** Called when no request can come back to the call anymore. May be called twice. */
  forgotten(): void;
  /** Returns what another bridge needs to go on with the call at the server; undefined: none could. */
  continuation(): Continuation | undefined;
  /** Another bridge goes on with it, or may have done so: let go of the server without a word. Called once, if `over` is not. */
  handedOver(): void;
}

/**
 * - `running`: somebody waits for the outcome.
 * - `collecting`: the server has asked something and may ask more in the same moment.
 * - `parked`: the client was told what is asked and has not come back; nobody waits.
 * - `held`: over; a client that asks again gets the outcome once more.
 * - `done`: over, and nobody can ask again: the client was never asked anything.
 * - `dead`: given up, by the client or by time, or lost with the server.
 */
type ParkedCallState =
  | { readonly kind: 'running' }
  | { readonly kind: 'collecting'; readonly sinceMs: number; readonly cancel: () => void }
  | { readonly kind: 'parked'; readonly cancel: () => void; readonly told: Frame }
  | {
      readonly kind: 'held';
      readonly outcome: Frame;
      readonly kept: KeptOutcome;
      readonly cancel: () => void;
    }
  | { readonly kind: 'done' }
  | { readonly kind: 'dead' };

const RUNNING: ParkedCallState = { kind: 'running' };
const DONE: ParkedCallState = { kind: 'done' };
const DEAD: ParkedCallState = { kind: 'dead' };

/** The parts that parking a call needs. */
export interface ParkingServices {
  readonly deps: Deps;
  readonly states: RequestStates;
  readonly calls: ParkedCalls<ParkedCall>;
  /** Storage for outcomes that outlive this process, with those of other bridges; undefined: none. */
  readonly outcomes: OutcomeStorage | undefined;
}

export interface ParkedCallOptions {
  readonly services: ParkingServices;
  readonly host: ParkedCallHost;
  readonly principal: string;
  /** The client's first request, with its envelope. The call keeps it. */
  readonly request: Frame;
  /** The server's name and version, for the `_meta` of results. */
  readonly serverInfo: Fields | undefined;
  /** The request that waits for the outcome; undefined: `restore` follows. */
  readonly first: Follower | undefined;
  /** The id that the call had at another bridge; undefined: it gets one when it is needed, which cannot be guessed. */
  readonly id?: string;
}

/** The state of a call that has waited for its client at another bridge. */
export interface RestoredCall extends Pick<WaitingCall, 'round' | 'leftMs' | 'lastKey'> {
  readonly questions: readonly KeyedQuestion[];
}

/**
 * A call of a modern client that runs at a legacy server, over all the requests by which the client follows it; made
 * for the first question. A question ends the client's request with `input_required`, and the retry takes its place.
 * However often the client repeats a request, the server gets the call once and each answer once.
 */
export class ParkedCall implements ClientAsker {
  readonly #options: ParkedCallOptions;
  readonly #followers: Set<Follower>;
  #questions: OpenQuestions | undefined;
  #id: string | undefined;
  #state: ParkedCallState = RUNNING;
  #round = 0;
  #deadlineMs = 0;
  /** Undefined: other bridges know nothing of it. */
  #record: CallRecord | undefined;

  constructor(options: ParkedCallOptions) {
    this.#options = options;
    this.#id = options.id;
    this.#followers = new Set(options.first === undefined ? [] : [options.first]);
  }

  /** Waits for the client here from now on. False: there are too many such calls, or they hold too much. */
  restore({ round, leftMs, lastKey, questions }: RestoredCall): boolean {
    this.#deadlineMs = this.#clock.now() + leftMs;
    this.#round = round - 1;
    const open = this.#openQuestions();
    open.skipKeys(lastKey);
    if (questions.every((question) => open.restore(question))) {
      this.#ask();
      return true;
    }
    open.takeAll();
    this.#forget();
    return false;
  }

  get id(): string {
    this.#id ??= this.#services.deps.randomId();
    return this.#id;
  }

  get isOver(): boolean {
    return this.#state.kind === 'held' || this.#state.kind === 'done' || this.#state.kind === 'dead';
  }

  get principal(): string {
    return this.#options.principal;
  }

  get state(): ParkedCallState['kind'] {
    return this.#state.kind;
  }

  get round(): number {
    return this.#round;
  }

  get followers(): ReadonlySet<Follower> {
    return this.#followers;
  }

  /** The client is being asked something, and no request follows. */
  get isParked(): boolean {
    return this.#state.kind === 'parked' && this.#followers.size === 0;
  }

  /** Computes the digest of the request, which takes a while. */
  #binding(): StateBinding {
    const { principal, request } = this.#options;
    return { principal, digest: requestDigest(request) };
  }

  get #services(): ParkingServices {
    return this.#options.services;
  }

  get #clock(): Clock {
    return this.#services.deps.clock;
  }

  // ---- the client

  #attach(follower: Follower): void {
    this.#followers.add(follower);
    this.#options.host.followed(follower);
  }

  /**
   * The client comes back, perhaps with answers. False: there is nothing left to come back to. A retry that was sent
   * twice finds its answers delivered, and gets the same outcome.
   */
  retry(round: number, request: Frame, follower: Follower): boolean {
    switch (this.#state.kind) {
      case 'running':
      case 'collecting':
        this.#attach(follower);
        return true;
      case 'parked':
        // An older round: the client has not seen what it was asked since.
        if (round < this.#round) follower.settle(this.#state.told);
        else this.#resume(this.#state.cancel, request, follower);
        return true;
      case 'held':
        this.#options.host.followed(follower);
        follower.settle(this.#state.outcome);
        return true;
      case 'done':
      case 'dead':
        return false;
      default:
        return assertNever(this.#state);
    }
  }

  #resume(cancelTimer: () => void, request: Frame, follower: Follower): void {
    cancelTimer();
    this.#state = RUNNING;
    this.#attach(follower);
    if (this.#questions?.answer(request) === false) return this.#ask();
    if (this.state === 'running') this.#options.host.proceed();
  }

  /** The client withdrew a request, or its connection broke. */
  detach(follower: Follower): void {
    if (!this.#followers.delete(follower) || this.#followers.size > 0) return;
    // A parked call is followed only by a request that is about to be told of the questions.
    const { kind } = this.#state;
    if (kind === 'running' || kind === 'collecting' || kind === 'parked') this.#giveUp();
  }

  // ---- the server

  askClient(question: InputQuestion): void {
    const isLive = this.#state.kind === 'running' || this.#state.kind === 'collecting' || this.#state.kind === 'parked';
    if (!isLive || !this.#take(question)) return question.refuse();
    if (this.#state.kind === 'parked') return;
    const nowMs = this.#clock.now();
    const sinceMs = this.#state.kind === 'collecting' ? this.#state.sinceMs : nowMs;
    if (this.#state.kind === 'collecting') this.#state.cancel();
    const waitMs = Math.min(COALESCING_MS, sinceMs + MAX_COALESCING_MS - nowMs);
    this.#state = { kind: 'collecting', sinceMs, cancel: this.#clock.after(waitMs, () => this.#ask()) };
  }

  #take(question: InputQuestion): boolean {
    if (this.#deadlineMs === 0) this.#deadlineMs = this.#clock.now() + MAX_ASKING_MS;
    return this.#openQuestions().add(question);
  }

  #openQuestions(): OpenQuestions {
    const { services, request } = this.#options;
    this.#questions ??= new OpenQuestions(this.#clock, (bytes) =>
      services.calls.admit(this, request.bytes.length + bytes),
    );
    return this.#questions;
  }

  /** The server does not want to know it anymore. A client that was told cannot be told otherwise. */
  questionWithdrawn(question: InputQuestion): void {
    this.#questions?.remove(question);
    if (this.#state.kind !== 'collecting' || (this.#questions?.size ?? 0) > 0) return;
    this.#state.cancel();
    this.#state = RUNNING;
  }

  /** The server has answered: `outcome` as the client gets it, under any id. */
  finished(outcome: Frame): void {
    const wasAsked = this.#round > 0;
    if (!this.#leaveLive()) return;
    this.#questions?.takeAll();
    if (wasAsked) {
      this.#hold(outcome);
    } else {
      this.#state = DONE;
      this.#leaveCalls();
    }
    this.#options.host.over();
    this.#settle(outcome);
  }

  #hold(outcome: Frame): void {
    const { principal, request } = this.#options;
    const { calls, outcomes } = this.#services;
    const { id } = this;
    if (outcomes !== undefined) this.#recordIn(outcomes).ended(outcome.bytes, RETENTION_MS);
    const bytes = outcome.bytes.length + request.bytes.length;
    const kept: KeptOutcome = { id, principal, bytes, giveUp: () => this.close() };
    const cancel = this.#clock.after(RETENTION_MS, () => this.close());
    this.#state = { kind: 'held', outcome, kept, cancel };
    // The account of kept outcomes counts the bytes from now on.
    calls.admit(this, 0);
    calls.outcomes.keep(kept);
  }

  /** The server is gone. Who waits is told so; who comes back later finds nothing. */
  lost(failure: Frame): void {
    if (!this.#leaveLive()) return;
    this.#questions?.takeAll();
    this.#record?.lost();
    this.#forget();
    this.#options.host.over();
    this.#settle(failure);
  }

  // ---- other bridges

  /** Resolves when another bridge could go on with it, or that takes too long; undefined: none could. */
  #store(): Promise<void> | undefined {
    const { outcomes: storage } = this.#services;
    const continuation = storage && this.#options.host.continuation();
    if (storage === undefined || (continuation === undefined && this.#record === undefined)) return undefined;
    const leftMs = this.#deadlineMs - this.#clock.now();
    const questions = this.#openQuestions();
    return this.#recordIn(storage).waits(continuation && { round: this.#round, leftMs, continuation, questions });
  }

  #recordIn(storage: OutcomeStorage): CallRecord {
    this.#record ??= new CallRecord({ storage, id: this.id, ...this.#binding() });
    return this.#record;
  }

  /** Another bridge may have gone on with it, and nobody can tell now. */
  get isDoubtful(): boolean {
    return this.#record?.isDoubtful ?? false;
  }

  /**
   * Leaves it to other bridges. The server is told nothing, the client only if it waits right now. False: it stays, since no
   * other bridge could go on with it.
   */
  leave(failure: Frame): boolean {
    if (this.#record?.isElsewhere !== true || !this.#leaveLive()) return false;
    this.#questions?.takeAll();
    this.#forget();
    this.#options.host.handedOver();
    this.#settle(failure);
    return true;
  }

  // ---- time and end

  #ask(): void {
    this.#round += 1;
    const nowMs = this.#clock.now();
    const expiresAtMs = Math.min(nowMs + PARK_MS, this.#deadlineMs);
    const contents = { callId: this.id, round: this.#round, expiresAtMs };
    const requestState = this.#services.states.seal(contents, this.#binding());
    const told = inputRequiredFrame(0, {
      requests: this.#questions?.tell() ?? new Map(),
      requestState,
      serverInfo: this.#options.serverInfo,
    });
    if (this.#state.kind === 'collecting') this.#state.cancel();
    const cancel = this.#clock.after(Math.max(0, expiresAtMs - nowMs), () => this.#giveUp());
    const parked = { kind: 'parked', cancel, told } as const;
    this.#state = parked;
    const stored = this.#store();
    if (stored === undefined) return this.#settle(told);
    // A client that was told the questions can come back with the answers, also to another bridge.
    void stored.then(() => {
      if (this.#state === parked) this.#settle(told);
    });
  }

  #settle(outcome: Frame): void {
    const followers = [...this.#followers];
    this.#followers.clear();
    for (const follower of followers) follower.settle(outcome);
  }

  /** No request follows the call, or the client came back too late. The call is not run again, whoever asks for it. */
  #giveUp(): void {
    // Any message to the server now would end what another bridge may have gone on with.
    if (this.isDoubtful && this.leave(errorFrame(0, rpcErrorOf(MAYBE_ELSEWHERE)))) return;
    if (!this.#leaveLive()) return;
    this.#record?.lost();
    const unanswered = this.#questions?.takeAll() ?? [];
    this.#forget();
    for (const question of unanswered) question.refuse();
    this.#options.host.over();
  }

  /** The bridge ends, or the outcome is evicted. */
  close(): void {
    if (this.#state.kind === 'held') this.#state.cancel();
    this.#giveUp();
    this.#forget();
  }

  /** False: it had ended before. */
  #leaveLive(): boolean {
    switch (this.#state.kind) {
      case 'collecting':
      case 'parked':
        this.#state.cancel();
        break;
      case 'running':
        break;
      default:
        return false;
    }
    return true;
  }

  #forget(): void {
    if (this.#state.kind === 'held') this.#services.calls.outcomes.release(this.#state.kept);
    this.#state = DEAD;
    this.#leaveCalls();
    this.#options.host.forgotten();
  }

  /** A call without an id was never added. */
  #leaveCalls(): void {
    if (this.#id !== undefined) this.#services.calls.forget(this);
  }
}
