/**
 * What `/status.json` says, and what the page and the terminal view show. Programs read it, so its shape is stable:
 * members may be added, and none changes its meaning or goes without a new number in `shape`. Nothing in it is a
 * payload, an argument, a credential, a session id or the name of a caller. Times are milliseconds since the epoch.
 * docs/reference/status-page.md describes it.
 */
import type { ErrorCode } from '../../errors.ts';
import type { Era } from '../../mcp/vocabulary/revisions.ts';
import type { CallOutcome, ObservedServer, Transport } from '../../relay/observer.ts';
import type { InspectedHub, InspectedServer, ServerState } from '../inspection.ts';
import type { CallStatistics, SeriesReport } from './call-series.ts';

export const STATUS_SHAPE = 1;

export interface StatusDocument {
  readonly shape: typeof STATUS_SHAPE;
  readonly atMs: number;
  /** Whose status it is, where the bridge is one of several replicas: of all of them, or of one. Null: there is only one. */
  readonly replicas: readonly ReplicaStatus[] | null;
  readonly bridge: BridgeStatus;
  readonly servers: readonly ServerStatus[];
  /** The latest first; at most 200. */
  readonly clients: readonly ClientStatus[];
  /** How many are connected besides. */
  readonly moreClients: number;
  readonly calls: CallsStatus;
  /** Null: nothing is recorded. */
  readonly usage: UsageStatus | null;
  /** What to paste into the configuration of a host; none for a host that cannot reach a server. */
  readonly snippets: readonly Snippet[];
}

export interface ReplicaStatus {
  /** Where the other replicas reach it. */
  readonly address: string;
  /** - `shown`: it is in this document. - `silent`: it is not, though it is one of the replicas. */
  readonly state: 'shown' | 'silent';
  /** Why it is silent; null: it is not. */
  readonly problem: string | null;
}

export interface BridgeStatus {
  readonly version: string;
  readonly startedAtMs: number;
  readonly openCalls: number;
  readonly maxOpenCalls: number;
  readonly processes: number;
  readonly maxProcesses: number;
}

export interface ServerStatus {
  readonly name: string;
  readonly url: string;
  /** Null: HTTP+SSE is not served. */
  readonly sseUrl: string | null;
  /** When HTTP+SSE is going to end, or has ended, as its operator wrote it; null: nobody has said. */
  readonly sseSunset: string | null;
  /** Null: WebSocket is not served. */
  readonly wsUrl: string | null;
  /** Where it is served besides, by calling there. */
  readonly hubs: readonly HubStatus[];
  readonly kind: InspectedServer['kind'];
  readonly state: ServerState;
  /** Why it is not ready; null where it is. */
  readonly problem: string | null;
  /** Null: it has not been found out yet. */
  readonly speaks: Speech | null;
  readonly sessions: number;
  readonly openCalls: number;
  readonly processes: number;
  readonly restarts: number;
  readonly lastMinute: CallStatistics;
  readonly series: SeriesReport;
}

export interface HubStatus {
  readonly url: string;
  readonly state: InspectedHub['state'];
  /** Why it is not connected; null: it is, or nothing is known of that. */
  readonly problem: string | null;
}

export interface Speech {
  readonly transport: Transport;
  readonly era: Era;
  readonly revision: string | null;
}

export interface ClientStatus {
  /** Tells two clients apart while the bridge runs; no id that the protocol knows. */
  readonly number: number;
  /** - `connected`: it has a session or a pipe. - `calling`: it has neither, and called within the last five minutes. */
  readonly presence: 'connected' | 'calling';
  /** Names and versions are what clients say of themselves; nobody has checked them. */
  readonly name: string | null;
  readonly version: string | null;
  readonly speaks: Speech;
  readonly server: string;
  /** What its messages become on the way to the server; null: not known yet. */
  readonly serverSpeaks: Speech | null;
  /** When it connected, or made its first call. */
  readonly sinceMs: number;
}

export interface CallsStatus {
  readonly open: number;
  /** The ones that have been open longest; at most 20. */
  readonly longestOpen: readonly OpenCall[];
  readonly lastMinute: CallStatistics;
  readonly series: SeriesReport;
  /** The latest first; at most 200. */
  readonly recent: readonly EndedCall[];
}

export interface OpenCall {
  /** Counts the calls since the bridge runs. */
  readonly number: number;
  readonly atMs: number;
  readonly client: string | null;
  readonly clientVersion: string | null;
  readonly transport: Transport;
  readonly server: string;
  readonly method: string;
  /** Null: the call is for no tool. */
  readonly tool: string | null;
  readonly requestBytes: number;
}

export interface EndedCall extends OpenCall {
  readonly outcome: CallOutcome['kind'];
  /** The JSON-RPC code of an error, or the code of a failure (docs/reference/errors.md); null: there is none. */
  readonly code: number | ErrorCode | null;
  readonly durationMs: number;
  readonly bytes: number;
}

/** Who has used what over weeks, and which transports can be switched off: a short form of the migration report. */
export interface UsageStatus {
  /** How many days are looked back. */
  readonly days: number;
  readonly verdicts: readonly TransportVerdict[];
  /** The one that was seen last comes first. */
  readonly rows: readonly UsageStatusRow[];
}

export interface TransportVerdict {
  readonly server: string;
  readonly transport: Transport;
  /** - `safe`: it can be switched off. - `not-yet`: it is used. - `too-early`: it was not watched for long enough. */
  readonly verdict: 'safe' | 'not-yet' | 'too-early';
  /** Why, as a sentence. */
  readonly text: string;
}

export interface UsageStatusRow {
  /** Null: it never said its name. */
  readonly client: string | null;
  readonly clientVersion: string | null;
  readonly speaks: { readonly transport: Transport; readonly revision: string | null };
  readonly server: string;
  readonly serverSpeaks: { readonly transport: Transport; readonly revision: string | null } | null;
  readonly sessions: number;
  readonly calls: number;
  readonly errors: number;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  /** What it uses that the specification has deprecated, in words for people. */
  readonly deprecated: readonly string[];
}

export interface Snippet {
  readonly host: string;
  readonly server: string;
  readonly text: string;
}

export function toSpeech(server: ObservedServer | undefined): Speech | null {
  if (server === undefined) return null;
  return { transport: server.transport, era: server.era, revision: server.revision ?? null };
}
