import { DEPRECATIONS, type DeprecationName } from '../../mcp/vocabulary/deprecations.ts';
import { eraOf } from '../../mcp/vocabulary/revisions.ts';
import type { Transport } from '../../relay/observer.ts';
import { LATENCY_BUCKETS, quantileMs } from '../latency.ts';
import { type DeprecatedUse, dayOf, isoOf, type UsageClient, type UsageRow, type UsageServer } from './usage.ts';

export interface ReportRow {
  readonly client: UsageClient;
  readonly server: UsageServer;
  /** Number of sessions, those included that were open at the start of the report's time. */
  readonly sessions: number;
  readonly refused: number;
  readonly calls: number;
  readonly errors: number;
  /** Median duration of the answered calls, off by a fifth at most; undefined: there were none. */
  readonly p50Ms: number | undefined;
  readonly p95Ms: number | undefined;
  readonly requestBytes: number;
  readonly answerBytes: number;
  /** Time of the first use, which may precede the report's time. */
  readonly firstSeen: string;
  readonly lastSeen: string;
  readonly deprecated: readonly RowDeprecation[];
}

/** The use of a deprecated feature by one side. */
export interface RowDeprecation {
  readonly name: DeprecationName;
  /** Side that uses it. */
  readonly side: 'client' | 'server' | 'bridge';
  /** Number of uses since the row was first seen; undefined: a transport or a revision, which every call uses. */
  readonly count: number | undefined;
  readonly lastSeen: string;
}

/**
 * Groups rows that belong together. A client is counted when it connects, at which time the protocol of its server may
 * be unknown. Such an incomplete row joins the row of the same client that agrees with its known members, the latest
 * one if there are several.
 */
export function joinIncomplete(rows: readonly UsageRow[]): readonly (readonly UsageRow[])[] {
  const groups = new Map<UsageRow, UsageRow[]>();
  const [complete, incomplete] = [rows.filter(isComplete), rows.filter((row) => !isComplete(row))];
  for (const row of complete) groups.set(row, [row]);
  for (const row of incomplete) {
    const matching = complete.filter((candidate) => isPartOf(row, candidate));
    const latest = matching.reduce<UsageRow | undefined>(
      (best, candidate) => (best === undefined || candidate.lastSeenMs > best.lastSeenMs ? candidate : best),
      undefined,
    );
    const group = latest === undefined ? undefined : groups.get(latest);
    if (group === undefined) groups.set(row, [row]);
    else group.push(row);
  }
  return [...groups.values()];
}

function isComplete({ client, server }: UsageRow): boolean {
  return client.revision !== undefined && server.transport !== undefined;
}

function isPartOf({ client, server }: UsageRow, whole: UsageRow): boolean {
  const agrees = (part: string | undefined, other: string | undefined): boolean => part === undefined || part === other;
  return (
    client.kind === whole.client.kind &&
    client.name === whole.client.name &&
    client.version === whole.client.version &&
    client.transport === whole.client.transport &&
    server.name === whole.server.name &&
    agrees(client.revision, whole.client.revision) &&
    agrees(server.transport, whole.server.transport) &&
    agrees(server.revision, whole.server.revision)
  );
}

/** Sums up a group of rows. The first row gives the client and the server. */
export function summarize(group: readonly UsageRow[], sinceMs: number): ReportRow {
  const [{ client, server }] = group as readonly [UsageRow];
  const firstDay = dayOf(sinceMs);
  const perRow = group.map(({ days }) => days.filter(({ day }) => day >= firstDay));
  const days = perRow.flat();
  const sum = (name: 'sessions' | 'refused' | 'calls' | 'errors' | 'requestBytes' | 'answerBytes'): number =>
    days.reduce((total, counts) => total + counts[name], 0);
  const carried = perRow.reduce((total, [first]) => total + (first?.carried ?? 0), 0);
  const latency = Array.from({ length: LATENCY_BUCKETS }, (_, bucket) =>
    days.reduce((total, counts) => total + (counts.latency[bucket] ?? 0), 0),
  );
  const lastSeen = isoOf(Math.max(...group.map(({ lastSeenMs }) => lastSeenMs)));
  const uses = group.flatMap(({ deprecated }) => deprecated.filter(({ lastSeenMs }) => lastSeenMs >= sinceMs));
  return {
    client,
    server,
    sessions: carried + sum('sessions'),
    refused: sum('refused'),
    calls: sum('calls'),
    errors: sum('errors'),
    p50Ms: quantileMs(latency, 0.5),
    p95Ms: quantileMs(latency, 0.95),
    requestBytes: sum('requestBytes'),
    answerBytes: sum('answerBytes'),
    firstSeen: isoOf(Math.min(...group.map(({ firstSeenMs }) => firstSeenMs))),
    lastSeen,
    deprecated: DEPRECATIONS.flatMap(({ name }) => deprecationsOf(name, { client, server, lastSeen, uses })),
  };
}

interface Uses {
  readonly client: UsageClient;
  readonly server: UsageServer;
  readonly lastSeen: string;
  readonly uses: readonly DeprecatedUse[];
}

function deprecationsOf(name: DeprecationName, { client, server, lastSeen, uses }: Uses): readonly RowDeprecation[] {
  const always = (isClient: boolean, isServer: boolean): readonly RowDeprecation[] => [
    ...(isClient ? [{ name, side: 'client', count: undefined, lastSeen } as const] : []),
    ...(isServer ? [{ name, side: 'server', count: undefined, lastSeen } as const] : []),
  ];
  switch (name) {
    case 'http-sse':
      return always(isHttpSse(client.transport), isHttpSse(server.transport));
    case 'old-revision':
      return always(isOld(client.revision), isOld(server.revision));
    default: {
      const found = uses.filter(({ feature }) => feature === name);
      if (found.length === 0) return [];
      return [
        {
          name,
          side: client.kind === 'bridge' ? 'bridge' : 'client',
          count: found.reduce((total, { count }) => total + count, 0),
          lastSeen: isoOf(Math.max(...found.map(({ lastSeenMs }) => lastSeenMs))),
        },
      ];
    }
  }
}

function isHttpSse(transport: Transport | undefined): boolean {
  return transport === 'http-sse';
}

function isOld(revision: string | undefined): boolean {
  return revision !== undefined && eraOf(revision) === 'legacy';
}
