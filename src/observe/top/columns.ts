/** The columns of the terminal view's tables, and the words in them. */
import { STATE_WORDS } from '../inspection.ts';
import type { SeriesReport } from '../status/call-series.ts';
import type { ClientStatus, EndedCall, OpenCall, ServerStatus, Speech } from '../status/status-document.ts';
import { type Column, type Segment, segment, type Tone } from './text-layout.ts';
import type { Sort } from './view-state.ts';

/** Characters of a name that are shown before a less important column. */
const READABLE_NAME = 16;
const READABLE_PART = 12;
const WHOLE = Number.POSITIVE_INFINITY;

/** The columns that show what servers can be sorted by. */
const SORTED_COLUMNS: Readonly<Record<Sort, string>> = {
  state: 'STATE',
  name: 'SERVER',
  'open calls': 'OPEN',
  'calls a minute': '/MIN',
  errors: 'ERR',
  p95: 'P95',
};

/** Returns the columns of the servers. The one that they are sorted by is never left out. */
export function serverColumns(nowMs: number, sort: Sort): readonly Column<ServerStatus>[] {
  const columns: readonly Column<ServerStatus>[] = [
    {
      title: 'SERVER',
      align: 'left',
      maxWidth: 32,
      minWidth: READABLE_NAME,
      cell: ({ name }) => segment(name, 'strong'),
    },
    {
      title: 'STATE',
      align: 'left',
      maxWidth: 22,
      minWidth: WHOLE,
      cell: (server) => segment(stateOf(server, nowMs), toneOf(server)),
    },
    {
      title: 'SPEAKS',
      align: 'left',
      maxWidth: 28,
      minWidth: 16,
      rank: 4,
      cell: ({ speaks }) => segment(speech(speaks)),
    },
    number('SESS', 6, ({ sessions }) => sessions),
    number('OPEN', 1, ({ openCalls }) => openCalls),
    number('PROC', 9, ({ processes }) => processes),
    number('RST', 8, ({ restarts }) => restarts),
    number('/MIN', 2, ({ lastMinute }) => lastMinute.calls),
    number('ERR', 3, ({ lastMinute }) => lastMinute.errors),
    duration('P50', 7, ({ lastMinute }) => lastMinute.p50Ms),
    duration('P95', 5, ({ lastMinute }) => lastMinute.p95Ms),
    {
      title: 'HTTP+SSE ENDS',
      align: 'left',
      maxWidth: 26,
      minWidth: WHOLE,
      rank: 10,
      cell: ({ sseSunset }) => segment(sseSunset ?? '', 'warn'),
    },
  ];
  return columns.map((column) => (column.title === SORTED_COLUMNS[sort] ? { ...column, rank: 0 } : column));
}

/** Shows the problems beside the servers, where there is room. */
export const PROBLEM_COLUMN: Column<ServerStatus> = {
  title: 'PROBLEM',
  align: 'left',
  maxWidth: WHOLE,
  cell: ({ problem }) => segment(problem ?? '', 'quiet'),
};

/** The state in words, with how long a start has taken, or since when the server fails. */
export function stateOf({ state, sinceMs }: ServerStatus, nowMs: number): string {
  const words = STATE_WORDS[state] ?? state;
  if (sinceMs === null) return words;
  if (state === 'starting') return `${words} (${time(nowMs - sinceMs)})`;
  return state === 'failing' ? `${words} since ${timeOfDay(sinceMs)}` : words;
}

export function toneOf({ state }: ServerStatus): Tone {
  return STATE_TONES[state] ?? 'plain';
}

const STATE_TONES: Readonly<Record<string, Tone>> = {
  'not-started': 'quiet',
  starting: 'warn',
  ready: 'good',
  failing: 'bad',
  stopped: 'bad',
};

function number(title: string, rank: number, read: (server: ServerStatus) => number): Column<ServerStatus> {
  return {
    title,
    align: 'right',
    maxWidth: 10,
    minWidth: WHOLE,
    rank,
    cell: (server) => segment(String(read(server))),
  };
}

function duration(title: string, rank: number, read: (server: ServerStatus) => number | null): Column<ServerStatus> {
  return { title, align: 'right', maxWidth: 8, minWidth: WHOLE, rank, cell: (server) => segment(time(read(server))) };
}

export function clientColumns(nowMs: number): readonly Column<ClientStatus>[] {
  return [
    {
      title: 'CLIENT',
      align: 'left',
      maxWidth: 32,
      minWidth: READABLE_NAME,
      cell: ({ name, version }) => clientName(name, version),
    },
    {
      title: 'SPEAKS',
      align: 'left',
      maxWidth: 28,
      minWidth: WHOLE,
      rank: 2,
      cell: ({ speaks }) => segment(speech(speaks)),
    },
    {
      title: 'SERVER',
      align: 'left',
      maxWidth: 24,
      minWidth: READABLE_PART,
      rank: 1,
      cell: ({ server }) => segment(server),
    },
    {
      title: 'SERVER SPEAKS',
      align: 'left',
      maxWidth: 28,
      minWidth: WHOLE,
      rank: 3,
      cell: ({ serverSpeaks }) => segment(speech(serverSpeaks)),
    },
    {
      title: 'SINCE',
      align: 'right',
      maxWidth: 12,
      minWidth: WHOLE,
      rank: 4,
      cell: ({ sinceMs }) => segment(time(nowMs - sinceMs)),
    },
  ];
}

export const CALL_COLUMNS: readonly Column<EndedCall>[] = [
  ...callColumns(),
  { title: 'OUTCOME', align: 'left', maxWidth: 32, minWidth: READABLE_NAME, cell: outcome },
  { title: 'TOOK', align: 'right', maxWidth: 8, minWidth: WHOLE, cell: ({ durationMs }) => segment(time(durationMs)) },
  {
    title: 'BYTES',
    align: 'right',
    maxWidth: 10,
    minWidth: WHOLE,
    rank: 4,
    cell: ({ bytes }) => segment(String(bytes)),
  },
];

export function openCallColumns(nowMs: number): readonly Column<OpenCall>[] {
  const open = ({ atMs }: OpenCall): Segment => segment(time(nowMs - atMs), 'warn');
  return [...callColumns(), { title: 'OPEN FOR', align: 'right', maxWidth: 12, minWidth: WHOLE, cell: open }];
}

/** The columns of calls, ended or not. */
function callColumns(): readonly Column<OpenCall>[] {
  const minWidth = READABLE_PART;
  return [
    {
      title: 'TIME',
      align: 'left',
      maxWidth: 8,
      minWidth: WHOLE,
      rank: 2,
      cell: ({ atMs }) => segment(timeOfDay(atMs), 'quiet'),
    },
    { title: 'CALL', align: 'left', maxWidth: 40, minWidth, cell: ({ tool, method }) => segment(tool ?? method) },
    {
      title: 'CLIENT',
      align: 'left',
      maxWidth: 32,
      minWidth,
      rank: 3,
      cell: ({ client, clientVersion }) => clientName(client, clientVersion),
    },
    { title: 'SERVER', align: 'left', maxWidth: 24, minWidth, rank: 1, cell: ({ server }) => segment(server) },
  ];
}

function outcome(call: EndedCall): Segment {
  const text = call.code === null ? call.outcome : `${call.outcome} ${call.code}`;
  return segment(text, OUTCOME_TONES[call.outcome] ?? 'plain');
}

const OUTCOME_TONES: Readonly<Record<string, Tone>> = { error: 'warn', failed: 'bad', cancelled: 'quiet' };

function clientName(name: string | null, version: string | null): Segment {
  return segment([name ?? 'unnamed', version ?? ''].join(' '), name === null ? 'quiet' : 'plain');
}

const TRANSPORTS: Readonly<Record<string, string>> = {
  'streamable-http': 'HTTP',
  'http-sse': 'HTTP+SSE',
  websocket: 'WebSocket',
  grpc: 'gRPC',
  'byte-stream': 'byte stream',
  mqtt: 'MQTT',
};

export function speech(speech: Speech | null): string {
  if (speech === null) return '–';
  return `${TRANSPORTS[speech.transport] ?? speech.transport} ${speech.revision ?? speech.era}`;
}

const BARS = ' ▁▂▃▄▅▆▇█';

/** Draws one figure of the series in this many columns, up to now. */
export function sparkline(
  { atMs, stepMs, steps }: SeriesReport,
  figures: readonly number[],
  nowMs: number,
  columns: number,
): string {
  const sums = new Array<number>(columns).fill(0);
  const first = Math.floor(nowMs / stepMs) - steps + 1;
  for (const [index, startMs] of atMs.entries()) {
    const place = Math.floor(((startMs / stepMs - first) / steps) * columns);
    if (place >= 0 && place < columns) sums[place] = (sums[place] ?? 0) + (figures[index] ?? 0);
  }
  const most = Math.max(1, ...sums);
  return sums.map((sum) => BARS[Math.ceil((sum / most) * (BARS.length - 1))] ?? ' ').join('');
}

export function counted(count: number, one: string, several = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`;
}

export function time(ms: number | null): string {
  if (ms === null) return '–';
  if (ms < 1000) return `${ms < 10 ? Math.max(0, Math.round(ms * 10) / 10) : Math.round(ms)} ms`;
  if (ms < 60_000) return `${Math.floor(ms / 1000)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

export function timeOfDay(atMs: number): string {
  return new Date(atMs).toTimeString().slice(0, 8);
}
