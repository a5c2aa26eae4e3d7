import { setTimeout as delay } from 'node:timers/promises';

export interface WaitOptions {
  readonly timeoutMs?: number;
  /** What did not happen, for the error. */
  readonly message?: string | (() => string);
}

const POLL_MS = 10;
/** Only what fails takes it: long enough for any machine, and shorter than what AVA waits for a test. */
const TIMEOUT_MS = 60_000;

/**
 * Resolves with the first value of `condition` that is neither false nor undefined; rejects when none comes in time.
 * Tests wait with this instead of sleeping.
 */
export async function waitFor<Value>(
  condition: () => Value | false | undefined | Promise<Value | false | undefined>,
  { timeoutMs = TIMEOUT_MS, message = 'the condition' }: WaitOptions = {},
): Promise<Value> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const value = await condition();
    if (value !== false && value !== undefined) return value;
    if (Date.now() > deadline) {
      const what = typeof message === 'string' ? message : message();
      throw new Error(`waited ${timeoutMs} ms in vain for ${what}`);
    }
    await delay(POLL_MS);
  }
}
