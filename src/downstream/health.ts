import { respondJson } from '../http/respond.ts';
import type { Readiness } from '../relay/ports.ts';
import type { HttpRoute } from './http-server.ts';

/**
 * What monitors ask: is the process alive, could a call be served now. Cheap, without authentication, and silent
 * about everything but the answer.
 */
export function healthRoutes(readiness: () => Readiness): ReadonlyMap<string, HttpRoute> {
  return new Map<string, HttpRoute>([
    ['/healthz', (_request, response) => respondJson(response, 200, { status: 'ok' })],
    [
      '/readyz',
      (_request, response) => {
        const state = readiness();
        if (state.ready) return respondJson(response, 200, { status: 'ready' });
        respondJson(response, 503, { status: 'not ready', code: state.error.code, reason: state.error.message });
      },
    ],
  ]);
}
