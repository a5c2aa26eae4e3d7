/**
 * The content of `/status.json`, which the status page and the terminal view also show. Programs read it, so its shape
 * is stable: members may be added, and none changes its meaning or is removed without a new number in `shape`. It holds
 * no payload, argument, credential, session id or name of a caller. Times are milliseconds since the epoch.
 * docs/reference/status-page.md describes it.
 */
import type { ErrorCode } from '../../errors.ts';
import type { Era } from '../../mcp/vocabulary/revisions.ts';
import type { CallOutcome, ObservedServer, Transport } from '../../relay/observer.ts';
import type { InspectedHub, InspectedServer, ServerState } from '../inspection.ts';
import type { CallStatistics, SeriesReport } from './call-series.ts';
import type { RefusedStatus } from './refusals.ts';

export const STATUS_SHAPE = 2;

export interface StatusDocument {
  readonly shape: typeof STATUS_SHAPE;
  readonly atMs: number;
  /** True if the content of messages can be read at `/status/messages`. */
  readonly inspect: boolean;
  /** Replicas that the document covers, all or one of them; null: the bridge has no replicas. */
  readonly replicas: readonly ReplicaStatus[] | null;
  readonly bridge: BridgeStatus;
  readonly servers: readonly ServerStatus[];
  /** Latest first; at most 200. */
  readonly clients: readonly ClientStatus[];
  /** Number of further clients that are not listed. */
  readonly moreClients: number;
  readonly calls: CallsStatus;
  readonly refused: RefusedStatus;
  /** Summary of the migration report; null: no usage is recorded. */
  readonly usage: UsageStatus | null;
  /** Configuration to paste into a host. Hosts that cannot reach a server have no entry for it. */
  readonly snippets: readonly Snippet[];
  /** More about the server that the request names, or about the only one; null: the request names none. */
  readonly detail: ServerDetail | null;
}

export interface ReplicaStatus {
  /** Address at which the other replicas reach it. */
  readonly address: string;
  /**
   * - `shown`: the document includes its status.
   * - `silent`: it is one of the replicas, but its status could not be read.
   */
  readonly state: 'shown' | 'silent';
  /** The reason why it is silent; null: it is not. */
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
  /** URL of HTTP+SSE; null: it is not served. */
  readonly sseUrl: string | null;
  /** Announced end of HTTP+SSE, as written by the operator, which may have passed; null: none is announced. */
  readonly sseSunset: string | null;
  /** URL of WebSocket; null: it is not served. */
  readonly wsUrl: string | null;
  /** Hubs that the bridge calls, where the server is also served. */
  readonly hubs: readonly HubStatus[];
  readonly kind: InspectedServer['kind'];
  readonly state: ServerState;
  /** Time since when it is starting, failing or stopped; null in other states. */
  readonly sinceMs: number | null;
  /** The reason why it is not ready; null if it is. */
  readonly problem: string | null;
  /** Protocol of the server; null: not detected yet. */
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
  /** The reason why it is not connected; null: it is, or no reason is known. */
  readonly problem: string | null;
}

export interface Speech {
  readonly transport: Transport;
  readonly era: Era;
  readonly revision: string | null;
}

export interface ClientStatus {
  /** Identifies a client while the bridge runs; not an id of the protocol. */
  readonly number: number;
  /**
   * - `connected`: it has a session or a pipe.
   * - `calling`: it has neither, and called within the last five minutes.
   */
  readonly presence: 'connected' | 'calling';
  /** Unverified names and versions that clients give themselves. */
  readonly name: string | null;
  readonly version: string | null;
  readonly speaks: Speech;
  readonly server: string;
  /** Protocol of the server that its messages are translated to; null: not known yet. */
  readonly serverSpeaks: Speech | null;
  /** Time at which it connected or made its first call. */
  readonly sinceMs: number;
}

export interface CallsStatus {
  readonly open: number;
  /** Calls that have been open longest; at most 20. */
  readonly longestOpen: readonly OpenCall[];
  readonly lastMinute: CallStatistics;
  readonly series: SeriesReport;
  /** Latest first; at most 200. */
  readonly recent: readonly EndedCall[];
}

export interface OpenCall {
  /** Sequence number of the call since the bridge started. */
  readonly number: number;
  readonly atMs: number;
  readonly client: string | null;
  readonly clientVersion: string | null;
  readonly transport: Transport;
  readonly server: string;
  readonly method: string;
  /** Name of the tool; null: the call is not a tool call. */
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

/** Usage over weeks, and the transports that can be switched off: a summary of the migration report. */
export interface UsageStatus {
  /** Number of days that it covers. */
  readonly days: number;
  readonly verdicts: readonly TransportVerdict[];
  /** Most recently seen first. */
  readonly rows: readonly UsageStatusRow[];
}

export interface TransportVerdict {
  readonly server: string;
  readonly transport: Transport;
  /**
   * - `safe`: it can be switched off.
   * - `not-yet`: it is used.
   * - `too-early`: it was not watched for long enough.
   */
  readonly verdict: 'safe' | 'not-yet' | 'too-early';
  /** The reason in one sentence. */
  readonly text: string;
}

export interface UsageStatusRow {
  /** Name of the client; null: it never gave one. */
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
  /** Deprecated features that it uses, in words for people. */
  readonly deprecated: readonly string[];
}

/** Details of one server beyond its figures. With replicas, they are those of the replica that answers. */
export interface ServerDetail {
  readonly server: string;
  /** Start of its latest process; null: none was started. */
  readonly startedAtMs: number | null;
  /** The last lines that its processes wrote to stderr, without what looks like a credential, oldest first; at most 50. */
  readonly stderr: readonly TimedText[];
  /** Processes that exited by themselves or hung, and the reason, latest first; at most 20. */
  readonly restarts: readonly TimedText[];
  /** Names of the tools in the lists that clients got, sorted; at most 200. */
  readonly tools: readonly string[];
  readonly moreTools: number;
}

export interface TimedText {
  readonly atMs: number;
  readonly text: string;
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
