import type { Logger } from 'pino';
import type { BridgeError } from '../../errors.ts';
import { logFailure } from '../log-failure.ts';

/**
 * A shared server is gone, or did not come. What was lost, and why, the link that lost it has said; of a server that did
 * not start, perhaps nobody else is told.
 */
export function logEnd(log: Logger, reason: BridgeError, wasServing: boolean): void {
  if (wasServing) log.info({ code: reason.code }, 'the shared server is gone; the next one starts when it is wanted');
  else logFailure(log, reason, 'the shared server did not start');
}
