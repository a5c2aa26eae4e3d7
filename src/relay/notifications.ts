/**
 * Finds the call that a notification of a server belongs to. Progress is not handled here, because it names its call by
 * a token.
 */
import { findCanceledId, findSubscriptionId } from '../mcp/classify/correlators.ts';
import { CANCELED, LISTEN, LOG_MESSAGE } from '../mcp/vocabulary/methods.ts';
import { asFields, readField } from '../mcp/vocabulary/payload.ts';
import type { Frame, JsonRpcId } from '../wire/frame.ts';
import type { Call, CallTable } from './call.ts';
import type { Questions } from './questions.ts';

/** Returns the call that the message itself points to. If the server withdraws a question, the question is closed. */
export function findCallOf(frame: Frame, open: CallTable, questions: Questions): Call | undefined {
  switch (frame.method) {
    case LOG_MESSAGE:
      return open.sole();
    case CANCELED: {
      const question = findCanceledId(frame);
      return question && questions.close(question.value);
    }
    default:
      return undefined;
  }
}

/**
 * The recipient of a notification: one call, the `client` in general, or `nobody` if its call is over or does not
 * exist.
 */
export type Addressee = Call | 'client' | 'nobody';

/**
 * Returns the recipient of a notification of a modern server. After a request was withdrawn, nothing more may be sent
 * for it. [spec 2026-07-28 transports/stdio#cancellation]
 *
 * @param known the call that the notification belongs to, according to the transport
 */
export function findAddressee(frame: Frame, known: Call | undefined, open: CallTable): Addressee {
  if (frame.method === CANCELED) return findEndedListen(frame, open);
  if (known !== undefined) return known.state.kind === 'open' ? known : 'nobody';
  switch (frame.method) {
    case LOG_MESSAGE:
      // Over stdio a log message does not name its request.
      return open.sole() ?? (open.size === 0 ? 'nobody' : 'client');
    default:
      return findSubscriber(frame, open);
  }
}

/**
 * A server may end a subscription by this notification, and nothing else. [spec 2026-07-28 basic/patterns/cancellation]
 */
function findEndedListen(frame: Frame, open: CallTable): Addressee {
  const canceled = findCanceledId(frame);
  const call = canceled && open.find(canceled.value);
  return call?.method === LISTEN ? call : 'nobody';
}

function findSubscriber(frame: Frame, open: CallTable): Addressee {
  const subscription = findSubscriptionId(frame);
  if (subscription === undefined) return 'client';
  const call = open.find(subscription.value);
  return call?.method === LISTEN ? call : 'nobody';
}

/** Number of tasks of one client whose progress may still come. Most clients have a few. */
const MAX_TASK_TOKENS = 256;
/** Characters of a progress token that is remembered. */
const MAX_TOKEN_LENGTH = 256;

/**
 * Progress tokens of calls that were answered with a task. They stay valid until the task has ended, which the relay
 * cannot see, so the latest ones are kept. [spec 2025-11-25 basic/utilities/tasks#progress]
 */
export class TaskTokens {
  readonly #tokens = new Set<JsonRpcId>();

  has(token: JsonRpcId): boolean {
    return this.#tokens.has(token);
  }

  add(token: JsonRpcId): void {
    if (typeof token === 'string' && token.length > MAX_TOKEN_LENGTH) return;
    this.#tokens.add(token);
    const [oldest] = this.#tokens;
    if (this.#tokens.size > MAX_TASK_TOKENS && oldest !== undefined) this.#tokens.delete(oldest);
  }
}

const TASK_KEY = Buffer.from('"task"');

/** Returns true if this answer turns its call into a task. Only answers that contain the word are parsed. */
export function createsTask(answer: Frame): boolean {
  if (answer.kind !== 'result' || !answer.bytes.includes(TASK_KEY)) return false;
  return asFields(readField(answer, 'task'))?.taskId !== undefined;
}
