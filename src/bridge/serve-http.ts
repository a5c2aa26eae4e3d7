import { SharedCapacity } from '../collections/shared-capacity.ts';
import type { Config, HttpListenerConfig, ServerConfig } from '../config.ts';
import type { Deps } from '../deps.ts';
import { SHUTTING_DOWN } from '../errors.ts';
import { CertificateFiles } from '../http/server/certificate-files.ts';
import { ExchangeCapacity, Exchanges } from '../relay/exchanges.ts';
import { type Observer, ServerSpeech } from '../relay/observer.ts';
import { ChildLimit } from '../upstream/stdio/child-limit.ts';
import { describeCallers } from './caller-policy.ts';
import { createAuthentication } from './create-authentication.ts';
import { createDialers, nameServer } from './create-dialer.ts';
import { createUrls } from './create-routes.ts';
import { HttpListener } from './http-listener.ts';
import type { RunningBridge } from './running-bridge.ts';
import type { DialledServer } from './served-server.ts';

/** `mcp-portage serve`: clients of every era on one port. */
export async function serveHttp(listener: HttpListenerConfig, config: Config, deps: Deps): Promise<RunningBridge> {
  const { shutdownGraceMs } = config.limits;
  const certificate = listener.tls && new CertificateFiles({ ...listener.tls, log: deps.log, clock: deps.clock });
  const authentication = await createAuthentication(listener, deps);
  const dial = createDial(listener, config.limits, undefined);
  const http = new HttpListener({ listener, dial, authentication, certificate, deps });
  const { servers } = http;
  servers.update(config.servers);
  let port: number;
  try {
    // What is wrong with the only server is told now, and not to the first client.
    await servers.unnamed?.start();
    port = await http.http.listen();
  } catch (error) {
    await servers.close();
    throw error;
  }
  let list = config.servers;
  return {
    get urls() {
      return createUrls(listener, list, port);
    },
    update(newer) {
      list = newer;
      return servers.update(newer);
    },
    async shutdown() {
      await http.drain(shutdownGraceMs);
      servers.endAll(SHUTTING_DOWN);
      await servers.close();
      http.close();
      authentication.close();
    },
    killNow: () => servers.killNow(),
    ended: http.http.failed,
  };
}

/** How a server is dialled. Each has its part of what the process may hold, which no other takes. */
function createDial(listener: HttpListenerConfig, limits: Config['limits'], observer: Observer | undefined) {
  const children = new SharedCapacity(limits.maxChildren);
  const calls = new ExchangeCapacity(limits.maxInFlight);
  const { shutdownGraceMs } = limits;
  return async (server: ServerConfig, deps: Deps): Promise<DialledServer> => {
    const callers = describeCallers(listener, server);
    const childShare = children.share();
    const { close: closeCalls, ...callShare } = calls.share();
    const giveBack = (): void => {
      childShare.close();
      closeCalls();
    };
    const observing = { observer, speech: new ServerSpeech(), server: nameServer(server) };
    const childLimit = new ChildLimit(server.limits.maxChildren, childShare);
    try {
      const dialers = await createDialers(
        { ...server, callers, children: childLimit, shutdownGraceMs, urgency: NEVER, observing },
        deps,
      );
      return {
        sessionDialers: dialers,
        callDialers: dialers,
        exchanges: new Exchanges({ clock: deps.clock, ...callShare, ...observing }),
        close: () => dialers.close().finally(giveBack),
      };
    } catch (thrown) {
      giveBack();
      throw thrown;
    }
  };
}

/** A listener is told to end in good time: its processes end by themselves. */
const NEVER = new AbortController().signal;
