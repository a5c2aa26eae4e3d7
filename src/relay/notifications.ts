/** Which call a notification of a server belongs to. Progress apart, which names its call by a token. */
import { findCancelledId, findSubscriptionId } from '../mcp/classify/correlators.ts';
import { CANCELLED, LISTEN, LOG_MESSAGE } from '../mcp/vocabulary/methods.ts';
import { asFields, readField } from '../mcp/vocabulary/payload.ts';
import type { Frame, JsonRpcId } from '../wire/frame.ts';
import type { Exchange, ExchangeTable } from './exchange.ts';
import type { Questions } from './questions.ts';

/** Finds what the message itself tells. A question that the server withdraws is closed. */
export function findCallOf(frame: Frame, exchanges: ExchangeTable, questions: Questions): Exchange | undefined {
  switch (frame.method) {
    case LOG_MESSAGE:
      return exchanges.sole();
    case CANCELLED: {
      const question = findCancelledId(frame);
      return question && questions.close(question.value);
    }
    default:
      return undefined;
  }
}

/** The call a notification belongs to; `client`: none in particular; `nobody`: one that is over, or none at all. */
export type Addressee = Exchange | 'client' | 'nobody';

/**
 * Whom a notification of a modern server is for. Once a request is withdrawn, nothing more may be said for it.
 * [spec 2026-07-28 transports/stdio#cancellation]
 *
 * @param known what the transport says it belongs to
 */
export function findAddressee(frame: Frame, known: Exchange | undefined, open: ExchangeTable): Addressee {
  if (frame.method === CANCELLED) return findEndedListen(frame, open);
  if (known !== undefined) return known.state.kind === 'open' ? known : 'nobody';
  switch (frame.method) {
    case LOG_MESSAGE:
      // Over stdio it does not say whose it is.
      return open.sole() ?? (open.size === 0 ? 'nobody' : 'client');
    default:
      return findSubscriber(frame, open);
  }
}

/** [spec 2026-07-28 basic/patterns/cancellation] a server may end a subscription with it, and nothing else. */
function findEndedListen(frame: Frame, open: ExchangeTable): Addressee {
  const cancelled = findCancelledId(frame);
  const exchange = cancelled && open.find(cancelled.value);
  return exchange?.method === LISTEN ? exchange : 'nobody';
}

function findSubscriber(frame: Frame, open: ExchangeTable): Addressee {
  const subscription = findSubscriptionId(frame);
  if (subscription === undefined) return 'client';
  const exchange = open.find(subscription.value);
  return exchange?.method === LISTEN ? exchange : 'nobody';
}

/** Tasks of one client whose progress may still come; most clients have a few. */
const MAX_TASK_TOKENS = 256;
/** Characters of a token that is kept so. */
const MAX_TOKEN_LENGTH = 256;

/**
 * Progress tokens of calls that were answered with a task: they stay valid until the task has ended, of which the relay
 * knows nothing, so the latest ones count. [spec 2025-11-25 basic/utilities/tasks#progress]
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

/** Is this the answer of a call that has become a task? Parses only what may be one. */
export function createsTask(answer: Frame): boolean {
  if (answer.kind !== 'result' || !answer.bytes.includes(TASK_KEY)) return false;
  return asFields(readField(answer, 'task'))?.taskId !== undefined;
}
