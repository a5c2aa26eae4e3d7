/** Which call a notification of a legacy server belongs to. */
import { findCancelledId, findProgressOf, findSubscriptionId } from '../mcp/classify/correlators.ts';
import { CANCELLED, LISTEN, LOG_MESSAGE, PROGRESS } from '../mcp/vocabulary/methods.ts';
import type { Frame } from '../wire/frame.ts';
import type { Exchange, ExchangeTable } from './exchange.ts';
import type { Questions } from './questions.ts';

/** Finds what the message itself tells. A question that the server withdraws is closed. */
export function findCallOf(frame: Frame, exchanges: ExchangeTable, questions: Questions): Exchange | undefined {
  switch (frame.method) {
    case PROGRESS: {
      const token = findProgressOf(frame);
      return token && exchanges.findByToken(token.value);
    }
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
    case PROGRESS: {
      const token = findProgressOf(frame);
      return (token && open.findByToken(token.value)) ?? 'nobody';
    }
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
