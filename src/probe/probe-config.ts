import type { ServerConfig } from '../config.ts';

export interface ProbeConfig extends Pick<ServerConfig, 'protocol' | 'remote' | 'child' | 'limits'> {
  /** The time limit for everything but the clearing up. */
  readonly timeoutMs: number;
  /** Aborted: it ends sooner, and reports what it has. */
  readonly signal?: AbortSignal;
  /** Hears what is waited for from now on: `the answer to initialize`. */
  readonly waiting?: (what: string) => void;
}

/** A single question; one that gets no answer in this time gets none. */
export const STEP_TIMEOUT_MS = 10_000;
/** A stream is announced at once or not at all. */
export const STREAM_TIMEOUT_MS = 5000;
