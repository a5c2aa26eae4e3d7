/**
 * Who still uses what is deprecated, and whether HTTP+SSE can be switched off. Printed as JSON as it is: members are added
 * over time, never renamed. Times are in ISO 8601, members that are unknown are left out.
 */
import { DEPRECATIONS, type DeprecationName, type Removal } from '../../mcp/vocabulary/deprecations.ts';
import { joinIncomplete, type ReportRow, type RowDeprecation, summarize } from './report-rows.ts';
import { type JudgedEndpoint, judgeEndpoints } from './transport-verdicts.ts';
import { isoOf, type Usage, type UsageClient, type UsageServer } from './usage.ts';

export interface MigrationReport {
  /** Raised if a member ever changes its meaning. */
  readonly format: 1;
  /** The report is on the time between these. */
  readonly since: string;
  readonly until: string;
  /**
   * - `safe`: nobody has used HTTP+SSE, on any endpoint, for long enough.
   * - `not-yet`: somebody has.
   * - `too-early`: nobody is known to have, but it was not watched for long enough, or not everything could be read.
   */
  readonly conclusion: 'safe' | 'not-yet' | 'too-early';
  readonly endpoints: readonly JudgedEndpoint[];
  /** The latest first. */
  readonly rows: readonly ReportRow[];
  /** What nobody uses is not among them. */
  readonly deprecated: readonly DeprecatedFinding[];
  /** Files that could not be read, so that nobody knows what they had. */
  readonly problems: readonly string[];
}

export interface DeprecatedFinding {
  readonly name: DeprecationName;
  readonly title: string;
  readonly removal: Removal;
  readonly instead: string;
  readonly source: string;
  /** The latest first. */
  readonly users: readonly DeprecatedUser[];
}

export interface DeprecatedUser extends Omit<RowDeprecation, 'name'> {
  readonly client: UsageClient;
  readonly server: UsageServer;
}

export interface ReportOptions {
  /** How far it looks back. */
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
 * 0: safe. 75 (EX_TEMPFAIL, ask again later): not yet, or too early to say. A report that could not be made has the exit
 * code of its error, which is another.
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
    // What a server speaks it speaks to all its clients, so the one that used it last stands for them.
    const isFirst = ({ side, server }: DeprecatedUser, index: number): boolean =>
      side !== 'server' ||
      users.findIndex((other) => other.side === side && other.server.name === server.name) === index;
    return users.length === 0 ? [] : [{ ...deprecation, users: users.filter(isFirst) }];
  });
}
