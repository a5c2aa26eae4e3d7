import { QueueSizes } from '../collections/queue-sizes.ts';
import type { SharedCapacity } from '../collections/shared-capacity.ts';
import type { RemoteConfig } from '../config/remote.ts';
import type { ServerConfig } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import { principalOf } from '../http/auth/callers.ts';
import { BRIDGE_MARK_HEADER } from '../http/headers.ts';
import { BodyCapacity } from '../http/server/read-body.ts';
import { type CallCapacity, Calls } from '../relay/calls.ts';
import { ServerSpeech } from '../relay/observer.ts';
import type { Replica } from '../replicas/replica.ts';
import { ChildLimit } from '../upstream/stdio/child-limit.ts';
import { areKeptApart, type CallerPolicy, haveNames } from './caller-policy.ts';
import { createCallerTokens, createDialers, nameServer, type ServerToDial } from './create-dialer.ts';
import type { CallerTokens } from './create-routes.ts';
import { createToolView } from './create-tool-view.ts';
import type { Guards } from './guards.ts';
import type { Observation } from './observing/observation.ts';
import type { DialedServer } from './served-server.ts';

/** The parts that all servers of a bridge are dialed with. */
export interface DialParts extends Pick<ServerToDial, 'bound' | 'urgency' | 'waits' | 'members'> {
  readonly callersOf: (server: ServerConfig) => CallerPolicy;
  /** The first mark is sent with every request to a server at a URL; undefined for a bridge that does not listen. */
  readonly ownMarks: (() => readonly [string, ...string[]]) | undefined;
  /** Capacity that all servers share. */
  readonly capacity: { readonly children: SharedCapacity; readonly calls: CallCapacity };
  readonly observation: Pick<Observation, 'observer' | 'tracer' | 'refusal' | 'observeServer' | 'tapsOf'>;
  readonly guards: Guards;
  readonly replica: Replica | undefined;
  /** Takes note of the tokens that callers of the aggregate show; undefined for a bridge whose clients show none. */
  readonly memberTokens: CallerTokens | undefined;
  readonly shutdownGraceMs: number;
}

/** Creates the dialers of a server, without starting a process or a connection. */
export type DialServer = (server: ServerConfig, deps: Deps) => Promise<DialedServer>;

/** Returns a function that dials a server. Each server gets a share of the process's capacity that no other can take. */
export function createDial({
  callersOf,
  ownMarks,
  capacity: { children, calls },
  observation,
  guards,
  replica,
  memberTokens,
  ...parts
}: DialParts): DialServer {
  const { observer, tracer, refusal, observeServer, tapsOf } = observation;
  /** Created with the first server, as all have the same limit of a message. */
  let bodyCapacity: BodyCapacity | undefined;
  const openShared = replica && ((name: string) => replica.openShared(name));
  return async (server: ServerConfig, deps: Deps): Promise<DialedServer> => {
    const callers = callersOf(server);
    // The aggregate starts no processes, and would only take its share from its members.
    const childShare = server.target.kind === 'aggregate' ? undefined : children.share();
    const { close: closeCalls, ...callShare } = calls.share();
    bodyCapacity ??= new BodyCapacity(server.limits.maxMessageBytes);
    const bodies = bodyCapacity.share(callers.names === 'several' ? principalOf : undefined);
    const name = nameServer(server);
    const observing = { observer, tracer, speech: new ServerSpeech(), server: name, taps: tapsOf?.(name) };
    const serverObserver = observeServer?.(name);
    const replicated = replica?.addServer({
      name,
      config: server,
      callers: { areKeptApart: areKeptApart(callers, server.sessions), haveNames: haveNames(callers) },
      speech: observing.speech,
      children: () => childLimit,
      deps,
    });
    const giveBack = (): void => {
      replicated?.close();
      childShare?.close();
      closeCalls();
      bodies.close();
    };
    const queues = new QueueSizes();
    queues.add(() => [{ queue: 'request_bodies', items: undefined, bytes: bodies.bytes }]);
    const childLimit = new ChildLimit(server.limits.maxChildren, childShare, replicated?.processes);
    try {
      await replicated?.processes?.beforeFirst(1 + server.sessions.prewarm);
      const callerTokens = await createCallerTokens(server, deps);
      const dialers = await createDialers(
        {
          ...parts,
          ...server,
          callerTokens,
          remote:
            server.target.kind === 'url' ||
            server.target.kind === 'stream' ||
            server.target.kind === 'grpc' ||
            server.target.kind === 'mqtt'
              ? markRequests(server.remote, ownMarks?.()[0])
              : server.remote,
          callers,
          children: childLimit,
          observing,
          createGuard: await guards.of(server, deps),
          serverObserver,
          queues,
          openShared,
          outcomes: replicated?.state.outcomes,
        },
        deps,
      );
      return {
        sessionDialers: dialers,
        callDialers: dialers,
        callerTokens: server.target.kind === 'aggregate' && server.remote.exchange ? memberTokens : callerTokens,
        calls: new Calls({
          clock: deps.clock,
          ...callShare,
          ...observing,
          tools: createToolView(server, deps),
          maxResultBytes: server.limits.maxResultBytes,
          refusal,
          serverObserver,
        }),
        ownMarks: () => ownMarks?.() ?? [],
        bodies,
        processes: childLimit,
        replicated,
        queues,
        close: () => dialers.close().finally(giveBack),
      };
    } catch (thrown) {
      giveBack();
      throw thrown;
    }
  };
}

function markRequests(remote: RemoteConfig, mark: string | undefined): RemoteConfig {
  if (mark === undefined) return remote;
  return { ...remote, headers: new Map([...remote.headers, [BRIDGE_MARK_HEADER, mark]]) };
}
