import { type LogLevel, severityOf } from '../../mcp/vocabulary/log-levels.ts';
import type { Frame } from '../../wire/frame.ts';
import type { CallObserver } from './parked-call.ts';

/** A request of the client that follows a call. */
export interface Follower extends CallObserver {
  readonly logLevel: LogLevel | undefined;
  /** The progress token as the client wrote it. */
  readonly progressToken: Buffer | undefined;
  notify(frame: Frame): void;
  serverDrained(): void;
}

/** The level at which none of them misses anything; undefined: none of them wants logs. */
export function mostVerbose(followers: Iterable<Follower>): LogLevel | undefined {
  let most: LogLevel | undefined;
  for (const { logLevel } of followers) {
    if (logLevel !== undefined && (most === undefined || severityOf(logLevel) < severityOf(most))) most = logLevel;
  }
  return most;
}
