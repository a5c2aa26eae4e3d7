/** Whether anybody would miss an endpoint. */

import { toPrintable } from '../../printable.ts';
import type { Transport } from '../../relay/observer.ts';
import type { ReportRow } from './report-rows.ts';
import {
  DAY_MS,
  dayOf,
  isoOf,
  MAX_NAME_LENGTH,
  MAX_SERVER_LENGTH,
  type ServedRecord,
  type UsageClient,
} from './usage.ts';
import { OTHER_SERVERS } from './usage-rows.ts';

export interface JudgedEndpoint {
  readonly server: string;
  readonly transport: Transport;
  /** Undefined: clients are at the other end of a pipe, or it is not known. */
  readonly path: string | undefined;
  /** When it is going to end, or has ended, as its operator has said; undefined: nobody has. */
  readonly sunset: string | undefined;
  readonly verdict: EndpointVerdict;
  /** The verdict in words, in one line. */
  readonly text: string;
}

/**
 * - `not-yet`: it is deprecated and was used in the time of the report.
 * - `safe`: it is deprecated and was watched that long without being used.
 * - `too-early`: it is deprecated, and nobody has used it, but it was watched on `watchedDays` of `days` only.
 * - `incomplete`: it is deprecated, and nobody is known to have used it, but some of the usage could not be read.
 * - `not-served`: it was switched off, or its bridge has not run in all that time.
 * - `current`: it is not deprecated, so nobody asks whether it can go.
 */
export type EndpointVerdict =
  | { readonly kind: 'not-yet'; readonly use: EndpointUse }
  | { readonly kind: 'safe' }
  | { readonly kind: 'too-early'; readonly watchedDays: number; readonly days: number }
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'not-served'; readonly until: string; readonly use: EndpointUse | undefined }
  | { readonly kind: 'current'; readonly use: EndpointUse | undefined };

export interface EndpointUse {
  readonly lastUsed: string;
  /** Who used it last. */
  readonly client: UsageClient;
  /** Rows of clients; several versions of one are several. */
  readonly clients: number;
  readonly sessions: number;
  readonly refused: number;
  readonly calls: number;
}

export interface ReportScope {
  readonly sinceMs: number;
  readonly nowMs: number;
  /** Some of the usage could not be read. */
  readonly isIncomplete: boolean;
}

/**
 * An endpoint is taken for switched off where its server was served without it for longer than this. A bridge notes what
 * it serves every ten minutes.
 */
const SWITCHED_OFF_MS = 30 * 60_000;
/** Who watched on fewer days than this share of them has not seen enough to say that nobody comes. */
const ENOUGH_DAYS = 0.5;

/** `rows`: what was used in that time, the latest first. */
export function judgeEndpoints(
  served: readonly ServedRecord[],
  rows: readonly ReportRow[],
  scope: ReportScope,
): readonly JudgedEndpoint[] {
  const judged = served.map((record) => ({ record, verdict: judge(record, served, rows, scope) }));
  const isSafe = judged.every(({ verdict }) => !FORBIDDING.includes(verdict.kind));
  const known = judged
    .map(({ record, verdict }): JudgedEndpoint => {
      const { server, transport, path, sunset } = record;
      // Nobody can say of a time before it was served that it was not used.
      const watchedMs = scope.nowMs - Math.max(scope.sinceMs, record.sinceMs);
      const text = describe(nameOf(record, served), verdict, { ...scope, isSafe, watchedMs });
      return { server, transport, path, sunset, verdict, text: text + describeSunset(sunset, verdict) };
    })
    .sort((one, other) => RANKS[one.verdict.kind] - RANKS[other.verdict.kind]);
  return [...unwatched(served, rows, scope), ...known];
}

/** With one of these, HTTP+SSE has to stay. */
const FORBIDDING: readonly EndpointVerdict['kind'][] = ['not-yet', 'too-early', 'incomplete'];
/** In this order they are told. */
const RANKS: Readonly<Record<EndpointVerdict['kind'], number>> = {
  'not-yet': 0,
  'too-early': 1,
  incomplete: 2,
  safe: 3,
  'not-served': 4,
  current: 5,
};

function judge(
  record: ServedRecord,
  served: readonly ServedRecord[],
  rows: readonly ReportRow[],
  { sinceMs, nowMs, isIncomplete }: ReportScope,
): EndpointVerdict {
  const use = useOf(rows, record);
  if (record.untilMs < sinceMs || isSwitchedOff(record, served))
    return { kind: 'not-served', until: isoOf(record.untilMs), use };
  if (record.transport !== 'http-sse') return { kind: 'current', use };
  if (use !== undefined) return { kind: 'not-yet', use };
  if (isIncomplete) return { kind: 'incomplete' };
  const days = Math.ceil((nowMs - sinceMs) / DAY_MS);
  if (record.sinceMs > sinceMs) {
    const watchedDays = Math.min(days, Math.max(0, Math.floor((nowMs - record.sinceMs) / DAY_MS)));
    return { kind: 'too-early', watchedDays, days };
  }
  const watchedDays = record.days.filter((day) => day >= dayOf(sinceMs) && day <= dayOf(nowMs)).length;
  return watchedDays < ENOUGH_DAYS * days ? { kind: 'too-early', watchedDays, days } : { kind: 'safe' };
}

/** A server that is run by its client now and then says nothing of its endpoints. */
function isSwitchedOff(record: ServedRecord, served: readonly ServedRecord[]): boolean {
  return (
    record.transport !== 'stdio' &&
    served.some(
      ({ server, transport, untilMs }) =>
        server === record.server && transport !== 'stdio' && untilMs > record.untilMs + SWITCHED_OFF_MS,
    )
  );
}

function useOf(
  rows: readonly ReportRow[],
  { server, transport }: { readonly server: string; readonly transport: Transport },
): EndpointUse | undefined {
  // A row may stand for several servers that are not told apart: any of them may have been used.
  const used = rows.filter(
    (row) => row.client.transport === transport && (row.server.name === server || row.server.name === OTHER_SERVERS),
  );
  const [latest] = used;
  if (latest === undefined) return undefined;
  const sum = (name: 'sessions' | 'refused' | 'calls'): number => used.reduce((total, row) => total + row[name], 0);
  return {
    lastUsed: latest.lastSeen,
    client: latest.client,
    clients: used.length,
    sessions: sum('sessions'),
    refused: sum('refused'),
    calls: sum('calls'),
  };
}

/** Uses of HTTP+SSE at servers of which nobody has noted that they were served with it. */
function unwatched(
  served: readonly ServedRecord[],
  rows: readonly ReportRow[],
  scope: ReportScope,
): readonly JudgedEndpoint[] {
  const watched = new Set(served.flatMap(({ server, transport }) => (transport === 'http-sse' ? [server] : [])));
  const used = rows.filter(({ client }) => client.transport === 'http-sse').map(({ server }) => server.name);
  const isKnown = (name: string): boolean => watched.has(name) || (name === OTHER_SERVERS && watched.size > 0);
  return [...new Set(used)]
    .filter((name) => !isKnown(name))
    .flatMap((server) => {
      const endpoint = { server, transport: 'http-sse', path: undefined, sunset: undefined } as const;
      const use = useOf(rows, endpoint);
      if (use === undefined) return [];
      const verdict: EndpointVerdict = { kind: 'not-yet', use };
      return [
        {
          ...endpoint,
          verdict,
          text: describe(nameOf(endpoint, served), verdict, { ...scope, isSafe: false, watchedMs: 0 }),
        },
      ];
    });
}

function nameOf(
  { server, transport, path }: Pick<ServedRecord, 'server' | 'transport' | 'path'>,
  served: readonly ServedRecord[],
): string {
  const isAlone = served.filter((other) => other.path === path && other.transport === transport).length === 1;
  const what = path === undefined ? TRANSPORT_WORDS[transport] : toPrintable(path, MAX_SERVER_LENGTH);
  return isAlone ? what : `${what} of ${toPrintable(server, MAX_SERVER_LENGTH)}`;
}

export const TRANSPORT_WORDS: Readonly<Record<Transport, string>> = {
  stdio: 'stdio',
  'byte-stream': 'byte stream',
  websocket: 'WebSocket',
  'http-sse': 'HTTP+SSE',
  'streamable-http': 'Streamable HTTP',
};

interface Description extends ReportScope {
  readonly isSafe: boolean;
  /** The part of the report's time in which the endpoint was served. */
  readonly watchedMs: number;
}

function describe(name: string, verdict: EndpointVerdict, { nowMs, isSafe, watchedMs }: Description): string {
  const window = formatSpan(watchedMs);
  switch (verdict.kind) {
    case 'not-yet':
      return `${name}: ${describeUse(verdict.use, nowMs)}: not yet`;
    case 'safe':
      return isSafe
        ? `${name}: unused for ${window}: safe to switch off with --no-sse`
        : `${name}: unused for ${window}: safe to switch off, but --no-sse has to wait for the others`;
    case 'too-early': {
      const { watchedDays, days } = verdict;
      return `${name}: unused so far, but watched on only ${watchedDays} of ${count(days, 'day')}: too early to say`;
    }
    case 'incomplete':
      return `${name}: unused as far as is known, but some of the usage could not be read`;
    case 'not-served': {
      const use = verdict.use === undefined ? '' : `; ${describeUse(verdict.use, nowMs)}`;
      return `${name}: not served for ${formatSpan(nowMs - Date.parse(verdict.until))}${use}`;
    }
    case 'current':
      return verdict.use === undefined
        ? `${name}: unused for ${window}; not deprecated`
        : `${name}: ${describeUse(verdict.use, nowMs)}; not deprecated`;
  }
}

/** Nothing where the endpoint is served no more: nobody needs to know when it should have ended. */
function describeSunset(sunset: string | undefined, { kind }: EndpointVerdict): string {
  return sunset === undefined || kind === 'not-served' ? '' : `; announced to end on ${toPrintable(sunset, 40)}`;
}

function describeUse({ lastUsed, client, clients, sessions, refused, calls }: EndpointUse, nowMs: number): string {
  const others = clients > 1 ? ` and ${count(clients - 1, 'other')}` : '';
  const much =
    sessions > 0 ? count(sessions, 'session') : calls > 0 ? count(calls, 'call') : `refused ${count(refused, 'time')}`;
  return `last used ${formatAgo(nowMs - Date.parse(lastUsed))} by ${nameOfClient(client)}${others} (${much})`;
}

export function nameOfClient({ kind, name, version }: UsageClient): string {
  switch (kind) {
    case 'bridge':
      return 'mcp-portage';
    case 'others':
      return 'other clients';
    case 'client':
      if (name === undefined || name.trim() === '') return 'a client without a name';
      return toPrintable(`${name} ${version ?? ''}`, 2 * MAX_NAME_LENGTH);
  }
}

const UNITS: readonly (readonly [ms: number, name: string])[] = [
  [DAY_MS, 'day'],
  [60 * 60_000, 'hour'],
  [60_000, 'minute'],
];

export function formatSpan(ms: number): string {
  const [unitMs, name] = UNITS.find(([unit]) => ms >= unit) ?? [1000, 'second'];
  return count(Math.max(0, Math.floor(ms / unitMs)), name);
}

/** A clock that was set back makes times of the future; they are as good as now. */
export function formatAgo(ms: number): string {
  return ms < 60_000 ? 'just now' : `${formatSpan(ms)} ago`;
}

export function count(number: number, name: string): string {
  return `${number} ${name}${number === 1 ? '' : 's'}`;
}
