/**
 * The usage, as it is kept in files and passed to programs: plain data without unknown members. It holds no payload,
 * tool, caller, credential or session id.
 */
import type { DeprecatedFeature, Transport } from '../../relay/observer.ts';
import { LATENCY_BUCKETS } from '../latency.ts';

export interface Usage {
  /** Raised if a member ever changes its meaning. */
  readonly format: 1;
  readonly served: readonly ServedRecord[];
  readonly rows: readonly UsageRow[];
}

/** An endpoint: a server over one transport. */
export interface ServedEndpoint {
  /** Name of the server as passed to observers. */
  readonly server: string;
  readonly transport: Transport;
  /** Path in the URL; undefined: the transport is a pipe. */
  readonly path: string | undefined;
  /** Announced end, as set by the operator; undefined: none is announced. */
  readonly sunset: string | undefined;
}

/** The time in which an endpoint was served and watched. Only in this time can it be called unused. */
export interface ServedRecord extends ServedEndpoint {
  readonly sinceMs: number;
  readonly untilMs: number;
  /** Days in this time on which it was watched at all, oldest first. */
  readonly days: readonly number[];
}

/**
 * - `client`: one client, which may have given its name.
 * - `others`: clients beyond the limit, which are counted together.
 * - `bridge`: mcp-portage itself, as a client of the server.
 */
export type UserKind = 'client' | 'others' | 'bridge';

export interface UsageClient {
  readonly kind: UserKind;
  readonly name: string | undefined;
  readonly version: string | undefined;
  /** Transport; undefined: the row is that of the bridge. */
  readonly transport: Transport | undefined;
  /** Revision; undefined: unknown, or the row counts several clients together. */
  readonly revision: string | undefined;
}

export interface UsageServer {
  readonly name: string;
  /** Transport of the server; undefined: not known at that time, or the row counts several servers together. */
  readonly transport: Transport | undefined;
  readonly revision: string | undefined;
}

export interface UsageRow {
  readonly client: UsageClient;
  readonly server: UsageServer;
  /** Wall-clock times in milliseconds since the epoch. */
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  /** Oldest first. */
  readonly days: readonly DayCounts[];
  readonly deprecated: readonly DeprecatedUse[];
}

export interface DayCounts {
  /** Days since 1970-01-01, UTC. */
  readonly day: number;
  /** Sessions that began on this day. */
  readonly sessions: number;
  /** Sessions that were already open when the day's first event was counted. */
  readonly carried: number;
  /** Clients that got no session. */
  readonly refused: number;
  /** Requests, except those that open a session. */
  readonly calls: number;
  /** Calls that got an error from the server, or failed. */
  readonly errors: number;
  readonly requestBytes: number;
  readonly answerBytes: number;
  /** Answered calls by duration, in the buckets of latency.ts. Ends with the last bucket that is not empty. */
  readonly latency: readonly number[];
}

export interface DeprecatedUse {
  readonly feature: DeprecatedFeature;
  readonly count: number;
  readonly lastSeenMs: number;
}

export const DAY_MS = 24 * 60 * 60_000;

export function dayOf(timeMs: number): number {
  return Math.floor(timeMs / DAY_MS);
}

/** Days that are kept. */
export const MAX_DAYS = 400;
/** Pairs of client and server with their own row. Beyond the limit the least recently seen are counted together. */
export const MAX_ROWS = 500;
/** Rows that count several clients together. */
export const MAX_OTHERS_ROWS = 100;
/** Limit of the day entries of all rows. */
export const MAX_DAY_COUNTS = 10_000;
/** Endpoints that are kept, including those that are no longer served. */
export const MAX_SERVED = 300;
export const MAX_NAME_LENGTH = 64;
/** Limits the text of a version or a revision. */
export const MAX_VERSION_LENGTH = 32;
export const MAX_SERVER_LENGTH = 128;
const MAX_PATH_LENGTH = 256;

/** Larger counts are wrong or forged, and sums of them would not stay exact. */
const MAX_COUNT = Number.MAX_SAFE_INTEGER / 4;
/** Largest time that a JavaScript Date can represent. */
const MAX_TIME_MS = 8.64e15;

/** Error of a text that should be a Usage. It names the place and quotes no value. */
export class UsageFault extends Error {
  override readonly name = 'UsageFault';

  constructor(place: string, expected: string) {
    super(`${place === '' ? 'it' : place} is not ${expected}`);
  }
}

/** Parses a Usage, or throws UsageFault. Unknown members, which a later version may have added, are ignored. */
export function parseUsage(json: unknown): Usage {
  const fields = objectAt(json, '');
  if (fields.format !== 1) throw new UsageFault('format', '1, the one that this version of mcp-portage reads');
  return {
    format: 1,
    served: itemsOf(fields, 'served', '', MAX_SERVED).map(([item, place]) => parseServed(item, place)),
    rows: itemsOf(fields, 'rows', '', MAX_ROWS + MAX_OTHERS_ROWS).map(([item, place]) => parseRow(item, place)),
  };
}

function parseServed(json: unknown, place: string): ServedRecord {
  const fields = objectAt(json, place);
  const sinceMs = timeOf(fields, 'sinceMs', place);
  return {
    server: textOf(fields, 'server', place, MAX_SERVER_LENGTH),
    transport: choiceOf(fields, 'transport', place, TRANSPORTS),
    path: known(fields, 'path', () => textOf(fields, 'path', place, MAX_PATH_LENGTH)),
    sunset: shortText(fields, 'sunset', place, MAX_VERSION_LENGTH),
    sinceMs,
    untilMs: Math.max(sinceMs, timeOf(fields, 'untilMs', place)),
    days: ascending(
      itemsOf(fields, 'days', place, MAX_DAYS).map(([item, at]) => numberAt(item, at, dayOf(MAX_TIME_MS))),
      `${place}.days`,
    ),
  };
}

const TRANSPORTS: readonly Transport[] = [
  'stdio',
  'byte-stream',
  'websocket',
  'grpc',
  'mqtt',
  'streamable-http',
  'http-sse',
  'aggregate',
  'replay',
];
const USER_KINDS: readonly UserKind[] = ['client', 'others', 'bridge'];
const FEATURES: readonly DeprecatedFeature[] = ['sampling', 'roots', 'logging', 'batch', 'dynamic-client-registration'];

function parseRow(json: unknown, place: string): UsageRow {
  const fields = objectAt(json, place);
  const client = objectAt(fields.client, `${place}.client`);
  const server = objectAt(fields.server, `${place}.server`);
  const days = itemsOf(fields, 'days', place, MAX_DAYS).map(([item, at]) => parseDay(item, at));
  ascending(
    days.map(({ day }) => day),
    `${place}.days`,
  );
  const uses = itemsOf(fields, 'deprecated', place, FEATURES.length);
  return {
    client: {
      kind: choiceOf(client, 'kind', `${place}.client`, USER_KINDS),
      name: shortText(client, 'name', `${place}.client`, MAX_NAME_LENGTH),
      version: shortText(client, 'version', `${place}.client`, MAX_VERSION_LENGTH),
      transport: known(client, 'transport', () => choiceOf(client, 'transport', `${place}.client`, TRANSPORTS)),
      revision: shortText(client, 'revision', `${place}.client`, MAX_VERSION_LENGTH),
    },
    server: {
      name: textOf(server, 'name', `${place}.server`, MAX_SERVER_LENGTH),
      transport: known(server, 'transport', () => choiceOf(server, 'transport', `${place}.server`, TRANSPORTS)),
      revision: shortText(server, 'revision', `${place}.server`, MAX_VERSION_LENGTH),
    },
    firstSeenMs: timeOf(fields, 'firstSeenMs', place),
    lastSeenMs: timeOf(fields, 'lastSeenMs', place),
    days,
    deprecated: uses.map(([item, at]) => parseUse(item, at)),
  };
}

function parseDay(json: unknown, place: string): DayCounts {
  const fields = objectAt(json, place);
  const count = (name: string): number => numberAt(fields[name], `${place}.${name}`, MAX_COUNT);
  return {
    day: numberAt(fields.day, `${place}.day`, dayOf(MAX_TIME_MS)),
    sessions: count('sessions'),
    carried: count('carried'),
    refused: count('refused'),
    calls: count('calls'),
    errors: count('errors'),
    requestBytes: count('requestBytes'),
    answerBytes: count('answerBytes'),
    latency: itemsOf(fields, 'latency', place, LATENCY_BUCKETS).map(([item, at]) => numberAt(item, at, MAX_COUNT)),
  };
}

function parseUse(json: unknown, place: string): DeprecatedUse {
  const fields = objectAt(json, place);
  return {
    feature: choiceOf(fields, 'feature', place, FEATURES),
    count: numberAt(fields.count, `${place}.count`, MAX_COUNT),
    lastSeenMs: timeOf(fields, 'lastSeenMs', place),
  };
}

type Fields = Readonly<Record<string, unknown>>;

function objectAt(value: unknown, place: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw new UsageFault(place, 'an object');
}

function itemsOf(
  fields: Fields,
  name: string,
  above: string,
  maxItems: number,
): readonly (readonly [item: unknown, place: string])[] {
  const value = fields[name];
  const place = above === '' ? name : `${above}.${name}`;
  if (!Array.isArray(value) || value.length > maxItems)
    throw new UsageFault(place, `a list of up to ${maxItems} items`);
  return value.map((item: unknown, index) => [item, `${place}[${index}]`]);
}

/** Reads an optional member; undefined: it is missing. */
function known<Value>(fields: Fields, name: string, read: () => Value): Value | undefined {
  return fields[name] === undefined ? undefined : read();
}

function shortText(fields: Fields, name: string, place: string, maxLength: number): string | undefined {
  return known(fields, name, () => textOf(fields, name, place, maxLength));
}

function textOf(fields: Fields, name: string, place: string, maxLength: number): string {
  const value = fields[name];
  if (typeof value === 'string' && value.length <= maxLength) return value;
  throw new UsageFault(`${place}.${name}`, `a text of up to ${maxLength} characters`);
}

function choiceOf<Choice extends string>(
  fields: Fields,
  name: string,
  place: string,
  choices: readonly Choice[],
): Choice {
  const found = choices.find((choice) => choice === fields[name]);
  if (found === undefined) throw new UsageFault(`${place}.${name}`, `one of ${choices.join(', ')}`);
  return found;
}

function timeOf(fields: Fields, name: string, place: string): number {
  return numberAt(fields[name], `${place}.${name}`, MAX_TIME_MS);
}

function numberAt(value: unknown, place: string, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max) return value;
  throw new UsageFault(place, 'a whole number that is not negative');
}

function ascending(days: readonly number[], place: string): readonly number[] {
  if (days.some((day, index) => index > 0 && day <= (days[index - 1] as number)))
    throw new UsageFault(place, 'in the order of the days');
  return days;
}

export function isoOf(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
