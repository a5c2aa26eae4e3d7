/** The routes of the status page behind a plain HTTP server. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../../src/deps.ts';
import type { DetailOf, Status } from '../../../src/observe/status/create-status.ts';
import type { OtherReplicas } from '../../../src/observe/status/other-replicas.ts';
import { createStatusRoutes, type StatusRoutes } from '../../../src/observe/status/routes.ts';
import { ServerRecords } from '../../../src/observe/status/server-records.ts';

export interface StatusServer {
  readonly url: string;
  readonly routes: StatusRoutes;
  /** Of all requests so far. */
  readonly responses: readonly ServerResponse[];
  close(): Promise<void>;
}

export interface StatusServerOptions {
  /** Those who may look have this token; undefined: everybody may. */
  readonly token?: string | undefined;
  /** Default: nothing is known of any server. */
  readonly detailOf?: DetailOf;
  readonly others?: OtherReplicas;
  /** The feed of messages; absent: there is none. */
  readonly feed?: (response: ServerResponse) => void;
}

export async function startStatusServer(
  status: Status,
  clock: Clock,
  { token, detailOf = NOTHING_KNOWN, others, feed }: StatusServerOptions = {},
): Promise<StatusServer> {
  const routes = createStatusRoutes({
    status,
    detailOf,
    clock,
    messages: feed === undefined ? 'hidden' : 'shown',
    others,
  });
  const responses: ServerResponse[] = [];
  const server = createServer((request, response) => {
    responses.push(response);
    const { pathname: path, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    const asset = routes.assets.get(path);
    if (asset !== undefined) return asset(request, response);
    const read = path === '/status/messages' && feed !== undefined ? () => feed(response) : undefined;
    const data = read ?? routes.data.get(path);
    if (data === undefined) return void response.writeHead(404).end();
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) {
      return void response.writeHead(401).end();
    }
    data(request, response, searchParams);
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

const NOTHING_KNOWN: DetailOf = (server) => new ServerRecords({ wallClock: Date.now }).detailOf(server);

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
