import { STATE_WORDS } from '../inspection.ts';
import type { SeriesReport } from '../status/call-series.ts';
import type { ClientStatus, EndedCall, ServerStatus, Speech, StatusDocument } from '../status/status-document.ts';
import { type Column, type Line, layOutTable, segment, type Tone } from './text-layout.ts';

export interface TopView {
  /** URL that the status comes from. */
  readonly url: string;
  /** Message about the connection; empty: it works. */
  readonly notice: string;
  readonly columns: number;
  /** Number of lines; infinite if the output is not a screen. */
  readonly rows: number;
  /** Current time by the clock of the bridge. */
  readonly nowMs: number;
}

/** Lines that recent calls get at least, even with many servers and clients. */
const MIN_RECENT = 5;
const EMPTY: Line = [];

/** Renders the terminal view, with at most `rows` lines. */
export function renderTop(status: StatusDocument, view: TopView): Line[] {
  const { columns, rows, nowMs } = view;
  const head = [...headLines(status, view), EMPTY];
  const servers = tableOf(status.servers, serverColumns(view.nowMs), columns, 'There are no servers.');
  const clients = tableOf(status.clients, clientColumns(nowMs), columns, 'Nobody is connected.');
  const recent = tableOf(status.calls.recent, CALL_COLUMNS, columns, 'No calls yet.');
  // Servers and clients share the lines that the head and MIN_RECENT leave, with an empty line after each.
  const free = Math.max(0, rows - head.length - MIN_RECENT - 2 * 2);
  const shownServers = clip(servers, Math.max(2, Math.ceil(free / 2)));
  const shownClients = clip(clients, Math.max(2, free - shownServers.length));
  const above = [...head, ...shownServers, EMPTY, ...shownClients, EMPTY];
  return [...above, ...recent].slice(0, rows);
}

function tableOf<Item>(
  items: readonly Item[],
  columns: readonly Column<Item>[],
  width: number,
  ifNone: string,
): readonly Line[] {
  return items.length === 0 ? [[segment(ifNone, 'quiet')]] : layOutTable(items, columns, width);
}

function clip(lines: readonly Line[], most: number): readonly Line[] {
  if (lines.length <= most) return lines;
  return [...lines.slice(0, most - 1), [segment(`… and ${lines.length - most + 1} more`, 'quiet')]];
}

/** Names the replicas whose figures are missing. */
function replicaLines({ replicas }: StatusDocument): Line[] {
  if (!replicas || replicas.length < 2) return [];
  const silent = replicas.filter(({ state }) => state === 'silent');
  const shown = segment(`${counted(replicas.length - silent.length, 'replica')}`);
  const missing = silent.map(({ address, problem }) => segment(`  without ${address}: ${problem ?? ''}`, 'bad'));
  return [[shown, ...missing]];
}

function headLines(status: StatusDocument, view: TopView): Line[] {
  const { bridge, clients, moreClients, calls } = status;
  const { lastMinute, series } = calls;
  const notice = view.notice === '' ? segment('  live', 'good') : segment(`  ${view.notice}`, 'bad');
  const figures = [
    `${counted(clients.length + moreClients, 'client')}`,
    `${calls.open} of ${bridge.maxOpenCalls} calls open`,
    `${bridge.processes} of ${bridge.maxProcesses} processes`,
  ];
  const latency = lastMinute.p50Ms === null ? '' : `, median ${time(lastMinute.p50Ms)}, 95 % ${time(lastMinute.p95Ms)}`;
  const errors = segment(counted(lastMinute.errors, 'error'), lastMinute.errors > 0 ? 'bad' : 'plain');
  return [
    [segment(`mcp-portage ${bridge.version}`, 'strong'), segment(`  ${view.url}`, 'quiet'), notice],
    [segment(`up ${time(view.nowMs - bridge.startedAtMs)}   ${figures.join('   ')}`)],
    ...replicaLines(status),
    [segment(`last minute: ${counted(lastMinute.calls, 'call')}, `), errors, segment(latency)],
    [
      segment('ten minutes  ', 'quiet'),
      segment(sparkline(series, view.nowMs, Math.max(10, Math.min(60, view.columns - 14)))),
    ],
  ];
}

function serverColumns(nowMs: number): readonly Column<ServerStatus>[] {
  return [
    { title: 'SERVER', align: 'left', maxWidth: 24, cell: ({ name }) => segment(name, 'strong') },
    {
      title: 'STATE',
      align: 'left',
      maxWidth: 22,
      cell: (server) => segment(stateOf(server, nowMs), STATE_TONES[server.state] ?? 'plain'),
    },
    { title: 'SPEAKS', align: 'left', maxWidth: 28, cell: ({ speaks }) => segment(speech(speaks)) },
    number('SESS', ({ sessions }) => sessions),
    number('OPEN', ({ openCalls }) => openCalls),
    number('PROC', ({ processes }) => processes),
    number('RST', ({ restarts }) => restarts),
    number('/MIN', ({ lastMinute }) => lastMinute.calls),
    number('ERR', ({ lastMinute }) => lastMinute.errors),
    { title: 'P50', align: 'right', maxWidth: 8, cell: ({ lastMinute }) => segment(time(lastMinute.p50Ms)) },
    { title: 'HTTP+SSE ENDS', align: 'left', maxWidth: 26, cell: ({ sseSunset }) => segment(sseSunset ?? '', 'warn') },
    { title: 'PROBLEM', align: 'left', maxWidth: 60, cell: ({ problem }) => segment(problem ?? '', 'quiet') },
  ];
}

/** The state in words, with how long a start has taken, or since when the server fails. */
function stateOf({ state, sinceMs }: ServerStatus, nowMs: number): string {
  const words = STATE_WORDS[state] ?? state;
  if (sinceMs === null) return words;
  if (state === 'starting') return `${words} (${time(nowMs - sinceMs)})`;
  return state === 'failing' ? `${words} since ${timeOfDay(sinceMs)}` : words;
}

const STATE_TONES: Readonly<Record<string, Tone>> = {
  'not-started': 'quiet',
  starting: 'warn',
  ready: 'good',
  failing: 'bad',
  stopped: 'bad',
};

function number(title: string, read: (server: ServerStatus) => number): Column<ServerStatus> {
  return { title, align: 'right', maxWidth: 10, cell: (server) => segment(String(read(server))) };
}

function clientColumns(nowMs: number): readonly Column<ClientStatus>[] {
  return [
    { title: 'CLIENT', align: 'left', maxWidth: 32, cell: ({ name, version }) => clientName(name, version) },
    { title: 'SPEAKS', align: 'left', maxWidth: 28, cell: ({ speaks }) => segment(speech(speaks)) },
    { title: 'SERVER', align: 'left', maxWidth: 24, cell: ({ server }) => segment(server) },
    { title: 'SERVER SPEAKS', align: 'left', maxWidth: 28, cell: ({ serverSpeaks }) => segment(speech(serverSpeaks)) },
    { title: 'SINCE', align: 'right', maxWidth: 12, cell: ({ sinceMs }) => segment(time(nowMs - sinceMs)) },
  ];
}

const CALL_COLUMNS: readonly Column<EndedCall>[] = [
  { title: 'TIME', align: 'left', maxWidth: 8, cell: ({ atMs }) => segment(timeOfDay(atMs), 'quiet') },
  { title: 'CALL', align: 'left', maxWidth: 40, cell: ({ tool, method }) => segment(tool ?? method) },
  { title: 'CLIENT', align: 'left', maxWidth: 32, cell: (call) => clientName(call.client, call.clientVersion) },
  { title: 'SERVER', align: 'left', maxWidth: 24, cell: ({ server }) => segment(server) },
  { title: 'OUTCOME', align: 'left', maxWidth: 32, cell: outcome },
  { title: 'TOOK', align: 'right', maxWidth: 8, cell: ({ durationMs }) => segment(time(durationMs)) },
  { title: 'BYTES', align: 'right', maxWidth: 10, cell: ({ bytes }) => segment(String(bytes)) },
];

const OUTCOME_TONES: Readonly<Record<string, Tone>> = { error: 'warn', failed: 'bad', cancelled: 'quiet' };

function outcome(call: EndedCall) {
  const text = call.code === null ? call.outcome : `${call.outcome} ${call.code}`;
  return segment(text, OUTCOME_TONES[call.outcome] ?? 'plain');
}

function clientName(name: string | null, version: string | null) {
  return segment([name ?? 'unnamed', version ?? ''].join(' '), name === null ? 'quiet' : 'plain');
}

const TRANSPORTS: Readonly<Record<string, string>> = {
  'streamable-http': 'HTTP',
  'http-sse': 'HTTP+SSE',
  websocket: 'WebSocket',
  'byte-stream': 'byte stream',
};

function speech(speech: Speech | null): string {
  if (speech === null) return '–';
  return `${TRANSPORTS[speech.transport] ?? speech.transport} ${speech.revision ?? speech.era}`;
}

const BARS = ' ▁▂▃▄▅▆▇█';

/** Draws the calls of the series in this many columns, up to now. */
function sparkline({ atMs, calls, stepMs, steps }: SeriesReport, nowMs: number, columns: number): string {
  const sums = new Array<number>(columns).fill(0);
  const first = Math.floor(nowMs / stepMs) - steps + 1;
  for (const [index, startMs] of atMs.entries()) {
    const place = Math.floor(((startMs / stepMs - first) / steps) * columns);
    if (place >= 0 && place < columns) sums[place] = (sums[place] ?? 0) + (calls[index] ?? 0);
  }
  const most = Math.max(1, ...sums);
  return sums.map((sum) => BARS[Math.ceil((sum / most) * (BARS.length - 1))] ?? ' ').join('');
}

function counted(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`;
}

function time(ms: number | null): string {
  if (ms === null) return '–';
  if (ms < 1000) return `${ms < 10 ? Math.max(0, Math.round(ms * 10) / 10) : Math.round(ms)} ms`;
  if (ms < 60_000) return `${Math.floor(ms / 1000)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

function timeOfDay(atMs: number): string {
  return new Date(atMs).toTimeString().slice(0, 8);
}
