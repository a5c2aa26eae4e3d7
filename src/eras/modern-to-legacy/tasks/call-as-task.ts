import type { Clock } from '../../../deps.ts';
import { CALL_TOOL, CANCELLED } from '../../../mcp/vocabulary/methods.ts';
import { CANCEL_TASK } from '../../../mcp/vocabulary/task-extension.ts';
import type { Exchange } from '../../../relay/exchange.ts';
import type { Frame } from '../../../wire/frame.ts';
import { notificationFrame, requestFrame } from '../../../wire/write-message.ts';
import { type SessionLink, upstreamExchange } from '../pool/session-link.ts';
import { MAX_CALL_MS } from '../questions/parked-call.ts';
import { asTask, type CreatedTask, createdTask, TASK_RESULT } from './task-tools.ts';

/** How long a server may take to end a task before it is left alone with it. */
export const CANCEL_TASK_MS = 2000;

export interface CallAsTaskOptions {
  readonly clock: Clock;
  readonly link: SessionLink;
  /** The call has become a task. True: its client follows it from now on, and the link goes with it. */
  readonly adopt: (task: CreatedTask) => boolean;
  /** What the server says in the end: a result or an error. */
  readonly answered: (outcome: Frame) => void;
}

/**
 * - `over`: nothing runs.
 * - `creating`: sent as a task, which the server has not accepted yet.
 * - `running`: the server is asked for the result of its task.
 * - `withdrawing`: nobody wants it any more; the server is told to end the task.
 */
type TaskState =
  | { readonly kind: 'over' }
  | { readonly kind: 'creating'; readonly exchange: Exchange }
  | { readonly kind: 'running'; readonly exchange: Exchange; readonly taskId: string }
  | { readonly kind: 'withdrawing'; readonly exchange: Exchange; readonly cancel: () => void };

const OVER: TaskState = { kind: 'over' };

/** A call that its server runs as a task, from being sent to its result. */
export class CallAsTask {
  readonly #options: CallAsTaskOptions;
  #state: TaskState = OVER;

  constructor(options: CallAsTaskOptions) {
    this.#options = options;
  }

  start(call: Frame): void {
    const exchange = this.#exchangeFor(call, CALL_TOOL);
    this.#state = { kind: 'creating', exchange };
    this.#options.link.send(asTask(call, MAX_CALL_MS), exchange);
  }

  #exchangeFor(request: Frame, method: string): Exchange {
    return upstreamExchange({ request, method, nowMs: this.#options.clock.now() });
  }

  /** Takes a response of the server, if it is one to this. */
  take(answer: Frame, exchange: Exchange): void {
    const state = this.#state;
    if (state.kind === 'over' || exchange !== state.exchange) return;
    exchange.settle();
    if (state.kind === 'withdrawing') return this.#withdrawn(state.cancel);
    const task = state.kind === 'creating' ? createdTask(answer) : undefined;
    this.#forget(state);
    if (task === undefined) return this.#options.answered(answer);
    if (!this.#options.adopt(task)) this.#waitFor(task.taskId);
  }

  /** [spec 2025-11-25 basic/utilities/tasks#result-retrieval] answered when the task has ended. */
  #waitFor(taskId: string): void {
    const { link } = this.#options;
    const request = requestFrame('task', TASK_RESULT, { taskId });
    // What the server asks meanwhile is asked in the call that became the task.
    const exchange = this.#exchangeFor(request, CALL_TOOL);
    this.#state = { kind: 'running', exchange, taskId };
    link.session.tasks.set(taskId, exchange);
    link.send(request, exchange);
  }

  #forget(state: TaskState): void {
    this.#state = OVER;
    if (state.kind === 'running') this.#options.link.session.tasks.delete(state.taskId);
  }

  /** Nobody waits for the outcome any more, or it has come: closes the link as soon as the server can spare it. */
  end(): void {
    const state = this.#state;
    if (state.kind === 'withdrawing') return;
    this.#forget(state);
    if (state.kind === 'running') return this.#endTask(state.taskId, state.exchange);
    // Closing the link withdraws what is open.
    this.#options.link.close();
  }

  /** To withdraw the question for its result does not end a task. */
  #endTask(taskId: string, exchange: Exchange): void {
    const { link, clock } = this.#options;
    exchange.cancel('client');
    link.send(notificationFrame(CANCELLED, { requestId: exchange.id }), exchange);
    const request = requestFrame('cancel', CANCEL_TASK, { taskId });
    const cancelling = this.#exchangeFor(request, CANCEL_TASK);
    const cancel = clock.after(CANCEL_TASK_MS, () => this.#withdrawn(() => {}));
    this.#state = { kind: 'withdrawing', exchange: cancelling, cancel };
    link.send(request, cancelling);
  }

  #withdrawn(cancelTimer: () => void): void {
    cancelTimer();
    this.#state = OVER;
    this.#options.link.close();
  }

  /** The server is gone, and whatever ran there. */
  lost(): void {
    const state = this.#state;
    this.#forget(state);
    if (state.kind === 'withdrawing') this.#withdrawn(state.cancel);
  }
}
