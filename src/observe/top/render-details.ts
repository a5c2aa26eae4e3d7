import type { ServerStatus, StatusDocument } from '../status/status-document.ts';
import {
  CALL_COLUMNS,
  clientColumns,
  counted,
  openCallColumns,
  sparkline,
  speech,
  stateOf,
  time,
  timeOfDay,
  toneOf,
} from './columns.ts';
import { type Column, type Line, layOutTable, segment, type Tone, wrap } from './text-layout.ts';

/** Width of the names of the figures, and of the gap behind them. */
const LABEL = 13;
const EMPTY: Line = [];

/** Renders everything that a status says about one server. */
export function renderDetails(
  status: StatusDocument,
  name: string,
  { columns, nowMs }: { readonly columns: number; readonly nowMs: number },
): readonly Line[] {
  const server = status.servers.find((one) => one.name === name);
  if (server === undefined) return [[segment(`${name} is not served anymore.`, 'bad')]];
  const ofServer = (item: { readonly server: string }): boolean => item.server === name;
  const oneServer = <Item>(all: readonly Column<Item>[]) => all.filter(({ title }) => title !== 'SERVER');
  const clients = status.clients.filter(ofServer);
  const open = status.calls.longestOpen.filter(ofServer);
  const recent = status.calls.recent.filter(ofServer);
  const table = <Item>(items: readonly Item[], all: readonly Column<Item>[], ifNone: string): readonly Line[] =>
    items.length === 0 ? [[segment(ifNone, 'quiet')]] : layOutTable(items, oneServer(all), columns);
  return [
    ...figures(server, nowMs, columns),
    EMPTY,
    ...table(clients, clientColumns(nowMs), 'Nobody is connected.'),
    ...(open.length === 0 ? [] : [EMPTY, ...table(open, openCallColumns(nowMs), '')]),
    EMPTY,
    ...table(recent, CALL_COLUMNS, 'No calls yet.'),
  ];
}

function figures(server: ServerStatus, nowMs: number, columns: number): Line[] {
  const { sinceMs, problem, sseUrl, sseSunset, wsUrl, hubs, lastMinute, series } = server;
  const lines: Line[] = [];
  const say = (label: string, text: string, tone: Tone = 'plain'): void => {
    for (const [index, part] of wrap(text, Math.max(1, columns - LABEL)).entries()) {
      lines.push([segment((index === 0 ? label : '').padEnd(LABEL), 'quiet'), segment(part, tone)]);
    }
  };
  say('server', server.name, 'strong');
  const since = sinceMs === null ? '' : `, since ${timeOfDay(sinceMs)} (${time(nowMs - sinceMs)})`;
  say('state', stateOf({ ...server, sinceMs: null }, nowMs) + since, toneOf(server));
  if (problem !== null) say('problem', problem, 'bad');
  say('kind', KINDS[server.kind] ?? server.kind);
  say('speaks', server.speaks === null ? 'not known yet' : speech(server.speaks));
  say('HTTP', server.url);
  if (sseUrl !== null) say('HTTP+SSE', sseUrl);
  if (sseSunset !== null) say('', `ends ${sseSunset}`, 'warn');
  if (wsUrl !== null) say('WebSocket', wsUrl);
  for (const { url, state, problem: reason } of hubs) {
    say('hub', `${url} ${state}${reason === null ? '' : `: ${reason}`}`, state === 'connected' ? 'plain' : 'warn');
  }
  say(
    'runs',
    [
      counted(server.processes, 'process', 'processes'),
      counted(server.restarts, 'restart'),
      counted(server.sessions, 'session'),
      `${counted(server.openCalls, 'call')} open`,
    ].join(', '),
  );
  const latency = lastMinute.p50Ms === null ? '' : `, median ${time(lastMinute.p50Ms)}, 95 % ${time(lastMinute.p95Ms)}`;
  say('last minute', `${counted(lastMinute.calls, 'call')}, ${counted(lastMinute.errors, 'error')}${latency}`);
  const width = Math.max(1, Math.min(60, columns - LABEL));
  const chart = (label: string, counts: readonly number[], tone: Tone): void => {
    lines.push([segment(label.padEnd(LABEL), 'quiet'), segment(sparkline(series, counts, nowMs, width), tone)]);
  };
  chart('ten minutes', series.calls, 'plain');
  if (series.errors.some((count) => count > 0)) chart('errors', series.errors, 'bad');
  return lines;
}

const KINDS: Readonly<Record<string, string>> = {
  command: 'a command that the bridge runs',
  url: 'a remote server',
  stream: 'a byte stream',
  aggregate: 'several servers as one',
};
