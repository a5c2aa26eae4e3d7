/** Judges for each endpoint if it could be switched off without a client missing it. */

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
  /** Path of the endpoint; undefined: the transport is a pipe, or the path is not known. */
  readonly path: string | undefined;
  /** Announced end of the endpoint, which may have passed; undefined: none is announced. */
  readonly sunset: string | undefined;
  readonly verdict: EndpointVerdict;
  /** The verdict in words, in one line. */
  readonly text: string;
}

/**
 * The verdict on an endpoint. Only deprecated endpoints are judged.
 * - `not-yet`: it is deprecated and was used in the time of the report.
 * - `safe`: it is deprecated and was watched that long without being used.
 * - `too-early`: it is deprecated and unused, but was watched on only `watchedDays` of `days`.
 * - `incomplete`: it is deprecated and no use is known, but some of the usage could not be read.
 * - `not-served`: it was switched off, or its bridge has not run in all that time.
 * - `current`: it is not deprecated.
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
  /** Client that used it last. */
  readonly client: UsageClient;
  /** Number of clients; several versions of one client count separately. */
  readonly clients: number;
  readonly sessions: number;
  readonly refused: number;
  readonly calls: number;
}

export interface ReportScope {
  readonly sinceMs: number;
  readonly nowMs: number;
  /** True if some of the usage could not be read. */
  readonly isIncomplete: boolean;
}

/**
 * An endpoint counts as switched off if its server was served without it for longer than this. Bridges record what they
 * serve every ten minutes.
 */
const SWITCHED_OFF_MS = 30 * 60_000;
/** Share of days on which an endpoint must have been watched before it can be called unused. */
const ENOUGH_DAYS = 0.5;

/** Judges all endpoints. `rows` is the usage in the report's time, latest first. */
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
      // The time before the endpoint was served does not count as unused.
      const watchedMs = scope.nowMs - Math.max(scope.sinceMs, record.sinceMs);
      const text = describe(nameOf(record, served), verdict, { ...scope, isSafe, watchedMs });
      return { server, transport, path, sunset, verdict, text: text + describeSunset(sunset, verdict) };
    })
    .sort((one, other) => RANKS[one.verdict.kind] - RANKS[other.verdict.kind]);
  return [...unwatched(served, rows, scope), ...known];
}

/** Verdicts that keep HTTP+SSE from being switched off. */
const FORBIDDING: readonly EndpointVerdict['kind'][] = ['not-yet', 'too-early', 'incomplete'];
/** Order of the verdicts in the report. */
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

/**
 * Returns true if the endpoint's server was served without it lately. A server that its client starts over stdio now
 * and then says nothing about network endpoints.
 */
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
  // A row may stand for several servers that are counted together, and each of them may have been used.
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

/** Judges servers that were used over HTTP+SSE although no record says that they were served with it. */
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
  mqtt: 'MQTT',
  websocket: 'WebSocket',
  grpc: 'gRPC',
  'http-sse': 'HTTP+SSE',
  'streamable-http': 'Streamable HTTP',
  aggregate: 'the aggregate',
  replay: 'replay',
};

interface Description extends ReportScope {
  readonly isSafe: boolean;
  /** Part of the report's time in which the endpoint was served. */
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

/** Returns the announced end, or an empty text if the endpoint is no longer served. */
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

/** Formats a time span in the past. Times in the future, which occur after a clock was set back, count as now. */
export function formatAgo(ms: number): string {
  return ms < 60_000 ? 'just now' : `${formatSpan(ms)} ago`;
}

export function count(number: number, name: string): string {
  return `${number} ${name}${number === 1 ? '' : 's'}`;
}
