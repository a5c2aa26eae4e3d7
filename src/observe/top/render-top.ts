import { printableLine } from '../../printable.ts';
import type { ServerStatus, StatusDocument } from '../status/status-document.ts';
import { CALL_COLUMNS, clientColumns, counted, PROBLEM_COLUMN, serverColumns, sparkline, time } from './columns.ts';
import { listedIn } from './listed.ts';
import { renderDetails } from './render-details.ts';
import { type Column, cut, type Line, layOutTable, segment, widthOf, widthOfTable } from './text-layout.ts';
import { FIRST_VIEW, type Seen, selectedIn, type ViewState } from './view-state.ts';

export interface TopView {
  /** URL that the status comes from. */
  readonly url: string;
  /** Message about the connection; empty: it works. */
  readonly notice: string;
  readonly columns: number;
  /** Current time by the clock of the bridge. */
  readonly nowMs: number;
}

export interface ScreenView extends TopView {
  readonly rows: number;
  /** `none`: the user has no keyboard here, so nothing is selected and no key is explained. */
  readonly keyboard: 'present' | 'none';
}

/** Lines that recent calls get at least, if there are as many, even with many servers and clients. */
const MIN_RECENT = 5;
const EMPTY: Line = [];
const MARK = '> ';
const NO_MARK = '  ';

/** Renders the status where there is no screen: all of it, and servers in the order of the configuration. */
export function renderText(status: StatusDocument, view: TopView): Line[] {
  const { columns, nowMs } = view;
  const { servers, clients, calls } = status;
  return [
    ...headLines(status, view),
    EMPTY,
    ...(servers.length === 0 ? NO_SERVERS : serverTable(servers, view, FIRST_VIEW).flat()),
    EMPTY,
    ...tableOf(clients, clientColumns(nowMs), columns, 'Nobody is connected.'),
    EMPTY,
    ...tableOf(calls.recent, CALL_COLUMNS, columns, 'No calls yet.'),
  ];
}

/** Renders the screen, with at most `rows` lines, of which the last one explains the keys. */
export function renderScreen(
  status: StatusDocument,
  state: ViewState,
  view: ScreenView,
): { readonly lines: readonly Line[]; readonly seen: Seen } {
  const hasKeys = view.keyboard === 'present';
  const rows = Math.max(0, hasKeys ? view.rows - 1 : view.rows);
  const { lines, seen } = renderPage(status, state, { ...view, rows });
  if (!hasKeys) return { lines, seen };
  const filling = new Array<Line>(Math.max(0, rows - lines.length)).fill(EMPTY);
  return { lines: [...lines, ...filling, helpLine(state, view.columns)].slice(0, view.rows), seen };
}

function renderPage(status: StatusDocument, state: ViewState, view: ScreenView) {
  const { page } = state;
  if (page.kind === 'keys') {
    return { lines: KEYS.map(keyLine).slice(0, view.rows), seen: { servers: [], hiddenLines: 0 } };
  }
  if (page.kind === 'details') {
    const [first = EMPTY] = headLines(status, view);
    const details = [first, EMPTY, ...renderDetails(status, page.server, view)];
    const hiddenLines = Math.max(0, details.length - view.rows);
    const start = Math.min(page.scrolled, hiddenLines);
    return { lines: details.slice(start, start + view.rows), seen: { servers: [], hiddenLines } };
  }
  return renderTables(status, state, view);
}

function renderTables(status: StatusDocument, state: ViewState, view: ScreenView) {
  const { columns, rows, nowMs } = view;
  const listed = listedIn(status, state);
  const names = listed.servers.map(({ name }) => name);
  const selected = view.keyboard === 'present' ? selectedIn(state, names) : undefined;
  const head = [...headLines(status, view), EMPTY];
  const clients = tableOf(listed.clients, clientColumns(nowMs), columns, noneOf('client', state));
  const recent = tableOf(listed.calls, CALL_COLUMNS, columns, noneOf('call', state));
  // Servers and clients share the lines that the head and the latest calls leave, with an empty line after each.
  const free = Math.max(0, rows - head.length - Math.min(MIN_RECENT, recent.length) - 2);
  const most = Math.max(MIN_SERVER_LINES, Math.ceil(free / 2), free - clients.length);
  const shownServers = serverLines(listed.servers, { state, view, selected, most });
  const shownClients = clip(clients, Math.max(2, free - shownServers.length));
  const lines = [...head, ...shownServers, EMPTY, ...shownClients, EMPTY, ...recent].slice(0, rows);
  return { lines, seen: { servers: names, hiddenLines: 0 } };
}

const NO_SERVERS: readonly Line[] = [[segment('There are no servers.', 'quiet')]];
/** The titles, the selected server with its problem, and the number of the others. */
const MIN_SERVER_LINES = 4;

function noneOf(what: 'server' | 'client' | 'call', { filter }: ViewState): string {
  if (filter !== '') return `No ${what} matches the filter.`;
  return { server: 'There are no servers.', client: 'Nobody is connected.', call: 'No calls yet.' }[what];
}

interface ServerList {
  readonly state: ViewState;
  readonly view: TopView;
  /** Name of the selected server; undefined: none is. */
  readonly selected: string | undefined;
  /** Limit of the lines. */
  readonly most: number;
}

/** The lines of the servers around the selected one, which is marked. */
function serverLines(servers: readonly ServerStatus[], { state, view, selected, most }: ServerList): readonly Line[] {
  if (servers.length === 0) return [[segment(noneOf('server', state), 'quiet')]];
  if (selected === undefined) {
    const [titles = [], ...blocks] = serverTable(servers, view, state);
    return [...titles, ...around(blocks, 0, most - titles.length)];
  }
  const narrower = { ...view, columns: Math.max(0, view.columns - MARK.length) };
  const [titles = [], ...blocks] = serverTable(servers, narrower, state);
  const place = servers.findIndex(({ name }) => name === selected);
  const marked = blocks.map((block, index) => block.map((line, part) => mark(line, index === place && part === 0)));
  return [...titles.map((line) => mark(line, false)), ...around(marked, place, most - titles.length)];
}

function mark(line: Line, isSelected: boolean): Line {
  if (!isSelected) return [segment(NO_MARK), ...line];
  const [name, ...others] = line;
  return [segment(MARK, 'strong'), ...(name ? [{ ...name, tone: 'selected' as const }] : []), ...others];
}

/** Returns blocks that fit into this many lines, among them the one at `place`, and how many are left out. */
function around(blocks: readonly (readonly Line[])[], place: number, most: number): readonly Line[] {
  const linesOf = (from: number, to: number) => blocks.slice(from, to).flat();
  if (linesOf(0, blocks.length).length <= most) return linesOf(0, blocks.length);
  let from = place;
  let to = place + 1;
  const fits = (start: number, end: number): boolean => linesOf(start, end).length < most;
  while (from > 0 && fits(from - 1, to)) from -= 1;
  while (to < blocks.length && fits(from, to + 1)) to += 1;
  const below = blocks.length - to;
  const others = from === 0 ? `… and ${below} more` : `… ${from} above and ${below} below`;
  return [...linesOf(from, to), [segment(others, 'quiet')]];
}

/** Returns the lines of the titles, and those of each server: with its problem below it, where that has no column. */
function serverTable(servers: readonly ServerStatus[], { columns, nowMs }: TopView, { sort }: ViewState): Line[][] {
  const given = serverColumns(nowMs, sort);
  const withProblems = [...given, PROBLEM_COLUMN].filter(({ cell }) => servers.some((one) => cell(one).text !== ''));
  if (widthOfTable(servers, withProblems) <= columns) {
    return layOutTable(servers, withProblems, columns).map((line) => [line]);
  }
  return layOutTable(servers, given, columns).map((line, index) => {
    const problem = servers[index - 1]?.problem ?? '';
    return problem === '' ? [line] : [line, [segment(cut(`  ${printableLine(problem)}`, columns), 'bad')]];
  });
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
  const version = `mcp-portage ${printableLine(bridge.version)}`;
  // The URL gives way to what is wrong with the connection.
  const url = cut(view.url, Math.max(0, view.columns - widthOf(version) - 2 - widthOf(notice.text)));
  return [
    [segment(version, 'strong'), segment(`  ${url}`, 'quiet'), notice],
    [segment(`up ${time(view.nowMs - bridge.startedAtMs)}   ${figures.join('   ')}`)],
    ...replicaLines(status),
    [segment(`last minute: ${counted(lastMinute.calls, 'call')}, `), errors, segment(latency)],
    [
      segment('ten minutes  ', 'quiet'),
      segment(sparkline(series, series.calls, view.nowMs, Math.max(10, Math.min(60, view.columns - 14)))),
    ],
  ];
}

/** The keys with their effects, in short for the help line and at length for the page of the keys. */
const KEYS: readonly { readonly key: string; readonly text: string }[] = [
  { key: 'q, Ctrl-C', text: 'quit' },
  { key: '↑ ↓, k j', text: 'select a server, or scroll its details' },
  { key: 'PgUp PgDn', text: 'the same, by ten' },
  { key: 'Enter', text: 'show everything about the selected server' },
  { key: 'Esc', text: 'go back, or clear the filter' },
  { key: '/', text: 'show only the servers, clients and tools that contain a text' },
  { key: 's', text: 'sort the servers by the next column' },
  { key: 'r', text: 'reverse their order' },
  { key: '?, h', text: 'show this list' },
];

function keyLine({ key, text }: (typeof KEYS)[number]): Line {
  return [segment(key.padEnd(12), 'strong'), segment(text)];
}

/** Width of a filter in the help line when it is not typed. */
const SHOWN_FILTER = 16;

/** Names the keys of the page, the most important first, as many as fit. */
function helpLine({ page, filter, sort, order }: ViewState, columns: number): Line {
  if (page.kind === 'typing') {
    const hints = '  Enter keep  Esc clear';
    const room = Math.max(1, columns - hints.length - 2);
    return [segment(`/${endOf(filter, room)}_`, 'strong'), segment(hints, 'quiet')];
  }
  const sorted = `s sort: ${sort}${order === 'usual' ? '' : ' reversed'}`;
  const filtered = filter === '' ? [] : [`filter: ${cut(filter, SHOWN_FILTER)}`, 'Esc clear'];
  const hints = {
    keys: ['q quit', 'any other key back'],
    details: ['q quit', '? keys', 'Esc back', '↑↓ scroll'],
    tables: ['q quit', '? keys', ...filtered, '↑↓ select', 'Enter details', '/ filter', sorted, 'r reverse'],
  }[page.kind];
  let line = '';
  for (const hint of hints) {
    const longer = line === '' ? hint : `${line}  ${hint}`;
    if (widthOf(longer) > columns) break;
    line = longer;
  }
  return [segment(line, 'quiet')];
}

/** Returns the end of a text that is typed, which is where the user looks. */
function endOf(text: string, width: number): string {
  const characters = [...text];
  while (widthOf(characters.join('')) > width) characters.shift();
  return characters.join('');
}
