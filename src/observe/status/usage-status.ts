/** A summary of the migration report for the status page. */
import { findDeprecation } from '../../mcp/vocabulary/deprecations.ts';
import { createMigrationReport, type MigrationReport } from '../usage/migration-report.ts';
import type { ReportRow } from '../usage/report-rows.ts';
import type { JudgedEndpoint } from '../usage/transport-verdicts.ts';
import { DAY_MS } from '../usage/usage.ts';
import type { UsageTable } from '../usage/usage-table.ts';
import type { TransportVerdict, UsageStatus, UsageStatusRow } from './status-document.ts';

const DAYS = 30;
/** Age at which the summary is renewed. The page requests it every second, but it changes slowly. */
const RENEWED_AFTER_MS = 10_000;
/** Rows on the page; the report has all of them. */
const MAX_ROWS = 100;

/** Returns a function that caches the summary for RENEWED_AFTER_MS. */
export function createUsageStatus(table: UsageTable, wallClock: () => number): () => UsageStatus {
  let known: UsageStatus | undefined;
  let madeAtMs = 0;
  return () => {
    const nowMs = wallClock();
    if (known === undefined || nowMs - madeAtMs >= RENEWED_AFTER_MS) {
      known = toStatus(createMigrationReport(table.usage(), { windowMs: DAYS * DAY_MS, nowMs, problems: [] }));
      madeAtMs = nowMs;
    }
    return known;
  };
}

function toStatus({ endpoints, rows }: MigrationReport): UsageStatus {
  return { days: DAYS, verdicts: endpoints.flatMap(toVerdict), rows: rows.slice(0, MAX_ROWS).map(toRow) };
}

/** Endpoints that are not deprecated or no longer served have no verdict on the page. */
function toVerdict({ server, transport, verdict, text }: JudgedEndpoint): readonly TransportVerdict[] {
  switch (verdict.kind) {
    case 'safe':
    case 'not-yet':
      return [{ server, transport, verdict: verdict.kind, text }];
    case 'too-early':
    case 'incomplete':
      return [{ server, transport, verdict: 'too-early', text }];
    case 'not-served':
    case 'current':
      return [];
  }
}

function toRow(row: ReportRow): UsageStatusRow {
  const { client, server } = row;
  return {
    client: client.name ?? (client.kind === 'others' ? 'others' : null),
    clientVersion: client.version ?? null,
    speaks: { transport: client.transport ?? 'stdio', revision: client.revision ?? null },
    server: server.name,
    serverSpeaks:
      server.transport === undefined ? null : { transport: server.transport, revision: server.revision ?? null },
    sessions: row.sessions,
    calls: row.calls,
    errors: row.errors,
    p50Ms: row.p50Ms ?? null,
    p95Ms: row.p95Ms ?? null,
    firstSeenMs: Date.parse(row.firstSeen),
    lastSeenMs: Date.parse(row.lastSeen),
    deprecated: [...new Set(row.deprecated.map(({ name }) => findDeprecation(name).title))],
  };
}
