/** What the bridges take of the same, in one table: mcp-portage as a figure, the others as multiples of it. */
import { PEERS, type Peer } from '../bridges/programs.ts';
import type { Contender } from '../cases.ts';
import { findMedian, findRatio, type LastRun, type Spot } from './last-run.ts';
import { formatNumber, TABLES, type Table } from './tables.ts';

interface Row {
  readonly title: string;
  readonly case: string;
  readonly workload: string;
  /** Which of our ways to run is compared; by default the usual one. */
  readonly own?: Contender;
}

/** The places that users ask about, in their words. */
const ROWS: readonly Row[] = [
  { title: 'Streamable HTTP, many small calls at once', case: 'streamable', workload: 'small-32' },
  { title: 'Streamable HTTP, one small call at a time', case: 'streamable', workload: 'small-1' },
  { title: 'Streamable HTTP, results of 1 MiB', case: 'streamable', workload: 'result-1MiB' },
  { title: 'Streamable HTTP, requests of 1 MiB', case: 'streamable', workload: 'request-1MiB' },
  { title: 'Streamable HTTP, 10,000 progress events in a call', case: 'streamable', workload: 'progress' },
  { title: 'HTTP+SSE, many small calls at once', case: 'http-sse', workload: 'small-32' },
  { title: '2026-07-28 to a server of 2026-07-28', case: 'modern', workload: 'small-32' },
  { title: '2026-07-28 to a legacy server, translated', case: 'translated', workload: 'small-32' },
  { title: '`connect` to Streamable HTTP', case: 'connect', workload: 'small-32' },
  { title: '`connect` to HTTP+SSE', case: 'connect-sse', workload: 'small-32' },
  { title: 'opening a session, in a process of its own', case: 'sessions', workload: 'open' },
  { title: 'opening a session on a shared process', case: 'sessions', workload: 'open', own: 'mcp-portage-shared' },
  { title: 'start of `serve`', case: 'start', workload: 'start' },
  { title: 'start of `connect`', case: 'start-connect', workload: 'start' },
  { title: 'memory with one idle session', case: 'memory', workload: 'idle' },
  { title: 'installed', case: 'installed', workload: 'package' },
];

export function renderComparison(run: LastRun): string {
  const peers = Object.keys(PEERS) as Peer[];
  const rows = ROWS.map((row) => {
    const table = TABLES.find((one) => one.case === row.case && one.workload === row.workload);
    if (table === undefined) throw new Error(`There is no table ${row.case} ${row.workload}.`);
    const own = row.own ?? 'mcp-portage';
    return [row.title, showOwn(run, table, own), ...peers.map((peer) => showPeer(run, table, { peer, own }))];
  });
  const head = ['', 'mcp-portage', ...peers];
  const lines = [head, head.map((_, column) => (column === 0 ? '---' : '--:')), ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function showOwn(run: LastRun, { columns, ...place }: Table, own: Contender): string {
  const [column] = columns;
  const value = column && findMedian(run, { ...place, contender: own, metric: column.metric });
  return value === undefined ? 'not measured' : `${column?.show(value)} ${column?.title}`;
}

interface Pair {
  readonly peer: Peer;
  readonly own: Contender;
}

function showPeer(run: LastRun, { columns, ...place }: Table, { peer, own }: Pair): string {
  const metric = columns[0]?.metric ?? 'cpu';
  const spot = (contender: string): Spot => ({ case: place.case, workload: place.workload, contender, metric });
  const ratio = findRatio(run, spot(peer), spot(own));
  if (ratio !== undefined && Number.isFinite(ratio)) return `${formatNumber(ratio)}×`;
  const gap = run.gaps.find(
    (one) => one.case === place.case && one.contender === peer && ['', place.workload].includes(one.workload),
  );
  return gap?.kind === 'failed' ? 'failed' : 'cannot';
}
