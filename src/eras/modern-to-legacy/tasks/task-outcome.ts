import type { Clock } from '../../../deps.ts';
import { CALL_TOOL, TASK_RESULT } from '../../../mcp/vocabulary/methods.ts';
import { failureToldBy } from '../../../mcp/vocabulary/rpc-errors.ts';
import type { Frame } from '../../../wire/frame.ts';
import { requestFrame } from '../../../wire/write-message.ts';
import { SessionRequest, type SessionUser } from '../pool/session-user.ts';

/** The pause after a connection broke: the server knows the outcome, or will. */
export const ASK_AGAIN_MS = 5000;

export interface TaskOutcomeOptions {
  readonly clock: Clock;
  readonly user: SessionUser;
  /** The server's. */
  readonly taskId: string;
  /** Takes the outcome: a result or an error of the server. */
  readonly ended: (outcome: Frame) => void;
}

/**
 * Asks the server for the outcome of a task. The server answers when the task has ended, and asks within that request
 * what it needs to know. [spec 2025-11-25 basic/utilities/tasks#result-retrieval]
 */
export class TaskOutcome {
  readonly #options: TaskOutcomeOptions;
  #cancelTimer: (() => void) | undefined;

  constructor(options: TaskOutcomeOptions) {
    this.#options = options;
  }

  ask(): void {
    const { user, taskId } = this.#options;
    const frame = requestFrame(0, TASK_RESULT, { taskId });
    const request = new SessionRequest(frame, CALL_TOOL, (answer) => this.#answered(answer));
    user.session.tasks.set(taskId, request);
    user.sendRequest(request);
  }

  /** If only the connection has failed, the outcome is asked for again: to ask does nothing to a task. */
  #answered(answer: Frame): void {
    const { clock, ended } = this.#options;
    if (isBroken(answer)) this.#cancelTimer = clock.after(ASK_AGAIN_MS, () => this.ask());
    else ended(answer);
  }

  stop(): void {
    this.#cancelTimer?.();
    this.#options.user.session.tasks.delete(this.#options.taskId);
  }
}

/** Returns true if the error comes from the way to the server, and not from the server itself. */
function isBroken(answer: Frame): boolean {
  return answer.kind === 'error' && failureToldBy(answer)?.code.startsWith('ERR_UPSTREAM_') === true;
}
