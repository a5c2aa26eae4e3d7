import type { ServerResponse } from 'node:http';

/**
 * Header of a response that says the replica did nothing because it does not have the session or call; another replica
 * may.
 */
export const NOT_HERE_HEADER = 'mcp-portage-not-here';

/**
 * Stage of a replica's shutdown.
 * - `staying`: the replica is not shutting down.
 * - `moving`: sessions that can move are handed over, and their requests go to the replica that continues them.
 * - `draining`: the replica accepts nothing new, and finishes what it has begun.
 */
export type LeavingStage = 'staying' | 'moving' | 'draining';

/** Tells the replica that forwarded a request that it may be served elsewhere. */
export function respondNotHere(response: ServerResponse): void {
  response.writeHead(421, { [NOT_HERE_HEADER]: '1', 'Content-Length': 0 }).end();
}
