import { SharedCapacity } from '../collections/shared-capacity.ts';
import type { Config, HttpListenerConfig, ServerConfig } from '../config.ts';
import type { Deps } from '../deps.ts';
import { BridgeError, SHUTTING_DOWN } from '../errors.ts';
import { CertificateFiles } from '../http/server/certificate-files.ts';
import type { Inspection } from '../observe/inspection.ts';
import { ExchangeCapacity, Exchanges } from '../relay/exchanges.ts';
import { ServerSpeech } from '../relay/observer.ts';
import { ChildLimit } from '../upstream/stdio/child-limit.ts';
import { VERSION } from '../version.ts';
import { describeCallers } from './caller-policy.ts';
import { Membership } from './cluster/membership.ts';
import { createAuthentication } from './create-authentication.ts';
import { createDialers, nameServer } from './create-dialer.ts';
import { baseOf, createUrls } from './create-routes.ts';
import { HttpListener } from './http-listener.ts';
import { createObservation, type Observation } from './observing/observation.ts';
import { createLooking } from './observing/status.ts';
import type { RunningBridge } from './running-bridge.ts';
import type { DialledServer } from './served-server.ts';

/** `mcp-portage serve`: clients of every era on one port. */
export async function serveHttp(listener: HttpListenerConfig, config: Config, deps: Deps): Promise<RunningBridge> {
  const { shutdownGraceMs } = config.limits;
  const certificate = listener.tls && new CertificateFiles({ ...listener.tls, log: deps.log, clock: deps.clock });
  const authentication = await createAuthentication(listener, deps);
  const capacity = {
    children: new SharedCapacity(config.limits.maxChildren),
    calls: new ExchangeCapacity(config.limits.maxInFlight),
  };
  const { observation: observed } = config;
  const inspect = (): Inspection => inspectAll();
  const observation = await createObservation({
    config: observed,
    clients: 'several',
    look: (counted) => createLooking({ config: observed, listener, inspect, deps }, counted),
    deps,
  });
  const dial = createDial(listener, { capacity, observation, shutdownGraceMs });
  const looking = observation.routes;
  const membership = config.cluster && (await Membership.join(config.cluster, deps));
  const http = new HttpListener({ listener, dial, authentication, certificate, looking, membership, deps });
  const { servers } = http;
  servers.update(config.servers);
  observation.serves(servers.served);
  let port = 0;
  const startedAtMs = Date.now();
  const inspectAll = (): Inspection => ({
    startedAtMs,
    version: VERSION,
    servers: servers.inspect((path) => `${baseOf(listener, port)}${path}`),
    openCalls: capacity.calls.calls.taken,
    maxOpenCalls: capacity.calls.calls.total,
    processes: capacity.children.taken,
    maxProcesses: capacity.children.total,
  });
  try {
    // What is wrong with the only server is told now, and not to the first client.
    await servers.unnamed?.start();
    port = await http.http.listen();
  } catch (error) {
    await servers.close();
    await membership?.leave();
    await observation.close();
    throw error;
  }
  let list = config.servers;
  return {
    get urls() {
      return createUrls(listener, list, port);
    },
    update(newer) {
      list = newer;
      const change = servers.update(newer);
      observation.serves(servers.served);
      return change;
    },
    reopen: () => observation.reopen(),
    async shutdown() {
      observation.endWatching();
      if (membership === undefined) await http.drain(shutdownGraceMs);
      else await leaveCluster(membership, http, { graceMs: shutdownGraceMs, clock: deps.clock });
      servers.endAll(SHUTTING_DOWN);
      await servers.close();
      await membership?.leave();
      http.close();
      authentication.close();
      await observation.close();
    },
    killNow: () => servers.killNow(),
    ended: http.http.failed,
  };
}

/**
 * For as long as a load balancer needs to see that this replica is not ready any more: meanwhile it serves whoever is still
 * sent here.
 */
const NOTICE_MS = 1000;

async function leaveCluster(
  membership: Membership,
  http: HttpListener,
  { graceMs, clock }: { readonly graceMs: number; readonly clock: Deps['clock'] },
): Promise<void> {
  http.servers.beginEnding();
  await new Promise<void>((resolve) => clock.after(Math.min(NOTICE_MS, graceMs / 2), resolve));
  membership.beginLeaving();
  await Promise.all([http.drain(graceMs), http.servers.handOver(graceMs, HANDED_OVER)]);
  // Some may have been opened meanwhile.
  await http.servers.handOver(0, HANDED_OVER);
}

interface DialParts {
  /** What all servers share. */
  readonly capacity: { readonly children: SharedCapacity; readonly calls: ExchangeCapacity };
  readonly observation: Pick<Observation, 'observer' | 'refusal'>;
  readonly shutdownGraceMs: number;
}

/** How a server is dialled. Each has its part of what the process may hold, which no other takes. */
function createDial(
  listener: HttpListenerConfig,
  { capacity: { children, calls }, observation, shutdownGraceMs }: DialParts,
) {
  const { observer, refusal } = observation;
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
        exchanges: new Exchanges({ clock: deps.clock, ...callShare, ...observing, refusal }),
        processes: childLimit,
        close: () => dialers.close().finally(giveBack),
      };
    } catch (thrown) {
      giveBack();
      throw thrown;
    }
  };
}

const HANDED_OVER = new BridgeError(
  'ERR_SESSION_CLOSED',
  'This replica is shutting down; the session goes on at another.',
);
/** A listener is told to end in good time: its processes end by themselves. */
const NEVER = new AbortController().signal;
