/** The routes of the status page behind a plain HTTP server. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../../src/deps.ts';
import type { Status } from '../../../src/observe/status/create-status.ts';
import { createStatusRoutes, type StatusRoutes } from '../../../src/observe/status/routes.ts';

export interface StatusServer {
  readonly url: string;
  readonly routes: StatusRoutes;
  /** Of all requests so far. */
  readonly responses: readonly ServerResponse[];
  close(): Promise<void>;
}

/** Those who may look have this token; undefined: everybody may. */
export async function startStatusServer(
  status: Status,
  clock: Clock,
  token: string | undefined = undefined,
): Promise<StatusServer> {
  const routes = createStatusRoutes(status, clock);
  const responses: ServerResponse[] = [];
  const server = createServer((request, response) => {
    responses.push(response);
    const path = request.url ?? '/';
    const asset = routes.assets.get(path);
    if (asset !== undefined) return asset(request, response);
    const data = routes.data.get(path);
    if (data === undefined) return void response.writeHead(404).end();
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) {
      return void response.writeHead(401).end();
    }
    data(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    routes,
    responses,
    close: async () => {
      routes.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The clock of the machine. */
export const REAL_CLOCK: Clock = {
  now: () => performance.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
  every: (periodMs, run) => {
    const timer = setInterval(run, periodMs);
    return () => clearInterval(timer);
  },
};
