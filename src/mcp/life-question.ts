import type { Frame, JsonRpcId } from '../wire/frame.ts';
import { requestFrame } from '../wire/write-message.ts';
import { createDiscoverRequest } from './discover.ts';
import type { Implementation } from './meta.ts';
import { PING } from './methods.ts';
import { type Era, LATEST_MODERN_REVISION } from './revisions.ts';

export interface LifeQuestionOptions {
  readonly era: Era;
  readonly id: JsonRpcId;
  readonly clientInfo: Implementation;
}

/**
 * What every server of an era has to answer, and can at once. An error shows life, too.
 * [spec 2025-11-25 basic/utilities/ping#behavior-requirements]; 2026-07-28 has no ping, but servers must implement
 * `server/discover`. [spec 2026-07-28 changelog]
 */
export function createLifeQuestion({ era, id, clientInfo }: LifeQuestionOptions): Frame {
  if (era === 'legacy') return requestFrame(id, PING);
  return createDiscoverRequest({ id, revision: LATEST_MODERN_REVISION, clientInfo });
}
