import type { IncomingMessage, ServerResponse } from 'node:http';

/** In the response of a replica that does not have what it was asked for: nothing was done, and another may have it. */
export const NOT_HERE_HEADER = 'mcp-portage-not-here';

/** Serves a request that another replica has passed on, as one that came here. */
export type ServePassed = (request: IncomingMessage, response: ServerResponse) => void;

/** As with callers (http/auth/callers.ts), what is known of a request is a property of it. */
const HOP = Symbol('hop');

type HoppedRequest = IncomingMessage & { [HOP]?: string };

/** Another replica has passed this request on, and has found out who its caller is. Only what came on a link is recorded. */
export function recordHop(request: IncomingMessage, caller: string): void {
  (request as HoppedRequest)[HOP] = caller;
}

/** The name of the caller that another replica has let in; undefined: no other replica has passed the request on. */
export function passedCallerOf(request: IncomingMessage): string | undefined {
  return (request as HoppedRequest)[HOP];
}

/** Whether another replica has passed it on. It goes no further. */
export function hasHopped(request: IncomingMessage): boolean {
  return passedCallerOf(request) !== undefined;
}
