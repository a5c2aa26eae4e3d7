import type { Clock } from '../../../deps.ts';
import { CALL_TOOL } from '../../../mcp/vocabulary/methods.ts';
import { failureToldBy } from '../../../mcp/vocabulary/rpc-errors.ts';
import type { Exchange } from '../../../relay/exchange.ts';
import type { Frame } from '../../../wire/frame.ts';
import { requestFrame } from '../../../wire/write-message.ts';
import { type SessionLink, upstreamExchange } from '../pool/session-link.ts';
import { TASK_RESULT } from './task-tools.ts';

/** The pause after a connection broke: the server knows the outcome, or will. */
export const ASK_AGAIN_MS = 5000;

export interface TaskOutcomeOptions {
  readonly clock: Clock;
  readonly link: SessionLink;
  /** The server's. */
  readonly taskId: string;
}

/**
 * The question what a task has ended with. The server answers it when the task has ended, and asks within it what it
 * needs to know. [spec 2025-11-25 basic/utilities/tasks#result-retrieval]
 */
export class TaskOutcome {
  readonly #options: TaskOutcomeOptions;
  #open: Exchange | undefined;
  #cancelTimer: (() => void) | undefined;

  constructor(options: TaskOutcomeOptions) {
    this.#options = options;
  }

  ask(): void {
    const { clock, link, taskId } = this.#options;
    const request = requestFrame('task', TASK_RESULT, { taskId });
    const exchange = upstreamExchange({ request, method: CALL_TOOL, nowMs: clock.now() });
    this.#open = exchange;
    link.session.tasks.set(taskId, exchange);
    link.send(request, exchange);
  }

  isAnsweredBy(exchange: Exchange): boolean {
    return exchange === this.#open;
  }

  /** The outcome; undefined: only the connection failed, and it is asked for again. To ask does nothing to a task. */
  take(answer: Frame): Frame | undefined {
    if (!isBroken(answer)) return answer;
    this.#cancelTimer = this.#options.clock.after(ASK_AGAIN_MS, () => this.ask());
    return undefined;
  }

  stop(): void {
    this.#cancelTimer?.();
    this.#open = undefined;
    this.#options.link.session.tasks.delete(this.#options.taskId);
  }
}

/** Does the error come from the way to the server, and not from the server itself? */
function isBroken(answer: Frame): boolean {
  return answer.kind === 'error' && failureToldBy(answer)?.code.startsWith('ERR_UPSTREAM_') === true;
}
