import type { Logger } from 'pino';
import type { BridgeError } from '../errors.ts';

/**
 * Logs a failure with its reason. The start and the end of a process have been logged in full by their link, so in
 * these cases only the consequence is logged.
 */
export function logFailure(log: Logger, reason: BridgeError, what: string): void {
  if (isOfProcess(reason)) return log.info({ code: reason.code }, what);
  const bug = reason.code === 'ERR_INTERNAL' ? { err: reason.cause } : {};
  log.warn({ code: reason.code, ...bug }, `${what}: ${reason.message}`);
}

/** Returns true if the error is about the start or the end of a process. */
export function isOfProcess({ code }: Pick<BridgeError, 'code'>): boolean {
  return code === 'ERR_UPSTREAM_EXITED' || code === 'ERR_UPSTREAM_SPAWN' || code === 'ERR_UPSTREAM_HUNG';
}
