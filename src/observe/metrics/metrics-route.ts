import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { Logger } from 'pino';
import { toBridgeError } from '../../errors.ts';
import { respondError } from '../../http/server/respond.ts';
import type { Metrics } from './metrics.ts';

/** Serves the metrics to Prometheus. The caller was authenticated before. */
export function metricsRoute(
  metrics: Metrics,
  log: Logger,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (_request, response) => {
    metrics.text().then(
      (pieces) => respond(response, metrics.contentType, pieces),
      (err: unknown) => {
        log.error({ err }, 'metrics could not be collected');
        respondError(response, toBridgeError(err));
      },
    );
  };
}

function respond(response: ServerResponse, contentType: string, pieces: readonly Buffer[]): void {
  if (response.destroyed) return;
  response.writeHead(200, {
    'Content-Type': contentType,
    'Content-Length': pieces.reduce((sum, { length }) => sum + length, 0),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  Readable.from(pieces, { objectMode: true }).pipe(response);
}
