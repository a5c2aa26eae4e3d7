/** What people and programs look at: the page, its events, and figures for Prometheus. */
import type { HttpListenerConfig } from '../../config/listener.ts';
import type { ObservationConfig } from '../../config/observation.ts';
import type { Deps } from '../../deps.ts';
import type { Audience } from '../../downstream/listener/admission.ts';
import type { HttpRoute } from '../../downstream/listener/http-server.ts';
import { BridgeError } from '../../errors.ts';
import { BearerAuthenticator, createTokenChecks } from '../../http/auth/bearer-authenticator.ts';
import { isForOneUser } from '../../http/server/listen-addresses.ts';
import { respondError, respondJson } from '../../http/server/respond.ts';
import type { Inspect, InspectedServer } from '../../observe/inspection.ts';
import { Activity } from '../../observe/status/activity.ts';
import { createStatusRoutes } from '../../observe/status/routes.ts';
import { createStatus } from '../../observe/status/status-document.ts';
import { createUsageStatus } from '../../observe/status/usage-status.ts';
import type { UsageTable } from '../../observe/usage/usage-table.ts';
import { HOSTS, type HostName, nameForHosts, renderSnippet } from '../../snippet.ts';
import type { Counted, Looking, Routes } from './observation.ts';

export interface StatusRequest {
  readonly config: ObservationConfig;
  readonly listener: HttpListenerConfig;
  readonly inspect: Inspect;
  readonly deps: Deps;
}

/** Nobody may look where nobody could show that they may. */
export async function createLooking(request: StatusRequest, counted: Counted): Promise<readonly Looking[]> {
  const audience = await whoMayLook(request);
  if (audience === 'nobody') return [];
  const usage = counted === undefined ? [] : [showUsage(audience, counted)];
  return [...showStatus(request, audience, counted), ...(await showMetrics(request, audience)), ...usage];
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
  { config, listener, inspect, deps }: StatusRequest,
  audience: Audience,
  counted: Counted,
): readonly Looking[] {
  if (config.status === 'off') return [];
  const activity = new Activity({ wallClock: deps.wallClock });
  const token = listener.access.auth !== undefined && listener.access.auth.oauth === undefined ? 'needed' : 'none';
  const status = createStatus({
    inspect,
    activity,
    usage: counted && createUsageStatus(counted, deps.wallClock),
    hosts: HOSTS,
    snippets: (host, server) => snippetFor(host as HostName, server, token),
  });
  const { assets, data, close } = createStatusRoutes(status, deps.clock);
  return [
    { observer: activity, routes: [...routesFor('anybody', assets), ...routesFor(audience, data)], endWatching: close },
  ];
}

function snippetFor(host: HostName, { name, url }: InspectedServer, token: 'needed' | 'none'): string {
  const [shortName = ''] = nameForHosts([name]);
  return renderSnippet(host, [{ name: shortName, url, transport: 'streamable-http', token }]).text;
}

async function showMetrics(
  { config, inspect, deps: { clock, log } }: StatusRequest,
  audience: Audience,
): Promise<readonly Looking[]> {
  if (config.metrics === 'off') return [];
  const [{ createMetrics }, { metricsRoute }] = await Promise.all([
    import('../../observe/metrics/metrics.ts'),
    import('../../observe/metrics/metrics-route.ts'),
  ]);
  const metrics = await createMetrics({ inspect, clock });
  const routes = routesFor(audience, new Map([['/metrics', onlyGet(metricsRoute(metrics, log))]]));
  const onRefused = (reason: string): void => metrics.refusedRequest(reason);
  return [{ observer: metrics, routes, onRefused, endWatching: () => undefined }];
}

/** What `mcp-portage report --url` asks for. */
function showUsage(audience: Audience, counted: UsageTable): Looking {
  const route: HttpRoute = (_request, response) => respondJson(response, 200, counted.usage());
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
