import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { toBridgeError } from '../../errors.ts';
import { respondError } from '../../http/server/respond.ts';
import type { Metrics } from './metrics.ts';

/** Where Prometheus looks. Who may look is decided before. */
export function metricsRoute(
  metrics: Metrics,
  log: Logger,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (_request, response) => {
    metrics.text().then(
      (text) => respond(response, metrics.contentType, Buffer.from(text)),
      (err: unknown) => {
        log.error({ err }, 'metrics could not be collected');
        respondError(response, toBridgeError(err));
      },
    );
  };
}

function respond(response: ServerResponse, contentType: string, body: Buffer): void {
  response
    .writeHead(200, {
      'Content-Type': contentType,
      'Content-Length': body.length,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
    })
    .end(body);
}
