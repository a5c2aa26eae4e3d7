import type { IncomingMessage, ServerResponse } from 'node:http';

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

/** Serves a forwarded request like one that a client has sent to this replica. */
export type ServePassed = (request: IncomingMessage, response: ServerResponse) => void;

/** Property of a forwarded request that holds its caller, like the property for callers in http/auth/callers.ts. */
const HOP = Symbol('hop');

type HoppedRequest = IncomingMessage & { [HOP]?: string };

/**
 * Marks a request as forwarded by another replica, which has authenticated the caller. Only requests that arrive on a
 * link are marked.
 */
export function recordHop(request: IncomingMessage, caller: string): void {
  (request as HoppedRequest)[HOP] = caller;
}

/** Returns the caller that the forwarding replica has authenticated, or undefined if the request was not forwarded. */
export function passedCallerOf(request: IncomingMessage): string | undefined {
  return (request as HoppedRequest)[HOP];
}

/** True if another replica has forwarded the request. Such a request is not forwarded again. */
export function hasHopped(request: IncomingMessage): boolean {
  return passedCallerOf(request) !== undefined;
}
