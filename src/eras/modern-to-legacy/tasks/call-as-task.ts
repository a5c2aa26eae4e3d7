import type { Clock } from '../../../deps.ts';
import { assertNever } from '../../../errors.ts';
import { CALL_TOOL, TASK_RESULT } from '../../../mcp/vocabulary/methods.ts';
import { CANCEL_TASK } from '../../../mcp/vocabulary/task-extension.ts';
import type { Frame } from '../../../wire/frame.ts';
import { requestFrame } from '../../../wire/write-message.ts';
import { MAX_ASKING_MS } from '../../asking-limits.ts';
import { SessionRequest, type SessionUser } from '../pool/session-user.ts';
import { asTask, type CreatedTask, createdTask } from './task-tools.ts';

/** Time for a server to end a task, and before that to create it, before it is left alone with it. */
export const CANCEL_TASK_MS = 2000;

export interface CallAsTaskOptions {
  readonly clock: Clock;
  /** The call. */
  readonly user: SessionUser;
  /** The call has become a task. True: its client follows it from now on. */
  readonly adopt: (task: CreatedTask) => boolean;
  /** Takes the outcome: a result or an error of the server. */
  readonly answered: (outcome: Frame) => void;
}

/**
 * - `over`: nothing runs.
 * - `creating`: sent as a task, which the server has not accepted yet.
 * - `running`: the server is asked for the result of its task.
 * - `unwanted`: nobody wants it anymore, but the server has yet to say by which id it can be ended.
 * - `withdrawing`: nobody wants it anymore; the server is told to end the task.
 */
type TaskState =
  | { readonly kind: 'over' | 'creating' }
  | { readonly kind: 'running'; readonly request: SessionRequest; readonly taskId: string }
  | { readonly kind: 'unwanted' | 'withdrawing'; readonly cancel: () => void };

const OVER: TaskState = { kind: 'over' };
const CREATING: TaskState = { kind: 'creating' };

/** A call that its server runs as a task, from being sent to its result. */
export class CallAsTask {
  readonly #options: CallAsTaskOptions;
  #state: TaskState = OVER;

  constructor(options: CallAsTaskOptions) {
    this.#options = options;
  }

  start(call: Frame): void {
    this.#state = CREATING;
    const request = new SessionRequest(asTask(call, MAX_ASKING_MS), CALL_TOOL, (answer) => this.#created(answer));
    this.#options.user.sendRequest(request);
  }

  #created(answer: Frame): void {
    const state = this.#state;
    this.#state = OVER;
    const task = createdTask(answer);
    if (state.kind === 'unwanted') return this.#createdInVain(state.cancel, task);
    // [spec 2025-11-25 basic/utilities/tasks#task-support-and-handling] a server may answer as if no task were wanted.
    if (task === undefined) return this.#options.answered(answer);
    if (!this.#options.adopt(task)) this.#waitFor(task.taskId);
  }

  /** [spec 2025-11-25 basic/utilities/tasks#result-retrieval] answered when the task has ended. */
  #waitFor(taskId: string): void {
    const { user } = this.#options;
    // Until the outcome comes, the server asks in the call that became the task.
    const request = new SessionRequest(requestFrame(0, TASK_RESULT, { taskId }), CALL_TOOL, (answer) => {
      this.#forget(this.#state);
      this.#options.answered(answer);
    });
    this.#state = { kind: 'running', request, taskId };
    user.session.tasks.set(taskId, request);
    user.sendRequest(request);
  }

  #forget(state: TaskState): void {
    this.#state = OVER;
    if (state.kind === 'running') this.#options.user.session.tasks.delete(state.taskId);
  }

  /**
   * Called when no client waits for the outcome anymore, or the outcome has come. Leaves the session as soon as
   * the server can spare it.
   */
  end(): void {
    const state = this.#state;
    const { user } = this.#options;
    switch (state.kind) {
      case 'creating':
        // [spec 2025-11-25 basic/utilities/cancellation#behavior-requirements] A call that was sent as a task must not be
        // canceled like others. To leave withdraws it all the same, if the server has not created the task by then.
        this.#state = { kind: 'unwanted', cancel: this.#leaveLater() };
        return;
      case 'running':
        this.#forget(state);
        // To withdraw the question for its result does not end a task.
        user.withdraw(state.request);
        return this.#endTask(state.taskId);
      case 'over':
        return user.leaveSession();
      case 'unwanted':
      case 'withdrawing':
        return;
      default:
        return assertNever(state);
    }
  }

  #createdInVain(cancelTimer: () => void, task: CreatedTask | undefined): void {
    if (task === undefined) return this.#withdrawn(cancelTimer);
    cancelTimer();
    this.#endTask(task.taskId);
  }

  #endTask(taskId: string): void {
    const cancel = this.#leaveLater();
    this.#state = { kind: 'withdrawing', cancel };
    this.#options.user.ask(CANCEL_TASK, { taskId }, () => this.#withdrawn(cancel));
  }

  #leaveLater(): () => void {
    return this.#options.clock.after(CANCEL_TASK_MS, () => this.#withdrawn(() => {}));
  }

  #withdrawn(cancelTimer: () => void): void {
    cancelTimer();
    this.#state = OVER;
    this.#options.user.leaveSession();
  }

  /** The server is gone, and whatever ran there. */
  lost(): void {
    const state = this.#state;
    this.#forget(state);
    if (state.kind === 'unwanted' || state.kind === 'withdrawing') this.#withdrawn(state.cancel);
  }
}
