import { classifyInitialize, classifyProbe, type ProbeOutcome } from '../../../mcp/classify/probe-answer.ts';
import { createDiscoverRequest } from '../../../mcp/vocabulary/discover.ts';
import type { Implementation } from '../../../mcp/vocabulary/meta.ts';
import { LATEST_MODERN_REVISION } from '../../../mcp/vocabulary/revisions.ts';
import type { LinkClient } from './link-client.ts';

export interface Asking {
  readonly connection: LinkClient;
  readonly clientInfo: Implementation;
  readonly probeTimeoutMs: number;
}

/** Is a server modern that answered `initialize` like this? Asks it unless it has said so. */
export async function isModernServer(refusal: ProbeOutcome, asking: Asking): Promise<boolean> {
  return classifyInitialize(refusal).kind === 'modern' || answersDiscover(LATEST_MODERN_REVISION, asking, false);
}

async function answersDiscover(revision: string, asking: Asking, isRetry: boolean): Promise<boolean> {
  const { connection, clientInfo, probeTimeoutMs } = asking;
  const request = createDiscoverRequest({ id: connection.takeId(), revision, clientInfo });
  const { outcome } = await connection.ask(request, probeTimeoutMs);
  const verdict = classifyProbe(outcome, { carrier: 'stdio', requested: revision, isRetry });
  if (verdict.kind === 'modern-retry') return answersDiscover(verdict.revision, asking, true);
  return verdict.kind === 'modern';
}
