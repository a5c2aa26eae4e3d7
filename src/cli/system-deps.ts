import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import type { Clock, Deps } from '../deps.ts';

/** Real time; its timers never keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs).unref();
    return () => clearTimeout(timer);
  },
  every(periodMs, run) {
    const timer = setInterval(run, periodMs).unref();
    return () => clearInterval(timer);
  },
};

export function createSystemDeps(log: Logger): Deps {
  return { log, clock: systemClock, randomId: () => randomBytes(16).toString('base64url') };
}
