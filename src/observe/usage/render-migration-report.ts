/** The migration report for people. */
import type { Removal } from '../../mcp/vocabulary/deprecations.ts';
import { toPrintable } from '../../printable.ts';
import { type Column, formatMs, Painter, type RenderOptions, visibleLength } from '../../probe/render-report.ts';
import type { DeprecatedFinding, DeprecatedUser, MigrationReport } from './migration-report.ts';
import type { ReportRow } from './report-rows.ts';
import {
  count,
  type EndpointVerdict,
  formatAgo,
  formatSpan,
  nameOfClient,
  TRANSPORT_WORDS,
} from './transport-verdicts.ts';
import { MAX_VERSION_LENGTH, type UsageServer } from './usage.ts';

/** Longer names of clients and servers are cut; the JSON has them whole. */
const MAX_SHOWN_NAME = 24;
/** Rows that are shown; the JSON has all of them. */
const MAX_SHOWN_ROWS = 60;
const MAX_SHOWN_USERS = 5;
const GAP = 2;

/** Ends with a newline. */
export function renderMigrationReport(report: MigrationReport, options: RenderOptions): string {
  const painter = new Painter(options, options.width);
  const nowMs = Date.parse(report.until);
  const window = formatSpan(nowMs - Date.parse(report.since));
  painter.line(painter.bold(`Who used what in the last ${window}`));
  if (report.rows.length === 0) painter.line('Nobody was seen.');
  else renderRows(painter, report.rows, options.width, nowMs);

  if (report.deprecated.length > 0) painter.heading('What is deprecated and still used');
  painter.columns(report.deprecated.flatMap((finding) => describeFinding(painter, finding, nowMs)));

  if (report.problems.length > 0) painter.heading('Problems');
  for (const problem of report.problems) painter.item(painter.yellow('!'), toPrintable(problem, 500));

  painter.heading('Can HTTP+SSE be switched off?');
  for (const { verdict, text } of report.endpoints) painter.item(markOf(painter, verdict), text);
  painter.item(...conclusionOf(painter, report));
  return painter.text;
}

function markOf(painter: Painter, { kind }: EndpointVerdict): string {
  switch (kind) {
    case 'not-yet':
      return painter.red('✗');
    case 'too-early':
    case 'incomplete':
      return painter.yellow('?');
    case 'safe':
      return painter.green('✓');
    case 'not-served':
    case 'current':
      return painter.dim('·');
  }
}

function conclusionOf(painter: Painter, report: MigrationReport): readonly [string, string] {
  const { conclusion, endpoints } = report;
  switch (conclusion) {
    case 'not-yet':
      return [painter.red('→'), painter.bold('not yet: somebody would miss it')];
    case 'too-early':
      return [painter.yellow('→'), painter.bold(whyEarly(report))];
    case 'safe': {
      const isServed = endpoints.some(({ verdict }) => verdict.kind === 'safe');
      return [painter.green('→'), painter.bold(isServed ? 'safe' : 'safe: HTTP+SSE is not served')];
    }
  }
}

function whyEarly({ endpoints, problems }: MigrationReport): string {
  if (problems.length > 0) return 'nobody can say: some of the usage could not be read';
  if (endpoints.length === 0) return 'too early to say: nothing has been observed yet';
  const isRunning = endpoints.some(({ verdict }) => verdict.kind !== 'not-served');
  return isRunning ? 'too early to say' : 'nobody can say: nothing was observed in that time';
}

const HEADINGS = [
  'Client',
  'Speaks',
  'Server',
  'Speaks',
  'Sessions',
  'Calls',
  'Errors',
  'p50',
  'p95',
  'Bytes in',
  'Bytes out',
  'First seen',
  'Last seen',
] as const;
/** The first of the columns that hold numbers. */
const FIRST_NUMBER = 4;

function renderRows(painter: Painter, all: readonly ReportRow[], width: number, nowMs: number): void {
  const rows = all.slice(0, MAX_SHOWN_ROWS).map((row) => cellsOf(row, nowMs));
  const widths = HEADINGS.map((heading, column) =>
    Math.max(heading.length, ...rows.map((cells) => visibleLength(cells[column] ?? ''))),
  );
  const needed = widths.reduce((sum, columnWidth) => sum + columnWidth + GAP, -GAP);
  if (needed <= width) {
    painter.line(painter.bold(lineOf(HEADINGS, widths)));
    for (const cells of rows) painter.line(lineOf(cells, widths));
  } else {
    painter.columns(all.slice(0, MAX_SHOWN_ROWS).flatMap((row) => linesOf(painter, row, nowMs)));
  }
  if (all.length > MAX_SHOWN_ROWS) painter.line(painter.dim(`and ${all.length - MAX_SHOWN_ROWS} more, see --json`));
}

function lineOf(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, column) => {
      const space = ' '.repeat(Math.max(0, (widths[column] ?? 0) - visibleLength(cell)));
      return column < FIRST_NUMBER ? cell + space : space + cell;
    })
    .join(' '.repeat(GAP));
}

function cellsOf(row: ReportRow, nowMs: number): readonly string[] {
  return [
    shownClient(row),
    speechOf(row.client),
    shownServer(row.server),
    speechOf(row.server),
    String(row.sessions),
    String(row.calls),
    String(row.errors + row.refused),
    formatLatency(row.p50Ms),
    formatLatency(row.p95Ms),
    formatBytes(row.requestBytes),
    formatBytes(row.answerBytes),
    formatAgo(nowMs - Date.parse(row.firstSeen)),
    formatAgo(nowMs - Date.parse(row.lastSeen)),
  ];
}

/** Renders a row on several lines, for terminals too narrow for the table. */
function linesOf(painter: Painter, row: ReportRow, nowMs: number): readonly Column[] {
  const { client, server, sessions, refused, calls, errors, p50Ms, p95Ms, requestBytes, answerBytes } = row;
  const counts = [
    sessions === 0 ? undefined : count(sessions, 'session'),
    refused === 0 ? undefined : `refused ${count(refused, 'time')}`,
    count(calls, 'call'),
    errors === 0 ? undefined : count(errors, 'error'),
    p50Ms === undefined ? undefined : `p50 ${formatLatency(p50Ms)}`,
    p95Ms === undefined ? undefined : `p95 ${formatLatency(p95Ms)}`,
  ];
  const bytes = `${formatBytes(requestBytes)} in, ${formatBytes(answerBytes)} out`;
  const [first, last] = [row.firstSeen, row.lastSeen].map((time) => formatAgo(nowMs - Date.parse(time)));
  return [
    [`${shownClient(row)} → ${shownServer(server)}`, `${speechOf(client)} → ${speechOf(server)}`],
    ['', counts.filter((text) => text !== undefined).join(', ')],
    ['', painter.dim(`${bytes}; first seen ${first}, last ${last}`)],
  ];
}

function shownClient({ client }: Pick<ReportRow, 'client'>): string {
  return shorten(nameOfClient(client));
}

function shownServer({ name }: UsageServer): string {
  return shorten(toPrintable(name, MAX_SHOWN_NAME + 1));
}

function shorten(text: string): string {
  return text.length <= MAX_SHOWN_NAME ? text : `${text.slice(0, MAX_SHOWN_NAME - 1)}…`;
}

function speechOf({ transport, revision }: Pick<UsageServer, 'transport' | 'revision'>): string {
  const words = [
    transport === undefined ? undefined : TRANSPORT_WORDS[transport],
    revision && toPrintable(revision, MAX_VERSION_LENGTH),
  ];
  return words.filter((word) => word !== undefined && word !== '').join(' ') || '–';
}

function formatLatency(ms: number | undefined): string {
  return ms === undefined ? '–' : formatMs(ms);
}

const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const;

export function formatBytes(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= 999.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 9.95 ? Math.round(value) : value.toFixed(1)} ${BYTE_UNITS[unit]}`;
}

function describeFinding(painter: Painter, finding: DeprecatedFinding, nowMs: number): readonly Column[] {
  const { title, removal, instead, source, users } = finding;
  const shown = users.slice(0, MAX_SHOWN_USERS).map((user) => describeUser(user, nowMs));
  const more = users.length > MAX_SHOWN_USERS ? [`and ${users.length - MAX_SHOWN_USERS} more`] : [];
  return [
    [title, `${describeRemoval(removal, nowMs)}; use ${instead}`],
    ['', painter.dim(source), 'whole'],
    ...[...shown, ...more].map((line): Column => ['', line]),
  ];
}

/** A removal is a decision of the maintainers, so the day says only what they may do. */
function describeRemoval(removal: Removal, nowMs: number): string {
  switch (removal.kind) {
    case 'from':
      return nowMs < Date.parse(removal.date)
        ? `may be removed by a revision from ${removal.date} on`
        : `may be removed by the next revision (since ${removal.date})`;
    case 'removed':
      return `removed in revision ${removal.revision}`;
    case 'undated':
      return 'no date for its end';
  }
}

function describeUser({ side, client, server, count: times, lastSeen }: DeprecatedUser, nowMs: number): string {
  const often = times === undefined ? '' : `, ${count(times, 'time')}`;
  const when = `last used ${formatAgo(nowMs - Date.parse(lastSeen))}${often}`;
  const [clientName, serverName] = [shorten(nameOfClient(client)), shownServer(server)];
  switch (side) {
    case 'client':
      return `client ${clientName} at ${serverName} (${when})`;
    case 'bridge':
      return `mcp-portage at ${serverName} (${when})`;
    case 'server':
      return `server ${serverName}, for ${clientName} (${when})`;
  }
}
