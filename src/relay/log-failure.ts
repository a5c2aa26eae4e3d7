import type { Logger } from 'pino';
import type { BridgeError } from '../errors.ts';

/**
 * Says of something that failed why. The end of a process, or that it could not be started, its link has said with all
 * that is known of it; then nothing is left to say but what that means.
 */
export function logFailure(log: Logger, reason: BridgeError, what: string): void {
  if (isOfProcess(reason)) return log.info({ code: reason.code }, what);
  const bug = reason.code === 'ERR_INTERNAL' ? { err: reason.cause } : {};
  log.warn({ code: reason.code, ...bug }, `${what}: ${reason.message}`);
}

/** Whether it is about the end or the start of a process. */
export function isOfProcess({ code }: Pick<BridgeError, 'code'>): boolean {
  return code === 'ERR_UPSTREAM_EXITED' || code === 'ERR_UPSTREAM_SPAWN' || code === 'ERR_UPSTREAM_HUNG';
}
