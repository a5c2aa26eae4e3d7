import type { Config } from '../config.ts';
import type { HttpRoute } from '../downstream/http-server.ts';
import { HttpSseEndpoint } from '../downstream/http-sse.ts';
import { McpEndpoint } from '../downstream/mcp-endpoint.ts';
import { StreamableEndpoint, type StreamableEndpointOptions } from '../downstream/streamable-session/endpoint.ts';
import { StatelessEndpoint } from '../downstream/streamable-stateless/endpoint.ts';
import { BodyBudget } from '../http/body-budget.ts';
import type { CallRegistry } from '../relay/call-registry.ts';
import type { RunningBridge } from './running-bridge.ts';

export interface EndpointParts
  extends Pick<StreamableEndpointOptions, 'deps' | 'sessions' | 'live' | 'principalOf' | 'environmentOf'> {
  readonly calls: CallRegistry;
}

/** What is served where, to those who may come in. */
export function createRoutes(config: Config, parts: EndpointParts): ReadonlyMap<string, HttpRoute> {
  const { path, ssePath, messagePath, baseUrl } = config.endpoints;
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
  const httpSse = new HttpSseEndpoint({ ...shared, announcedMessagePath: `${prefix}${messagePath}` });
  const { pollAfterMs } = config.sessions;
  const endpoint = new McpEndpoint({
    sessions: new StreamableEndpoint({ ...shared, pollAfterMs, maxStreams, maxReplayBytes }),
    stateless: new StatelessEndpoint(shared),
    bodies,
    openWithoutSession: httpSse.openStream,
  });
  return new Map([
    [path, endpoint.route],
    [ssePath, httpSse.openStream],
    [messagePath, httpSse.takeMessage],
  ]);
}

/** Where clients find it, for people. */
export function createUrls(config: Config, port: number): RunningBridge['urls'] {
  const { baseUrl, path, ssePath } = config.endpoints;
  const { host, tls } = config.listen;
  const scheme = tls === undefined ? 'http' : 'https';
  const own = `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const base = baseUrl === undefined ? own : baseUrl.href.replace(/\/$/, '');
  return [
    { label: 'Streamable HTTP', url: `${base}${path}` },
    { label: 'HTTP+SSE', url: `${base}${ssePath}` },
    { label: 'Health', url: `${own}/healthz` },
    { label: 'Readiness', url: `${own}/readyz` },
  ];
}
