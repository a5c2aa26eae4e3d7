import type { ServerResponse } from 'node:http';
import type { BridgeError } from '../../errors.ts';
import type { Authenticator } from '../../http/auth/callers.ts';
import { respondJson } from '../../http/server/respond.ts';
import type { Readiness } from '../../relay/ports.ts';
import type { OpenRoute } from './http-server.ts';

/** What decides whether a call could be served now. */
export interface ReadinessSources {
  readonly readiness: () => Readiness;
  /** One more session could be opened now. */
  readonly hasCapacity: () => boolean;
  /** Whether it is connected to the hubs that it calls; undefined: it calls none. */
  readonly isAtHubs: () => boolean | undefined;
  /** What replicas share can be reached, where there are several. */
  readonly hasStore: () => boolean;
}

export interface HealthSources extends ReadinessSources {
  /** Who may be told why it is not ready. */
  readonly authenticator: () => Authenticator;
  /** Whether the server that is not ready exists for this caller. */
  readonly isKnownTo: (principal: string) => boolean;
}

/**
 * What monitors ask: is the process alive, could a call be served now. Cheap, without authentication, and silent about
 * everything but the answer. Why no call could be served is told to those who may call, as they would hear it anyway: it
 * may name the server's address, or repeat its last words.
 *
 * A bridge at its limit of sessions is ready: it serves clients that have one, and calls that need none. Taking it out of
 * service would lock out all of them, so it only reports that it is full. The same applies to a hub that cannot be reached,
 * and to a store that a replica cannot reach, as long as it may continue its own sessions.
 */
export function readinessRoute(sources: HealthSources): OpenRoute {
  const { authenticator, isKnownTo } = sources;
  return (response, askWhetherWelcome) => {
    const known = sources.readiness();
    if (known.state === 'ready') return respondReady(response, sources);
    askWhetherWelcome(authenticator(), (principal) =>
      respondUnready(response, known.error, principal !== undefined && isKnownTo(principal) ? 'with-reason' : 'code'),
    );
  };
}

/** Answers a caller of the server that this is about. */
export function respondReadiness(response: ServerResponse, sources: ReadinessSources): void {
  const known = sources.readiness();
  if (known.state === 'ready') respondReady(response, sources);
  else respondUnready(response, known.error, 'with-reason');
}

function respondReady(response: ServerResponse, { isAtHubs, hasCapacity, hasStore }: ReadinessSources): void {
  const atHubs = isAtHubs();
  respondJson(response, 200, {
    status: 'ready',
    ...(!hasCapacity() && { sessions: 'full' }),
    ...(atHubs !== undefined && { hubs: atHubs ? 'connected' : 'calling' }),
    ...(!hasStore() && { store: 'unavailable' }),
  });
}

function respondUnready(
  response: ServerResponse,
  { code, message: reason }: BridgeError,
  told: 'with-reason' | 'code',
): void {
  respondJson(response, 503, { status: 'not ready', code, ...(told === 'with-reason' && { reason }) });
}

/** The process is alive. */
export const livenessRoute: OpenRoute = (response) => respondJson(response, 200, { status: 'ok' });
