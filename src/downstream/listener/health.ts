import type { Authenticator } from '../../http/auth/callers.ts';
import { respondJson } from '../../http/server/respond.ts';
import type { Readiness } from '../../relay/ports.ts';
import type { OpenRoute } from './http-server.ts';

export interface HealthSources {
  readonly readiness: () => Readiness;
  /** Who is told why it is not ready. */
  readonly authenticator: () => Authenticator;
  /** One more session could be opened now. */
  readonly hasCapacity: () => boolean;
  /** Whether it is connected to the hubs that it calls; undefined: it calls none. */
  readonly isAtHubs: () => boolean | undefined;
  /** What replicas share can be reached, where there are several. */
  readonly hasStore: () => boolean;
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
export function readinessRoute({
  readiness,
  authenticator,
  hasCapacity,
  isAtHubs,
  hasStore,
}: HealthSources): OpenRoute {
  return (response, askWhetherWelcome) => {
    const known = readiness();
    if (known.state === 'ready') {
      const atHubs = isAtHubs();
      return respondJson(response, 200, {
        status: 'ready',
        ...(!hasCapacity() && { sessions: 'full' }),
        ...(atHubs !== undefined && { hubs: atHubs ? 'connected' : 'calling' }),
        ...(!hasStore() && { store: 'unavailable' }),
      });
    }
    const { code, message: reason } = known.error;
    askWhetherWelcome(authenticator(), (principal) =>
      respondJson(response, 503, { status: 'not ready', code, ...(principal !== undefined && { reason }) }),
    );
  };
}

/** The process is alive. */
export const livenessRoute: OpenRoute = (response) => respondJson(response, 200, { status: 'ok' });
