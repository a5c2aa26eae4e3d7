/** Which call a notification of a legacy server belongs to. */
import { findCancelledId, findProgressOf } from '../mcp/classify/correlators.ts';
import { CANCELLED, LOG_MESSAGE, PROGRESS } from '../mcp/vocabulary/methods.ts';
import type { Frame } from '../wire/frame.ts';
import type { Exchange } from './exchange.ts';
import type { ExchangeTable } from './exchange-table.ts';
import type { Questions } from './questions.ts';

/** As far as the message itself tells. A question that the server withdraws is closed. */
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
