import { findUnmistakable } from '../../mcp/classify/look-alikes.ts';
import { META_LOG_LEVEL } from '../../mcp/vocabulary/meta.ts';
import type { Frame } from '../../wire/frame.ts';

const LETTER_N = 0x6e;

/**
 * Will the server send log messages for this request? Exact, for a call that is overlooked here would make its messages
 * look like those of another client's. [spec 2026-07-28 server/utilities/logging#per-request-log-level]
 */
export function asksForLogs(frame: Frame): boolean | 'unclear' {
  const meta = findUnmistakable(frame, frame.payloadStart, '_meta');
  if (meta === undefined || meta === 'unclear') return meta ?? false;
  const level = findUnmistakable(frame, meta.start, META_LOG_LEVEL);
  if (level === undefined || level === 'unclear') return level ?? false;
  // Only null starts with an n, and means the same as nothing.
  return frame.bytes[level.start] !== LETTER_N;
}
