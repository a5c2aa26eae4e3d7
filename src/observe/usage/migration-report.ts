/**
 * The migration report: which clients still use deprecated features, and if HTTP+SSE can be switched off. It is printed
 * as JSON without changes: members may be added and are never renamed. Times are in ISO 8601; unknown members are left
 * out.
 */
import { DEPRECATIONS, type DeprecationName, type Removal } from '../../mcp/vocabulary/deprecations.ts';
import { joinIncomplete, type ReportRow, type RowDeprecation, summarize } from './report-rows.ts';
import { type JudgedEndpoint, judgeEndpoints } from './transport-verdicts.ts';
import { isoOf, type Usage, type UsageClient, type UsageServer } from './usage.ts';

export interface MigrationReport {
  /** Raised if a member ever changes its meaning. */
  readonly format: 1;
  /** Start of the time that the report covers, which ends at `until`. */
  readonly since: string;
  readonly until: string;
  /**
   * - `safe`: no client has used HTTP+SSE, on any endpoint, for long enough.
   * - `not-yet`: a client has used it.
   * - `too-early`: no use is known, but it was not watched for long enough, or some of the usage could not be read.
   */
  readonly conclusion: 'safe' | 'not-yet' | 'too-early';
  readonly endpoints: readonly JudgedEndpoint[];
  /** Latest first. */
  readonly rows: readonly ReportRow[];
  /** Deprecated features that are still used. */
  readonly deprecated: readonly DeprecatedFinding[];
  /** Problems with files that could not be read, whose counts are missing. */
  readonly problems: readonly string[];
}

export interface DeprecatedFinding {
  readonly name: DeprecationName;
  readonly title: string;
  readonly removal: Removal;
  readonly instead: string;
  readonly source: string;
  /** Latest first. */
  readonly users: readonly DeprecatedUser[];
}

export interface DeprecatedUser extends Omit<RowDeprecation, 'name'> {
  readonly client: UsageClient;
  readonly server: UsageServer;
}

export interface ReportOptions {
  /** Length of the time that the report covers. */
  readonly windowMs: number;
  readonly nowMs: number;
  readonly problems: readonly string[];
}

export function createMigrationReport(usage: Usage, { windowMs, nowMs, problems }: ReportOptions): MigrationReport {
  const sinceMs = Math.max(0, nowMs - windowMs);
  const seen = usage.rows.filter(({ lastSeenMs }) => lastSeenMs >= sinceMs);
  const rows = joinIncomplete(seen)
    .map((group) => summarize(group, sinceMs))
    .sort((one, other) => other.lastSeen.localeCompare(one.lastSeen));
  const endpoints = judgeEndpoints(usage.served, rows, { sinceMs, nowMs, isIncomplete: problems.length > 0 });
  const isWatched = usage.served.some(({ untilMs }) => untilMs >= sinceMs);
  return {
    format: 1,
    since: isoOf(sinceMs),
    until: isoOf(nowMs),
    conclusion: concludeFrom(endpoints, isWatched && problems.length === 0),
    endpoints,
    rows,
    deprecated: findDeprecated(rows),
    problems,
  };
}

/**
 * Returns the exit code: 0 if safe, 75 (EX_TEMPFAIL, ask again later) if not yet or too early to say. A report that
 * could not be made has the exit code of its error, which is another.
 */
export function exitCodeOf({ conclusion }: MigrationReport): 0 | 75 {
  return conclusion === 'safe' ? 0 : 75;
}

function concludeFrom(endpoints: readonly JudgedEndpoint[], isKnown: boolean): MigrationReport['conclusion'] {
  const isAny = (kind: JudgedEndpoint['verdict']['kind']): boolean =>
    endpoints.some(({ verdict }) => verdict.kind === kind);
  if (isAny('not-yet')) return 'not-yet';
  return isKnown && !isAny('too-early') ? 'safe' : 'too-early';
}

function findDeprecated(rows: readonly ReportRow[]): readonly DeprecatedFinding[] {
  return DEPRECATIONS.flatMap((deprecation) => {
    const users = rows.flatMap(({ client, server, deprecated }) =>
      deprecated
        .filter(({ name }) => name === deprecation.name)
        .map(({ side, count, lastSeen }): DeprecatedUser => ({ side, client, server, count, lastSeen })),
    );
    users.sort((one, other) => other.lastSeen.localeCompare(one.lastSeen));
    // A server uses a deprecated feature with all its clients, so it is listed once, with the client that used it last.
    const isFirst = ({ side, server }: DeprecatedUser, index: number): boolean =>
      side !== 'server' ||
      users.findIndex((other) => other.side === side && other.server.name === server.name) === index;
    return users.length === 0 ? [] : [{ ...deprecation, users: users.filter(isFirst) }];
  });
}
