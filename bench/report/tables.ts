/** The figures as Markdown tables, which read well on a terminal, too: bridges down, figures across. */
import { CASES, type Contender } from '../cases.ts';
import { GROWTH, MANY_SESSIONS, STARTS } from '../extras.ts';
import type { Workload } from '../load/workload.ts';
import type { Metric } from '../measure/records.ts';
import { findMedian, findRatio, type LastRun, type Spot } from './last-run.ts';

const ORDER: readonly Contender[] = [
  'direct',
  'floor',
  'floor-shared',
  'mcp-portage',
  'mcp-portage-shared',
  'mcp-portage-prewarmed',
  'mcp-portage-first',
  'mcp-portage-listed',
  'mcp-portage-unseen',
  'mcp-portage-observed',
  'mcp-portage-recorded',
  'mcp-portage-socket',
  'mcp-portage-websocket',
  'mcp-portage-stream',
  'mcp-portage-grpc',
  'mcp-portage-mqtt',
  'supergateway',
  'mcp-proxy',
  'mcp-remote',
];

export interface Column {
  readonly title: string;
  readonly metric: Metric;
  /** How a figure of the metric is shown. */
  show(value: number): string;
}

export interface Table {
  readonly case: string;
  readonly workload: string;
  readonly title: string;
  readonly columns: readonly Column[];
}

/** Three digits tell apart what the machine's noise does not. */
export function formatNumber(value: number): string {
  if (value === 0) return '0';
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(digits, 3));
}

const times = (factor: number) => (value: number) => formatNumber(value * factor);
const cpu: Column = { title: 'CPU µs a call', metric: 'cpu', show: times(1) };
const p50: Column = { title: 'p50 ms', metric: 'p50Ms', show: times(1) };
const p99: Column = { title: 'p99 ms', metric: 'p99Ms', show: times(1) };
const rss: Column = { title: 'RSS MiB', metric: 'rssMiB', show: times(1) };

function columnsOf({ payloadBytes, progressEvents }: Workload): Column[] {
  if (payloadBytes > 0) {
    return [
      { title: 'CPU s a GB', metric: 'cpu', show: times(1000 / payloadBytes) },
      { title: 'MB/s', metric: 'callsPerSecond', show: times(payloadBytes / 1e6) },
      p50,
      p99,
    ];
  }
  if (progressEvents > 0) {
    return [
      { title: 'CPU µs an event', metric: 'cpu', show: times(1 / progressEvents) },
      { title: 'events/s', metric: 'callsPerSecond', show: times(progressEvents) },
      p50,
    ];
  }
  return [cpu, { title: 'calls/s', metric: 'callsPerSecond', show: times(1) }, p50, p99];
}

const start: readonly Column[] = [
  { title: 'CPU ms', metric: 'cpu', show: times(1 / 1000) },
  { title: 'ms', metric: 'p50Ms', show: times(1) },
];

export const TABLES: readonly Table[] = [
  ...CASES.flatMap((contest) =>
    contest.workloads.map((workload) => ({
      case: contest.name,
      workload: workload.name,
      title: `${contest.title}: ${workload.title}`,
      columns: columnsOf(workload),
    })),
  ),
  ...STARTS.map(({ name, title }) => ({ case: name, workload: 'start', title, columns: start })),
  ...[
    { workload: 'open', title: 'opening a session' },
    { workload: 'open-apart', title: 'opening a session after a pause, in which prewarmed processes become ready' },
  ].map((opening) => ({
    case: 'sessions',
    ...opening,
    columns: [{ title: 'CPU µs', metric: 'cpu', show: times(1) } as const, p50],
  })),
  { case: 'memory', workload: 'idle', title: 'memory with one idle session', columns: [rss] },
  ...MANY_SESSIONS.counts.map((count) => ({
    case: 'memory',
    workload: `sessions-${count}`,
    title: `${count} sessions on one child, small calls from all in turn, 32 in flight`,
    columns: [rss, cpu],
  })),
  {
    case: 'growth',
    workload: `calls-${GROWTH.calls}`,
    title: `memory grown over ${GROWTH.calls} small calls`,
    columns: [{ title: 'MiB', metric: 'rssMiB', show: times(1) }],
  },
  {
    case: 'installed',
    workload: 'package',
    title: 'installed with production dependencies',
    columns: [
      { title: 'MiB', metric: 'installedMiB', show: times(1) },
      { title: 'packages', metric: 'packages', show: times(1) },
    ],
  },
];

export function renderTables(run: LastRun): string {
  return TABLES.map((table) => renderTable(run, table))
    .filter((text) => text !== '')
    .join('\n\n');
}

/** Empty if nothing of it was measured. */
export function renderTable(run: LastRun, { columns, title, ...place }: Table): string {
  const present = ORDER.filter((contender) =>
    columns.some(({ metric }) => findMedian(run, { ...place, contender, metric }) !== undefined),
  );
  const [first] = columns;
  if (present.length === 0 || first === undefined) return '';
  const head = ['', ...columns.map((column) => column.title), '÷ floor', '÷ mcp-portage'];
  const rows = present.map((contender) => {
    const spot = { ...place, contender, metric: first.metric };
    return [
      contender,
      ...columns.map((column) => showMedian(run, { ...place, contender, metric: column.metric }, column)),
      showRatio(run, spot, floorOf(run, spot)),
      showRatio(run, spot, place.case === 'memory' && place.workload !== 'idle' ? 'mcp-portage-shared' : 'mcp-portage'),
    ];
  });
  const lines = [head, head.map((_, column) => (column === 0 ? '---' : '--:')), ...rows];
  return `**${title}**\n\n${lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}`;
}

/** What shares a child is measured against the floor that does, where there is one. */
function floorOf(run: LastRun, spot: Spot): Contender {
  const hasShared = findMedian(run, { ...spot, contender: 'floor-shared' }) !== undefined;
  const sharesNot = ['floor', 'mcp-portage', 'supergateway'].includes(spot.contender);
  return hasShared && !sharesNot ? 'floor-shared' : 'floor';
}

function showMedian(run: LastRun, spot: Spot, column: Column): string {
  const value = findMedian(run, spot);
  return value === undefined ? '' : column.show(value);
}

function showRatio(run: LastRun, spot: Spot, other: Contender): string {
  if (spot.contender === 'direct') return '';
  const ratio = findRatio(run, spot, { ...spot, contender: other });
  return ratio === undefined || !Number.isFinite(ratio) ? '' : `${formatNumber(ratio)}×`;
}

/** What was not measured, and why. */
export function renderGaps(run: LastRun): string {
  const said = { absent: 'not measured', failed: 'FAILED' } as const;
  return run.gaps
    .map(({ case: name, workload, contender, kind, reason }) => {
      const place = workload === '' ? name : `${name} ${workload}`;
      return `- ${place}, ${contender}: ${said[kind]}: ${firstLine(reason)}`;
    })
    .join('\n');
}

/** Some answer with a page. */
function firstLine(text: string): string {
  const [line = ''] = text.split('\n');
  return line.replaceAll('<', '&lt;').slice(0, MAX_REASON_LENGTH);
}

const MAX_REASON_LENGTH = 160;
