import type { ServerResponse } from 'node:http';
import { SharedCapacity } from '../collections/shared-capacity.ts';
import type { ClusterConfig } from '../config/cluster.ts';
import type { BoundAddress, HttpListenerConfig, TcpAddress } from '../config/listener.ts';
import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import { StreamListener } from '../downstream/byte-stream/listener.ts';
import type { GrpcListener } from '../downstream/grpc/listener.ts';
import { answerStrayClient } from '../downstream/stdio/stray-client.ts';
import { SHUTTING_DOWN } from '../errors.ts';
import { CertificateFiles } from '../http/server/certificate-files.ts';
import { wordsOfStreams } from '../http/server/listen.ts';
import type { Inspection } from '../observe/inspection.ts';
import { CallCapacity } from '../relay/calls.ts';
import type { Replica } from '../replicas/replica.ts';
import { VERSION } from '../version.ts';
import { describeCallers } from './caller-policy.ts';
import { createAuthentication } from './create-authentication.ts';
import { baseOf, createGrpcUrls, createStreamUrls, createUrls } from './create-routes.ts';
import { createDial } from './dial-server.ts';
import type { GrpcListenerParts } from './grpc-listener.ts';
import { Guards } from './guards.ts';
import { type HostRequest, type HostRequestParts, handleOfHost, isServedHere } from './host-request.ts';
import { HttpListener } from './http-listener.ts';
import { createObservation, type Observation } from './observing/observation.ts';
import { createLooking } from './observing/status.ts';
import type { BridgeDeps, RunningBridge } from './running-bridge.ts';
import type { ServerList } from './server-list.ts';

/** The mount point at the host application's server. */
export type HostPlace = Pick<HostRequestParts, 'prefix' | 'arrival'>;

/**
 * A bridge for clients of every era, which arrive at its own addresses, through the host application's server, or both.
 */
export interface HttpBridge extends RunningBridge {
  /** Resolves once connections are accepted; rejects with ERR_CONFIG_LISTEN. Called once at most. */
  listen(): Promise<void>;
  /**
   * Serves a request that arrived at the host application's server.
   * @returns false: nothing is served at that path, and neither the request nor the response was touched
   */
  handle(request: HostRequest, response: ServerResponse, place: HostPlace): boolean;
  /** Returns true if `handle` would serve the request. */
  isServed(request: HostRequest, place: HostPlace): boolean;
  inspect(): Inspection;
}

/** Runs `mcp-portage serve`: clients of every era, over HTTP and on byte streams. */
export async function serveHttp(
  listener: HttpListenerConfig,
  config: Config,
  deps: BridgeDeps,
): Promise<RunningBridge> {
  const bridge = await createHttpBridge(listener, config, deps);
  try {
    await bridge.listen();
  } catch (error) {
    await bridge.shutdown('SIGTERM');
    throw error;
  }
  if (deps.strayClient !== undefined) answerStrayClient(deps.strayClient, deps.log);
  return bridge;
}

/** Creates the bridge without listening, so no client can connect yet. Rejects if the only server cannot be used. */
export async function createHttpBridge(
  listener: HttpListenerConfig,
  config: Config,
  deps: BridgeDeps,
): Promise<HttpBridge> {
  const { shutdownGraceMs } = config.limits;
  const certificate = listener.tls && new CertificateFiles({ ...listener.tls, log: deps.log, clock: deps.clock });
  const authentication = await createAuthentication(listener, deps);
  const capacity = {
    children: new SharedCapacity(config.limits.maxChildren),
    calls: new CallCapacity(config.limits.maxInFlight),
  };
  const { observation: observed } = config;
  const inspect = (): Inspection => inspectAll();
  const replica = config.cluster && (await joinReplicas(config.cluster, deps));
  const observation = await observe({ listener, config: observed, inspect, replica, deps });
  const { routes: looking, onRefused } = observation;
  // Chosen at the first use, since loading the random generator takes a tenth of a start.
  let ownMark: string | undefined;
  const ownMarks = (): readonly [string, ...string[]] => {
    if (replica !== undefined) return replica.marks;
    ownMark ??= deps.randomId();
    return [ownMark];
  };
  const guards = new Guards(deps);
  let bound: readonly BoundAddress[] = [];
  let boundStreams: readonly BoundAddress[] = [];
  let boundGrpc: readonly TcpAddress[] = [];
  const allBound = (): readonly BoundAddress[] => [...bound, ...boundStreams, ...boundGrpc];
  const dial = createDial({
    callersOf: (server) => describeCallers(listener, server),
    ownMarks,
    bound: allBound,
    capacity,
    guards,
    observation,
    replica,
    shutdownGraceMs,
    urgency: undefined,
    waits: 'callers',
    memberTokens: { note: (token) => servers.noteToken(token), areOptional: true },
    // The list is created with this function.
    members: {
      get all() {
        return servers.members.all;
      },
      onChange: (changed) => servers.members.onChange(changed),
    },
  });
  const http = new HttpListener({
    listener,
    ownMarks,
    dial,
    authentication,
    certificate,
    looking,
    replica,
    onRefused,
    deps,
  });
  const { servers } = http;
  servers.update(config.servers);
  const tellWhatIsServed = (): void => {
    observation.serves(servers.served);
    replica?.usage?.table.serve(servers.served);
  };
  tellWhatIsServed();
  const streams = listenForStreams(listener, servers, deps);
  const grpc =
    listener.grpc.length === 0 ? undefined : await listenForGrpc({ listener, servers, ownMarks, onRefused, deps });
  const startedAtMs = deps.wallClock();
  const inspectAll = (): Inspection => ({
    startedAtMs,
    version: VERSION,
    servers: servers.inspect((path) => `${baseOf(listener, bound)}${path}`),
    openCalls: capacity.calls.slots.taken,
    maxOpenCalls: capacity.calls.slots.total,
    processes: capacity.children.taken,
    maxProcesses: capacity.children.total,
    connections: http.http.connections,
    unsentBytes: http.live.unsentBytes,
  });
  try {
    // A problem with the only server is reported now, not to the first client. The aggregate has none of its own.
    if (servers.unnamed?.config.target.kind !== 'aggregate') await servers.unnamed?.start();
  } catch (error) {
    http.close();
    await servers.close(SHUTTING_DOWN);
    await replica?.close();
    await observation.close();
    throw error;
  }
  let list = config.servers;
  return {
    get urls() {
      return [
        ...createUrls(listener, list, bound),
        ...createStreamUrls(listener, list, boundStreams),
        ...createGrpcUrls(listener, list, boundGrpc),
      ];
    },
    get servers() {
      return servers.inspect((path) => `${baseOf(listener, bound)}${path}`).map(({ name, url }) => ({ name, url }));
    },
    get statusUrl() {
      return bound.length > 0 && looking.has('/status') ? `${baseOf(listener, bound)}/status` : undefined;
    },
    async listen() {
      bound = await http.http.listen();
      boundStreams = await streams.listen();
      boundGrpc = (await grpc?.listen()) ?? [];
      await servers.callHubs();
    },
    handle: (request, response, place) =>
      handleOfHost(request, response, { ...place, listener, http: http.http, servers }),
    isServed: (request, { prefix }) => isServedHere(request, { prefix, servers }),
    inspect,
    update(newer) {
      list = newer;
      const change = servers.update(newer);
      tellWhatIsServed();
      return change;
    },
    reopen: () => observation.reopen(),
    async shutdown() {
      observation.endWatching();
      streams.stopAccepting();
      grpc?.stopAccepting();
      await drain(http, replica, shutdownGraceMs);
      await servers.close(SHUTTING_DOWN);
      await guards.close();
      await replica?.close();
      http.close();
      streams.close();
      grpc?.close();
      authentication.close();
      await observation.close();
    },
    killNow() {
      servers.killNow();
      http.http.removeSocketFiles();
      streams.removeSocketFiles();
    },
    ended: Promise.race([http.http.failed, streams.failed, ...(grpc === undefined ? [] : [grpc.failed])]),
  };
}

interface ObserveParts {
  readonly listener: HttpListenerConfig;
  readonly config: Config['observation'];
  readonly inspect: () => Inspection;
  readonly replica: Replica | undefined;
  readonly deps: BridgeDeps;
}

async function observe({ listener, config, inspect, replica, deps }: ObserveParts): Promise<Observation> {
  try {
    const shared = config.usage === undefined ? undefined : replica?.shareUsage();
    const observers = shared === undefined ? deps.observers : [...deps.observers, shared.table];
    return await createObservation({
      config,
      clients: 'several',
      sunset: listener.endpoints.sunset,
      look: (counted, feed) => createLooking({ config, listener, inspect, replica, deps }, counted, feed),
      deps: { ...deps, observers },
    });
  } catch (thrown) {
    await replica?.close();
    throw thrown;
  }
}

/** Loads and joins the replicas. Without other replicas, nothing of them is loaded. */
async function joinReplicas(config: ClusterConfig, deps: Deps): Promise<Replica> {
  const { Replica } = await import('../replicas/replica.ts');
  return Replica.join(config, deps);
}

/** Resolves when open calls have ended or the grace time is over, and other replicas have what they can continue. */
async function drain(http: HttpListener, replica: Replica | undefined, graceMs: number): Promise<void> {
  if (replica === undefined) return http.drain(graceMs);
  http.announceEnd();
  // Requests that this replica passes on are not calls of its own, but their clients wait for them all the same.
  await replica.drain(graceMs, () => Promise.all([http.drain(graceMs), http.http.answered(graceMs)]));
}

function listenForStreams(
  { streams, tls, spelling }: HttpListenerConfig,
  servers: ServerList,
  deps: Deps,
): StreamListener {
  const isEncrypted = tls !== undefined && streams.some(({ address }) => address.kind === 'tcp');
  return new StreamListener({
    places: streams.map(({ address, segment }) => ({
      address,
      accept: (socket, reach) => servers.takeStream(segment, socket, reach),
    })),
    // A renewed certificate is reported only once, so each listener needs its own source.
    certificate: isEncrypted ? new CertificateFiles({ ...tls, log: deps.log, clock: deps.clock }) : undefined,
    deps,
    words: wordsOfStreams(spelling),
  });
}

/** Loaded on demand: Node's HTTP/2 alone takes a fifth of a start. */
async function listenForGrpc(parts: GrpcListenerParts): Promise<GrpcListener> {
  const { createGrpcListener } = await import('./grpc-listener.ts');
  return createGrpcListener(parts);
}
