import type { Logger } from 'pino';
import type { Clock } from '../../../deps.ts';
import type { BridgeError } from '../../../errors.ts';
import { CANCELED, isListChanged, RESOURCE_UPDATED } from '../../../mcp/vocabulary/methods.ts';
import type { Fields } from '../../../mcp/vocabulary/payload.ts';
import type { RevisionFeatures } from '../../../mcp/vocabulary/revisions.ts';
import { rpcErrorOf } from '../../../mcp/vocabulary/rpc-errors.ts';
import {
  CANCEL_TASK,
  GET_TASK,
  type TaskStatus,
  taskMembers,
  UNKNOWN_TASK,
} from '../../../mcp/vocabulary/task-extension.ts';
import type { OutcomeStorage, StoredOutcome } from '../../../relay/shared-state.ts';
import type { Frame } from '../../../wire/frame.ts';
import { errorFrame, joinMembers, requestFrame } from '../../../wire/write-message.ts';
import type { HeldBytes } from '../../parked-bytes.ts';
import { type Answered, modernFailure, modernResult, taskEnd } from '../call-messages.ts';
import { SessionRequest, type SessionUser } from '../pool/session-user.ts';
import type { KeptOutcome, KeptOutcomes } from '../questions/parked-calls.ts';
import { CallQuestions, type ClientAsker, type InputQuestion, OpenQuestions } from '../questions/questions.ts';
import { CANCEL_TASK_MS } from './call-as-task.ts';
import { TaskOutcome } from './task-outcome.ts';
import { type CreatedTask, readStatus } from './task-tools.ts';

/** For a server that does not say how often it wants to be asked, and the least and the most it is believed in. */
export const DEFAULT_POLL_MS = 5000;
const MIN_POLL_MS = 500;
const MAX_POLL_MS = 60_000;

export interface HostedTaskOptions {
  /** Unguessable: whoever knows it, and has the right name, can ask for the task. */
  readonly id: string;
  readonly principal: string;
  /** Time for which the task is kept, whatever becomes of it. */
  readonly ttlMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** The call that became the task. It uses the session for the task from now on, and passes on what it hears. */
  readonly user: SessionUser;
  readonly answered: Answered;
  readonly features: RevisionFeatures;
  /** The task of the server, by its own words. */
  readonly task: CreatedTask;
  /** The account for the bytes that the task holds while it works, including those of its request. */
  readonly held: HeldBytes;
  /** The table that counts its outcome. */
  readonly outcomes: KeptOutcomes;
  /** Undefined: the task ends with this process. */
  readonly storage: OutcomeStorage | undefined;
  /** Called when the time of the task is over, or its server gone. */
  readonly onGone: (task: HostedTask) => void;
}

/**
 * - `created`: nothing was asked yet.
 * - `working`: the server is being asked for the outcome, which it gives when there is one. What it wants to know
 *   meanwhile, it asks within that request.
 * - `ended`: with these members, as JSON texts; the session is left.
 * - `gone`: nobody knows of it anymore.
 */
type HostedState =
  | { readonly kind: 'created' | 'working' | 'gone' }
  | { readonly kind: 'ended'; readonly status: TaskStatus; readonly members: Members; readonly kept: KeptOutcome };

type Members = ReadonlyMap<string, Buffer>;

const WORKING: HostedState = { kind: 'working' };

/** A task of a legacy server as a modern client follows it: asked for, answered and ended by its id. */
export class HostedTask implements ClientAsker {
  readonly #options: HostedTaskOptions;
  readonly #questions: OpenQuestions;
  readonly #asked: CallQuestions;
  readonly #outcome: TaskOutcome;
  readonly #looks = new Map<SessionRequest, (answer: Frame) => void>();
  readonly #watchers = new Set<() => void>();
  #stopTimer: () => void;
  #stopPolling: (() => void) | undefined;
  #task: Fields;
  #state: HostedState = { kind: 'created' };
  /** The server was told to end it, and has not refused. */
  #isCanceling = false;

  constructor(options: HostedTaskOptions) {
    const { clock, user, task, ttlMs, held, answered } = options;
    this.#options = options;
    this.#task = task;
    this.#questions = new OpenQuestions(clock, (bytes) => held.set(answered.request.bytes.length + bytes));
    const ended = (outcome: Frame): void => this.#answered(outcome);
    this.#outcome = new TaskOutcome({ clock, user, taskId: task.taskId, ended });
    this.#asked = new CallQuestions({ asker: this, send: (message) => void user.send(message) });
    this.#stopTimer = clock.after(ttlMs, () => this.#expire());
  }

  /** Resolves when other replicas know of it, or that takes too long. Undefined: there are no others. */
  start(): Promise<unknown> | undefined {
    this.#state = WORKING;
    this.#outcome.ask();
    return this.#store({ kind: 'begun' });
  }

  get id(): string {
    return this.#options.id;
  }

  get principal(): string {
    return this.#options.principal;
  }

  // ---- the client

  /** The answer to the call that became this task. */
  created(): Frame {
    return this.#result('task', this.#view('working'));
  }

  /** Calls `tell` with the answer to `tasks/get`, under an id that is not the client's. Returns what stops it. */
  look(tell: (answer: Frame) => void): () => void {
    if (this.#state.kind !== 'working') {
      tell(this.#current());
      return () => {};
    }
    const frame = requestFrame(0, GET_TASK, { taskId: this.#task.taskId });
    const look = new SessionRequest(frame, GET_TASK, (answer) => {
      this.#looks.delete(look);
      this.#said(answer);
      tell(answer.kind === 'error' ? modernFailure(answer, this.#options.answered) : this.#current());
    });
    this.#looks.set(look, tell);
    this.#options.user.sendRequest(look);
    return () => this.#lookAway(look);
  }

  /**
   * Withdraws a question to the server when its client does not wait anymore: a server that never answers would be
   * asked more and more.
   */
  #lookAway(look: SessionRequest): void {
    if (this.#looks.delete(look)) this.#options.user.withdraw(look);
  }

  /** [SEP-2663] answers to what is not asked, or not anymore, are ignored. */
  update(request: Frame): Frame {
    if (this.#state.kind === 'gone') return errorFrame(0, UNKNOWN_TASK);
    this.#questions.answer(request);
    this.#changed();
    return this.#result('complete', new Map());
  }

  /** [SEP-2663] acknowledged in any case; whether the server ends it shows in the status. */
  cancel(): Frame {
    if (this.#state.kind === 'gone') return errorFrame(0, UNKNOWN_TASK);
    if (this.#state.kind === 'working' && !this.#isCanceling) this.#sendCancel();
    return this.#result('complete', new Map());
  }

  #sendCancel(): void {
    this.#isCanceling = true;
    this.#options.user.ask(CANCEL_TASK, { taskId: this.#task.taskId }, (answer) => {
      // After an error, the task has ended by itself or goes on.
      if (answer.kind === 'error') this.#isCanceling = false;
      this.#said(answer);
    });
  }

  /** Calls `changed` whenever `members` is another than before. Returns what stops it. */
  watch(changed: () => void): () => void {
    this.#watchers.add(changed);
    this.#poll();
    return () => {
      this.#watchers.delete(changed);
      this.#poll();
    };
  }

  /** All there is to know of it; undefined when it is gone. */
  members(): ReadonlyMap<string, Buffer> | undefined {
    const state = this.#state;
    if (state.kind === 'gone') return undefined;
    if (state.kind === 'ended') return new Map([...this.#view(state.status), ...state.members]);
    if (this.#questions.size === 0) return this.#view('working');
    return this.#view('input_required').set('inputRequests', joinMembers(this.#questions.tell()));
  }

  #view(status: TaskStatus): Map<string, Buffer> {
    const { id, ttlMs } = this.#options;
    return taskMembers({ taskId: id, status, task: this.#task, ttlMs });
  }

  #current(): Frame {
    const members = this.members();
    return members === undefined ? errorFrame(0, UNKNOWN_TASK) : this.#result('complete', members);
  }

  #result(resultType: string, members: ReadonlyMap<string, Buffer>): Frame {
    return modernResult(resultType, members, this.#options.answered.server);
  }

  // ---- what the server asks

  askClient(question: InputQuestion): void {
    if (this.#state.kind !== 'working' || !this.#questions.add(question)) return question.refuse();
    this.#changed();
  }

  questionWithdrawn(question: InputQuestion): void {
    this.#questions.remove(question);
    this.#changed();
  }

  // ---- what the server says

  heard(frame: Frame): void {
    if (frame.kind === 'request') this.#asked.asked(frame, this.#options.features);
    else this.#notified(frame);
  }

  /** [SEP-2663] of a task nothing is told but its state, not even progress and logs. */
  #notified(frame: Frame): void {
    const { method } = frame;
    if (method === CANCELED) return this.#asked.withdrawn(frame);
    // Changes are for those who listen to them.
    if (isListChanged(method) || method === RESOURCE_UPDATED) return;
    this.#options.log.debug({ method }, 'notification dropped: of a task only its state is told');
  }

  /** A status of `failed` or `completed` counts only once the outcome is here. */
  #said(frame: Frame): void {
    const task = frame.kind === 'result' ? readStatus(frame) : undefined;
    if (task === undefined || task.taskId !== this.#task.taskId) return;
    this.#task = task;
    if (task.status === 'cancelled') this.#end('cancelled');
    else this.#changed();
  }

  #answered(frame: Frame): void {
    if (frame.kind === 'error' && this.#isCanceling) return this.#end('cancelled');
    const { status, members } = taskEnd(frame, this.#options.answered);
    this.#end(status, members);
  }

  #end(status: TaskStatus, members: Members = new Map()): void {
    const { id, principal, outcomes, answered } = this.#options;
    const texts = [...this.#view(status).values(), ...members.values()];
    const bytes = texts.reduce((sum, { length }) => sum + length, answered.request.bytes.length);
    const kept = { id, principal, bytes, giveUp: () => this.close() };
    this.#state = { kind: 'ended', status, members, kept };
    this.#leave();
    this.#changed();
    if (this.#state.kind !== 'ended') return;
    outcomes.keep(kept);
    void this.#store({ kind: 'over', answer: this.#current().bytes });
  }

  #store(state: StoredOutcome['state']): Promise<unknown> | undefined {
    const { id, principal, ttlMs, storage } = this.#options;
    return storage?.keep({ id, principal, digest: undefined, state }, ttlMs);
  }

  /** Leaves the session; whoever waits is told what is known, or why nothing is. */
  #leave(failure?: Frame): void {
    this.#outcome.stop();
    for (const question of this.#questions.takeAll()) question.refuse();
    this.#options.held.set(0);
    this.#asked.clear();
    const waiting = [...this.#looks.values()];
    this.#looks.clear();
    this.#poll();
    this.#options.user.leaveSession();
    for (const tell of waiting) tell(failure ?? this.#current());
  }

  #changed(): void {
    for (const changed of [...this.#watchers]) changed();
  }

  /** Polls the server while a client only listens, because servers need not announce changes. */
  #poll(): void {
    const isWanted = this.#watchers.size > 0 && this.#state.kind === 'working';
    if (isWanted === (this.#stopPolling !== undefined)) return;
    this.#stopPolling?.();
    const { pollInterval } = this.#task;
    const wantedMs = typeof pollInterval === 'number' ? pollInterval : DEFAULT_POLL_MS;
    const pollMs = Math.min(Math.max(wantedMs, MIN_POLL_MS), MAX_POLL_MS);
    const poll = (): void => {
      if (this.#looks.size === 0) this.look(() => {});
    };
    this.#stopPolling = isWanted ? this.#options.clock.every(pollMs, poll) : undefined;
  }

  // ---- time and end

  /** A server that keeps its tasks for longer has one less. */
  #expire(): void {
    if (this.#state.kind !== 'working') return this.close();
    if (!this.#isCanceling) this.#sendCancel();
    this.#stopTimer = this.#options.clock.after(CANCEL_TASK_MS, () => this.close());
  }

  lost(reason: BridgeError): void {
    if (this.#state.kind === 'working') this.close(reason);
  }

  /** May be called twice. */
  close(reason?: BridgeError): void {
    const state = this.#state;
    if (state.kind === 'gone') return;
    this.#stopTimer();
    this.#state = { kind: 'gone' };
    if (state.kind === 'ended') this.#options.outcomes.release(state.kept);
    if (state.kind === 'working') this.#leave(reason && errorFrame(0, rpcErrorOf(reason)));
    this.#changed();
    this.#watchers.clear();
    this.#options.onGone(this);
  }
}
