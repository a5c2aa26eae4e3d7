import type { IncomingMessage } from 'node:http';
import type { AccessConfig, Config, EndpointConfig, LimitConfig, RemoteConfig, SessionConfig } from '../config.ts';
import { HttpSseEndpoint, refuseHttpSse } from '../downstream/http-sse/endpoint.ts';
import { browserPages, type Endpoint } from '../downstream/listener/browser-page.ts';
import type { HttpServerOptions } from '../downstream/listener/http-server.ts';
import { McpEndpoint } from '../downstream/mcp-endpoint.ts';
import { StreamableEndpoint, type StreamableEndpointOptions } from '../downstream/streamable-session/endpoint.ts';
import { StatelessEndpoint } from '../downstream/streamable-stateless/endpoint.ts';
import { createPublicUrl } from '../http/server/public-url.ts';
import { BodyBudget } from '../http/server/read-body.ts';
import type { CallRegistry } from '../relay/call-registry.ts';
import type { RunningBridge } from './running-bridge.ts';

export interface EndpointParts
  extends Pick<StreamableEndpointOptions, 'deps' | 'sessions' | 'live' | 'principalOf' | 'environmentOf'> {
  readonly calls: CallRegistry;
}

/** As much of the configuration as decides what is served where. */
export interface RoutesConfig {
  readonly endpoints: EndpointConfig;
  readonly listen: { readonly tls: unknown };
  readonly access: Pick<AccessConfig, 'callerNames'>;
  readonly remote: Pick<RemoteConfig, 'forwardHeaders'>;
  readonly sessions: Pick<SessionConfig, 'pollAfterMs'>;
  readonly limits: Pick<
    LimitConfig,
    'maxMessageBytes' | 'maxJsonDepth' | 'maxReplayBytes' | 'maxStreamsPerSession' | 'requestTimeoutMs'
  >;
}

/** What is served where: to those who may come in, to browsers, and to everybody. */
export function createRoutes(
  config: RoutesConfig,
  parts: EndpointParts,
): Pick<HttpServerOptions, 'routes' | 'browserPages' | 'publicRoutes'> {
  const { path, ssePath, messagePath, baseUrl, httpSse } = config.endpoints;
  const { maxMessageBytes, maxJsonDepth, maxReplayBytes, maxStreamsPerSession: maxStreams } = config.limits;
  const callerOf = config.access.callerNames === 'several' ? parts.principalOf : undefined;
  const bodies = {
    maxMessageBytes,
    maxJsonDepth,
    bodies: new BodyBudget({ maxMessageBytes, callerOf }),
    maxWaitMs: config.limits.requestTimeoutMs,
    clock: parts.deps.clock,
  };
  const shared = { ...parts, bodies, forwardHeaders: config.remote.forwardHeaders };
  const prefix = baseUrl === undefined ? '' : baseUrl.pathname.replace(/\/$/, '');
  const publicUrl = createPublicUrl({ baseUrl, scheme: config.listen.tls === undefined ? 'http' : 'https' });
  const streamableUrl = (request: IncomingMessage) => publicUrl(path, request);
  const sse = new HttpSseEndpoint({ ...shared, announcedMessagePath: `${prefix}${messagePath}`, streamableUrl });
  const { pollAfterMs } = config.sessions;
  const endpoint = new McpEndpoint({
    sessions: new StreamableEndpoint({ ...shared, pollAfterMs, maxStreams, maxReplayBytes }),
    stateless: new StatelessEndpoint(shared),
    bodies,
    openWithoutSession: httpSse === 'served' ? sse.openStream : undefined,
  });
  const streamable = [path, endpoint.route] as const;
  const pages = browserPages(endpointsOf(config.endpoints), publicUrl);
  if (httpSse === 'off') {
    const refusal = refuseHttpSse(streamableUrl);
    const refusedPaths = [ssePath, messagePath].filter((refused) => refused !== path);
    return {
      routes: new Map([streamable]),
      browserPages: pages,
      publicRoutes: new Map(refusedPaths.map((refused) => [refused, refusal])),
    };
  }
  return {
    routes: new Map([streamable, [ssePath, sse.openStream], [messagePath, sse.takeMessage]]),
    browserPages: pages,
    publicRoutes: new Map(),
  };
}

function endpointsOf({ path, ssePath, httpSse }: EndpointConfig): readonly Endpoint[] {
  const streamable = { transport: 'Streamable HTTP', path };
  return httpSse === 'off' ? [streamable] : [streamable, { transport: 'HTTP+SSE', path: ssePath }];
}

/** Where clients find it, for people. */
export function createUrls(config: Config, port: number): RunningBridge['urls'] {
  const { baseUrl } = config.endpoints;
  const { host, tls } = config.listen;
  const scheme = tls === undefined ? 'http' : 'https';
  const own = `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const base = baseUrl === undefined ? own : baseUrl.href.replace(/\/$/, '');
  return [
    ...endpointsOf(config.endpoints).map(({ transport, path }) => ({ label: transport, url: `${base}${path}` })),
    { label: 'Health', url: `${own}/healthz` },
    { label: 'Readiness', url: `${own}/readyz` },
  ];
}
