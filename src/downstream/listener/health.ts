import type { ServerResponse } from 'node:http';
import type { BridgeError } from '../../errors.ts';
import type { Authenticator } from '../../http/auth/callers.ts';
import { respondJson } from '../../http/server/respond.ts';
import { type Readiness, unreadinessOf } from '../../relay/readiness.ts';
import type { OpenRoute } from './http-server.ts';

/** The facts that decide if a call could be served now. */
export interface ReadinessSources {
  readonly readiness: () => Readiness;
  /** True if one more session could be opened now. */
  readonly hasCapacity: () => boolean;
  /** True if the bridge is connected to the hubs that it calls; undefined: it calls none. */
  readonly isAtHubs: () => boolean | undefined;
  /** True if the store that replicas share can be reached, or if there is no store. */
  readonly hasStore: () => boolean;
}

export interface HealthSources extends ReadinessSources {
  /** Authenticates the callers that may be told why the bridge is not ready. */
  readonly authenticator: () => Authenticator;
  /** Returns true if the server that is not ready exists for this caller. */
  readonly isKnownTo: (principal: string) => boolean;
}

/**
 * Answers monitors that ask if a call could be served now. The check is cheap, needs no authentication and reveals only
 * its answer. The reason why no call could be served may name the server's address or quote its last output, so only
 * callers that could call the server get it; they would see it in their own errors.
 *
 * A bridge at its session limit is ready: it serves clients that have a session, and calls that need none. Taking it
 * out of service would lock out all of them, so it only reports that it is full. The same applies to a hub that cannot
 * be reached, and to a store that a replica cannot reach, as long as it may continue its own sessions.
 */
export function readinessRoute(sources: HealthSources): OpenRoute {
  const { authenticator, isKnownTo } = sources;
  return (response, askWhetherWelcome) => {
    const known = unreadinessOf(sources.readiness());
    if (known === undefined) return respondReady(response, sources);
    askWhetherWelcome(authenticator(), (principal) =>
      respondUnready(response, known.error, principal !== undefined && isKnownTo(principal) ? 'with-reason' : 'code'),
    );
  };
}

/** Responds to a caller that may use the server in question. */
export function respondReadiness(response: ServerResponse, sources: ReadinessSources): void {
  const known = unreadinessOf(sources.readiness());
  if (known === undefined) respondReady(response, sources);
  else respondUnready(response, known.error, 'with-reason');
}

function respondReady(response: ServerResponse, sources: ReadinessSources): void {
  const atHubs = sources.isAtHubs();
  respondJson(response, 200, {
    status: 'ready',
    // Clients of a server that is starting wait for it.
    ...(sources.readiness().state === 'starting' && { server: 'starting' }),
    ...(!sources.hasCapacity() && { sessions: 'full' }),
    ...(atHubs !== undefined && { hubs: atHubs ? 'connected' : 'calling' }),
    ...(!sources.hasStore() && { store: 'unavailable' }),
  });
}

function respondUnready(
  response: ServerResponse,
  { code, message: reason }: BridgeError,
  told: 'with-reason' | 'code',
): void {
  respondJson(response, 503, { status: 'not ready', code, ...(told === 'with-reason' && { reason }) });
}

/** Answers monitors that ask if the process is alive. */
export const livenessRoute: OpenRoute = (response) => respondJson(response, 200, { status: 'ok' });
