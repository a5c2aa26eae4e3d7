import type { Inspect, InspectedServer } from '../inspection.ts';
import type { Activity } from './activity.ts';
import type { Refusals } from './refusals.ts';
import { type ServerDetail, STATUS_SHAPE, type StatusDocument, toSpeech, type UsageStatus } from './status-document.ts';

export interface StatusSources {
  /** Address at which other replicas reach this one; absent: there are none. */
  readonly ownAddress?: string | undefined;
  readonly inspect: Inspect;
  /** True if messages can be read live. */
  readonly isInspecting?: boolean;
  readonly activity: Activity;
  readonly refusals: Pick<Refusals, 'report'>;
  /** Returns a summary of the migration report; undefined: no usage is recorded. */
  readonly usage: (() => UsageStatus) | undefined;
  /** The hosts that `snippets` knows. */
  readonly hosts: readonly string[];
  /** Returns the configuration for a host; undefined: the host cannot use this server. */
  readonly snippets: (host: string, server: InspectedServer) => string | undefined;
}

export type Status = () => StatusDocument;
/** Returns what is known of a server beyond its figures. */
export type DetailOf = (server: string) => ServerDetail;

export function createStatus(sources: StatusSources): Status {
  const { ownAddress, inspect, isInspecting = false, activity, refusals, usage, hosts, snippets } = sources;
  const replicas: StatusDocument['replicas'] =
    ownAddress === undefined ? null : [{ address: ownAddress, state: 'shown', problem: null }];
  return () => {
    const { startedAtMs, version, servers, openCalls, maxOpenCalls, processes, maxProcesses } = inspect();
    const seen = activity.report();
    return {
      shape: STATUS_SHAPE,
      atMs: seen.atMs,
      inspect: isInspecting,
      replicas,
      bridge: { version, startedAtMs, openCalls, maxOpenCalls, processes, maxProcesses },
      servers: servers.map((server) => ({
        name: server.name,
        url: server.url,
        sseUrl: server.sseUrl ?? null,
        sseSunset: server.sunset ?? null,
        wsUrl: server.wsUrl ?? null,
        hubs: server.hubs.map(({ url, state, problem }) => ({ url, state, problem: problem ?? null })),
        kind: server.kind,
        state: server.state,
        sinceMs: server.sinceMs ?? null,
        problem: server.problem ?? null,
        speaks: toSpeech(server.verdicts[0]),
        sessions: server.sessions,
        openCalls: server.openCalls,
        processes: server.processes,
        restarts: server.restarts,
        ...seen.ofServer(server.name),
      })),
      clients: seen.clients,
      moreClients: seen.moreClients,
      calls: seen.calls,
      refused: refusals.report(),
      usage: usage?.() ?? null,
      snippets: servers.flatMap((server) =>
        hosts.flatMap((host) => {
          const text = snippets(host, server);
          return text === undefined ? [] : [{ host, server: server.name, text }];
        }),
      ),
      detail: null,
    };
  };
}

/**
 * Adds the detail of a server to a document.
 *
 * @param asked name of the server; undefined: the only one, if there is only one
 */
export function withDetail(document: StatusDocument, detailOf: DetailOf, asked: string | undefined): StatusDocument {
  return { ...document, detail: findDetail(document, detailOf, asked) };
}

/** Returns null for a server that is not served now. */
export function findDetail(
  { servers }: StatusDocument,
  detailOf: DetailOf,
  asked: string | undefined,
): ServerDetail | null {
  const server = servers.length === 1 && asked === undefined ? servers[0] : servers.find(({ name }) => name === asked);
  return server === undefined ? null : detailOf(server.name);
}
