/** Routes for people and programs that watch the bridge: the status page, its events, and metrics for Prometheus. */
import type { HttpListenerConfig } from '../../config/listener.ts';
import type { ObservationConfig } from '../../config/observation.ts';
import type { Deps } from '../../deps.ts';
import type { HttpRoute } from '../../downstream/listener/http-server.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { BearerAuthenticator, createTokenChecks } from '../../http/auth/bearer-authenticator.ts';
import type { Audience } from '../../http/auth/callers.ts';
import { isForOneUser } from '../../http/server/listen-addresses.ts';
import { respondError, respondJson } from '../../http/server/respond.ts';
import type { Inspect, InspectedServer } from '../../observe/inspection.ts';
import { Activity } from '../../observe/status/activity.ts';
import { createStatus } from '../../observe/status/create-status.ts';
import type { OtherReplicas } from '../../observe/status/other-replicas.ts';
import { Refusals } from '../../observe/status/refusals.ts';
import { createStatusRoutes, isOfAll } from '../../observe/status/routes.ts';
import { ServerRecords } from '../../observe/status/server-records.ts';
import type { ServerDetail } from '../../observe/status/status-document.ts';
import { createUsageStatus } from '../../observe/status/usage-status.ts';
import type { UsageTable } from '../../observe/usage/usage-table.ts';
import type { Replica } from '../../replicas/replica.ts';
import { HOSTS, type HostName, nameForHosts, renderSnippet } from '../../snippet.ts';
import type { Counted, Looking, Routes } from './observation.ts';

export interface StatusRequest {
  readonly config: ObservationConfig;
  readonly listener: HttpListenerConfig;
  readonly inspect: Inspect;
  /** This bridge as one of several replicas; undefined: there are no others. */
  readonly replica: Pick<Replica, 'others' | 'usage'> | undefined;
  readonly deps: Deps;
}

/**
 * Creates the routes. Without a status token there are none, unless the listener is for one user and has no
 * authentication.
 */
export async function createLooking(
  request: StatusRequest,
  counted: Counted,
  feed?: HttpRoute,
): Promise<readonly Looking[]> {
  const audience = await whoMayLook(request);
  if (audience === 'nobody') return [];
  const usage = counted === undefined ? [] : [showUsage(audience, counted, request.replica)];
  return [...showStatus(request, audience, { counted, feed }), ...(await showMetrics(request, audience)), ...usage];
}

async function whoMayLook({ config, listener, deps }: StatusRequest): Promise<Audience | 'nobody'> {
  const { statusToken } = config;
  if (statusToken === undefined) {
    return listener.access.auth === undefined && listener.addresses.every(isForOneUser) ? 'anybody' : 'nobody';
  }
  const auth = { tokens: [statusToken], oauth: undefined };
  const createClient = () => Promise.reject(new Error('a token that was handed out needs no issuer'));
  const checks = await createTokenChecks({ auth, createClient, deps });
  return new BearerAuthenticator({ ...checks, audiences: [], hintsFor: () => NO_HINTS });
}

const NO_HINTS = { resourceMetadata: undefined, scopes: [] };

function showStatus(
  { config, listener, inspect, replica, deps }: StatusRequest,
  audience: Audience,
  { counted, feed }: { readonly counted: Counted; readonly feed: HttpRoute | undefined },
): readonly Looking[] {
  if (config.status === 'off') return [];
  const activity = new Activity({ wallClock: deps.wallClock });
  const refusals = new Refusals({ wallClock: deps.wallClock });
  const records = new ServerRecords({ wallClock: deps.wallClock });
  const token = listener.access.auth !== undefined && listener.access.auth.oauth === undefined ? 'needed' : 'none';
  const replicas = replica?.others;
  const status = createStatus({
    ownAddress: replicas?.ownAddress,
    inspect,
    isInspecting: feed !== undefined,
    activity,
    refusals,
    usage: counted && createUsageStatus(counted, deps.wallClock),
    hosts: HOSTS,
    snippets: (host, server) => snippetFor(host as HostName, server, token),
  });
  const detailOf = (server: string): ServerDetail => records.detailOf(server);
  const { assets, data, close } = createStatusRoutes({
    status,
    detailOf,
    clock: deps.clock,
    messages: feed === undefined ? 'hidden' : 'shown',
    others: replicas,
  });
  return [
    {
      observer: activity,
      onRefused: (reason) => refusals.refused(reason),
      observeServer: (server) => records.observe(server),
      routes: [
        ...routesFor('anybody', assets),
        ...routesFor(audience, data),
        ...(feed === undefined ? [] : routesFor(audience, new Map([['/status/messages', onlyGet(feed)]]))),
      ],
      endWatching: close,
    },
  ];
}

function snippetFor(host: HostName, { name, url }: InspectedServer, token: 'needed' | 'none'): string {
  const [shortName = ''] = nameForHosts([name]);
  return renderSnippet(host, [{ name: shortName, url, transport: 'streamable-http', token }]).text;
}

async function showMetrics(
  { config, inspect, replica, deps: { clock, log } }: StatusRequest,
  audience: Audience,
): Promise<readonly Looking[]> {
  if (config.metrics === 'off') return [];
  const [{ createMetrics }, { metricsRoute }] = await Promise.all([
    import('../../observe/metrics/metrics.ts'),
    import('../../observe/metrics/metrics-route.ts'),
  ]);
  const metrics = await createMetrics({ inspect, clock });
  const own: readonly (readonly [string, HttpRoute])[] = [['/metrics', onlyGet(metricsRoute(metrics, log))]];
  const targets = replica === undefined ? [] : [['/metrics/replicas', onlyGet(listTargets(replica.others))] as const];
  const routes = routesFor(audience, new Map([...own, ...targets]));
  const onRefused = (reason: string): void => metrics.refusedRequest(reason);
  return [{ observer: metrics, routes, onRefused, endWatching: () => undefined }];
}

/** Lists all replicas as targets for Prometheus, in its format. [prometheus.io http_sd] */
function listTargets(replicas: OtherReplicas): HttpRoute {
  return (_request, response) => {
    replicas.addresses().then(
      (addresses) => {
        const hosts = addresses.map((address) => new URL(address)).map(({ protocol, host }) => ({ protocol, host }));
        const groups = [...new Set(hosts.map(({ protocol }) => protocol))].map((protocol) => ({
          targets: hosts.filter((each) => each.protocol === protocol).map(({ host }) => host),
          labels: { __scheme__: protocol.slice(0, -1) },
        }));
        respondJson(response, 200, groups);
      },
      (thrown: unknown) => respondError(response, toBridgeError(thrown)),
    );
  };
}

/** Serves the usage to `mcp-portage report --url`. */
function showUsage(audience: Audience, counted: UsageTable, replica: StatusRequest['replica']): Looking {
  const shared = replica?.usage;
  const route: HttpRoute = (_request, response, query) => {
    if (!isOfAll(query) || shared === undefined) return respondJson(response, 200, counted.usage());
    shared.read().then(
      (usage) => respondJson(response, 200, usage),
      (thrown: unknown) => respondError(response, toBridgeError(thrown)),
    );
  };
  const routes = routesFor(audience, new Map([['/status/usage.json', onlyGet(route)]]));
  return { observer: undefined, routes, endWatching: () => undefined };
}

function onlyGet(route: HttpRoute): HttpRoute {
  return (request, response, query) => {
    if (request.method === 'GET' || request.method === 'HEAD') return route(request, response, query);
    const error = new BridgeError('ERR_HTTP_METHOD', 'Only GET is served here.');
    respondError(response, error, undefined, { Allow: 'GET, HEAD' });
  };
}

function routesFor(audience: Audience, routes: ReadonlyMap<string, HttpRoute>): Routes {
  return [...routes].map(([path, route]) => [path, { audience, route }] as const);
}
