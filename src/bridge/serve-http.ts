import type { Config, HttpListenerConfig } from '../config.ts';
import type { Deps } from '../deps.ts';
import { SHUTTING_DOWN } from '../errors.ts';
import { CertificateFiles } from '../http/server/certificate-files.ts';
import { Exchanges } from '../relay/exchanges.ts';
import { ChildLimit } from '../upstream/stdio/child-limit.ts';
import { describeCallers } from './caller-policy.ts';
import { createAuthentication } from './create-authentication.ts';
import { createDialers } from './create-dialer.ts';
import { createUrls } from './create-routes.ts';
import { HttpListener } from './http-listener.ts';
import type { RunningBridge } from './running-bridge.ts';

/** `mcp-portage serve`: clients of every era on one port. */
export async function serveHttp(listener: HttpListenerConfig, config: Config, deps: Deps): Promise<RunningBridge> {
  const { servers, limits } = config;
  const { shutdownGraceMs } = limits;
  const certificate = listener.tls && new CertificateFiles({ ...listener.tls, log: deps.log, clock: deps.clock });
  const children = new ChildLimit(limits.maxChildren);
  const dialers = await Promise.all(
    servers.map((server) => {
      const callers = describeCallers(listener, server);
      return createDialers({ ...server, callers, children, shutdownGraceMs, urgency: NEVER }, deps);
    }),
  );
  const closeDialers = () => Promise.all(dialers.map((dialer) => dialer.close()));
  const authentication = await createAuthentication(listener, deps);
  const http = new HttpListener({
    listener,
    servers: servers.map((server, index) => {
      const dialer = dialers[index] as (typeof dialers)[number];
      return { config: server, sessionDialers: dialer, callDialers: dialer };
    }),
    exchanges: new Exchanges({ clock: deps.clock, maxOpen: limits.maxInFlight, observer: undefined }),
    authentication,
    certificate,
    deps,
  });
  let port: number;
  try {
    port = await http.http.listen();
  } catch (error) {
    await closeDialers();
    throw error;
  }
  return {
    urls: createUrls(listener, port),
    async shutdown() {
      await http.drain(shutdownGraceMs);
      http.endAll(SHUTTING_DOWN);
      await closeDialers();
      http.close();
      authentication.close();
    },
    killNow() {
      for (const dialer of dialers) dialer.killNow();
    },
    ended: http.http.failed,
  };
}

/** A listener is told to end in good time: its processes end by themselves. */
const NEVER = new AbortController().signal;
