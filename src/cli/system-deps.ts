import { randomFillSync } from 'node:crypto';
import type { Logger } from 'pino';
import type { Clock, Deps } from '../deps.ts';

/** The real clock. Its timers do not keep the process alive. */
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
  return { log, clock: systemClock, wallClock: Date.now, randomId: createRandomIds() };
}

const ID_BYTES = 16;
/** Number of ids for each call to the system's random generator, which costs ten times as much as to encode one id. */
const IDS_AT_ONCE = 256;

function createRandomIds(): () => string {
  const random = Buffer.alloc(IDS_AT_ONCE * ID_BYTES);
  let used = random.length;
  return () => {
    if (used === random.length) {
      randomFillSync(random);
      used = 0;
    }
    used += ID_BYTES;
    return random.toString('base64url', used - ID_BYTES, used);
  };
}
