import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import { healthRoutes } from '../downstream/listener/health.ts';
import { HttpServer, SOCKET_LIMITS } from '../downstream/listener/http-server.ts';
import { LiveStreams } from '../downstream/stream/live-streams.ts';
import { SHUTTING_DOWN } from '../errors.ts';
import { AccessPolicy } from '../http/server/access-policy.ts';
import { CertificateFiles } from '../http/server/certificate-files.ts';
import { OpenCalls } from '../relay/open-calls.ts';
import type { Readiness } from '../relay/ports.ts';
import { createAdmission } from './create-admission.ts';
import { createDialer } from './create-dialer.ts';
import { createCalls, createSessions } from './create-registries.ts';
import { createRoutes, createUrls } from './create-routes.ts';
import type { RunningBridge } from './running-bridge.ts';

/** `mcp-portage serve`: clients of every era on one port. */
export async function serveHttp(config: Config, deps: Deps): Promise<RunningBridge> {
  const { tls } = config.listen;
  const certificate = tls && new CertificateFiles({ ...tls, log: deps.log, clock: deps.clock });
  const dialer = await createDialer(config, deps);
  const openCalls = new OpenCalls(config.limits.maxInFlight);
  const sessions = createSessions(config, { dialer, openCalls, deps });
  const calls = createCalls(config, { dialer, openCalls, deps });
  const live = new LiveStreams(deps.clock);
  let isDraining = false;
  const admission = await createAdmission(config, deps);
  const { principalOf, environmentOf } = admission.callers;
  const readiness = (): Readiness => (isDraining ? { ready: false, error: SHUTTING_DOWN } : dialer.readiness());
  const routes = createRoutes(config, { deps, sessions, calls, live, principalOf, environmentOf });
  const server = new HttpServer({
    host: config.listen.host,
    port: config.listen.port,
    certificate,
    socketLimits: { ...SOCKET_LIMITS, maxHeaderBytes: config.limits.maxHeaderBytes },
    access: new AccessPolicy({ host: config.listen.host, ...config.access }),
    callers: admission.callers,
    openRoutes: healthRoutes({ readiness, hasCapacity: () => sessions.hasCapacity }),
    ...routes,
    publicRoutes: new Map([...admission.publicRoutes, ...routes.publicRoutes]),
    deps,
  });
  let port: number;
  try {
    port = await server.listen();
  } catch (error) {
    await dialer.close();
    throw error;
  }
  return {
    urls: createUrls(config, port),
    async shutdown() {
      isDraining = true;
      server.stopAccepting();
      const { shutdownGraceMs } = config.limits;
      await Promise.all([sessions.drain(shutdownGraceMs), calls.drain(shutdownGraceMs)]);
      sessions.close(SHUTTING_DOWN);
      calls.close(SHUTTING_DOWN);
      await dialer.close();
      live.close();
      server.close();
      admission.close();
    },
    killNow: () => dialer.killNow(),
    ended: server.failed,
  };
}
