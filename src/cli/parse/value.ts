/**
 * Parsers from text to a typed value, one per kind of value. They are pure: a failure is returned as a description of
 * the expected form, and the caller, which knows the option, turns it into an error.
 */

import { isIP } from 'node:net';
import { compileNamePattern } from '../../config/name-pattern.ts';
import type { WatchedPath } from '../../config/server.ts';
import { suggest } from '../../suggest.ts';
import type { Parsed, ReadingContext } from '../options/value-type.ts';

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const UNIT_BYTES: Readonly<Record<string, number>> = { '': 1, b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 };

/** A Node timer with a longer delay fires at once: the delay is a signed 32-bit number of milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;
const DAY_MS = 24 * 3_600_000;
const WINDOW_MS: Readonly<Record<string, number>> = { ...UNIT_MS, d: DAY_MS, w: 7 * DAY_MS };
/** Usage counts are kept for 400 days. */
const MAX_WINDOW_MS = 400 * DAY_MS;

/** About the longest string that V8 allows, which has 2^29 - 24 characters. */
const MAX_BYTES = 512 * 2 ** 20;
/** A smaller limit would refuse an ordinary `initialize`. */
const MIN_BYTES = 4 * 2 ** 10;

/** Parses `500ms`, `30s`, `5m`, `2h` or `1.5h` into milliseconds; a bare number is seconds. */
export function parseDuration(text: string): Parsed<number> {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/i.exec(text);
  const ms = Math.round(Number(match?.[1]) * (UNIT_MS[(match?.[2] ?? 's').toLowerCase()] ?? Number.NaN));
  if (ms <= MAX_TIMER_MS) return { ok: true, value: ms, ...doubtOfMilliseconds(text) };
  return {
    ok: false,
    expected: 'a duration like 500ms, 30s, 5m or 2h (a bare number is seconds; at most 596h)',
    meant: inShort(text, parseDuration),
  };
}

const LONG_UNITS: readonly (readonly [RegExp, string])[] = [
  [/^(milliseconds?|millis|msecs?|ms)$/, 'ms'],
  [/^(seconds?|secs?|s)$/, 's'],
  [/^(minutes?|mins?|m)$/, 'm'],
  [/^(hours?|hrs?|h)$/, 'h'],
  [/^(days?|d)$/, 'd'],
  [/^(weeks?|wks?|w)$/, 'w'],
];

/** Returns `5m` for `5 minutes`, if `parse` accepts that. */
function inShort(text: string, parse: (short: string) => Parsed<number>): string | undefined {
  const [, number, word = ''] = /^(\d+(?:\.\d+)?)\s*([a-z]+)$/i.exec(text) ?? [];
  const unit = LONG_UNITS.find(([pattern]) => pattern.test(word.toLowerCase()))?.[1];
  const short = `${number}${unit}`;
  return unit !== undefined && text !== short && parse(short).ok ? short : undefined;
}

/**
 * Doubts a duration that was probably meant in milliseconds, which is the unit of other bridges. Taken for seconds, such
 * a number is a limit of hours, and the mistake would stay unnoticed until the limit is needed. A limit that is really
 * meant to be hours is hardly ever written as thousands of seconds.
 */
function doubtOfMilliseconds(text: string): { readonly doubt?: string } {
  if (!/^([5-9]|[1-9]\d+)000$/.test(text)) return {};
  const hours = (Number(text) / 3600).toFixed(1);
  return {
    doubt: `${text}: a bare number is seconds, so these are ${hours} hours; milliseconds are written ${text}ms`,
  };
}

/** Parses the length of a period in the past, such as `30d` or `12w`, into milliseconds. The unit is required. */
export function parseWindow(text: string): Parsed<number> {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)$/i.exec(text);
  const ms = Math.round(Number(match?.[1]) * (WINDOW_MS[(match?.[2] ?? '').toLowerCase()] ?? Number.NaN));
  if (ms > 0 && ms <= MAX_WINDOW_MS) return accept(ms);
  return { ok: false, expected: 'a time like 12h, 30d or 12w (at most 400d)', meant: inShort(text, parseWindow) };
}

/** HTTP+SSE was deprecated in March 2025, and a sunset must not be earlier than the deprecation. [RFC 9745 4] */
const EARLIEST_SUNSET_MS = Date.UTC(2025, 3, 1);
const LAST_OF_A_DAY = 'T23:59:59Z';

/**
 * Parses `2027-03-31`, which means the end of that day in UTC, or an exact time such as `2027-03-31T12:00Z` or
 * `2027-03-31T12:00:00+02:00`.
 */
export function parseSunset(text: string): Parsed<{ readonly date: string; readonly atMs: number }> {
  const [, day, time] = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2}))?$/.exec(text) ?? [];
  const atMs = Date.parse(`${day}${time ?? LAST_OF_A_DAY}`);
  // Date accepts April 31 and turns it into May 1.
  const isReal = day !== undefined && !Number.isNaN(atMs) && new Date(day).toISOString().startsWith(day);
  if (isReal && atMs >= EARLIEST_SUNSET_MS) return accept({ date: text, atMs });
  return refuse(
    `a date as YYYY-MM-DD, the last day, or a time as YYYY-MM-DDThh:mm:ssZ; not before ${new Date(EARLIEST_SUNSET_MS).toISOString().slice(0, 10)}`,
  );
}

/** Parses a duration like `parseDuration`, but refuses 0. */
export function parsePositiveDuration(text: string): Parsed<number> {
  const parsed = parseDuration(text);
  return parsed.ok && parsed.value === 0 ? refuse('a duration longer than 0, like 30s, 5m or 2h') : parsed;
}

/** Parses `65536`, `64k`, `16m` or `0.5g` into bytes; the units are powers of 1024. */
export function parseMessageSize(text: string): Parsed<number> {
  const bytes = parseBytes(text);
  if (bytes >= MIN_BYTES && bytes <= MAX_BYTES) return accept(bytes);
  return refuse('a size from 4k to 512m, like 64k or 16m (a bare number is bytes)');
}

/** Parses a size like `parseMessageSize`, but accepts every small one, and 0. */
export function parseResultSize(text: string): Parsed<number> {
  const bytes = parseBytes(text);
  if (bytes <= MAX_BYTES) return accept(bytes);
  return refuse('a size up to 512m, like 16k or 1m (a bare number is bytes; 0: no limit)');
}

/** Larger factors are not different from 0, and smaller ones would make days of minutes. */
const MAX_FACTOR = 1000;

/** Parses a factor like 0, 1, 2 or 0.5. */
export function parseReplaySpeed(text: string): Parsed<number> {
  const factor = /^\d+(?:\.\d+)?x?$/.test(text) ? Number.parseFloat(text) : Number.NaN;
  if (factor === 0 || (factor >= 1 / MAX_FACTOR && factor <= MAX_FACTOR)) return accept(factor);
  return refuse('a factor like 1, 2 or 0.5 (0: without pauses)');
}

/** Files may be far larger than messages. */
const MAX_FILE_BYTES = 1024 ** 4;

/** Parses a size of a file like `parseMessageSize`, but accepts larger ones, and 0. */
export function parseFileSize(text: string): Parsed<number> {
  const bytes = parseBytes(text);
  if (bytes === 0 || (bytes >= MIN_BYTES && bytes <= MAX_FILE_BYTES)) return accept(bytes);
  return refuse('a size from 4k to 1024g, like 100m or 2g (a bare number is bytes; 0: no limit)');
}

/** Returns NaN for any other text. */
function parseBytes(text: string): number {
  const match = /^(\d+(?:\.\d+)?)([kmg]?)(?:i?b)?$/i.exec(text);
  return Math.floor(Number(match?.[1]) * (UNIT_BYTES[(match?.[2] ?? '').toLowerCase()] ?? Number.NaN));
}

export function parsePort(text: string): Parsed<number> {
  const port = wholeNumber(text);
  return port <= 65_535 ? accept(port) : refuse('a port number from 0 to 65535');
}

/** Parses file permissions in octal digits, such as `0600` or `660`. */
export function parseFileMode(text: string): Parsed<number> {
  const match = /^(?:0o)?0?([0-7]{3})$/.exec(text);
  if (match?.[1] !== undefined) return accept(Number.parseInt(match[1], 8));
  return refuse('the mode of a file in octal digits, like 0600 or 0660');
}

export function parseCount(text: string): Parsed<number> {
  const count = wholeNumber(text);
  return count <= 100_000 ? accept(count) : refuse('a whole number, 0 or more');
}

export function parsePositiveCount(text: string): Parsed<number> {
  const count = wholeNumber(text);
  return count >= 1 && count <= 100_000 ? accept(count) : refuse('a whole number, 1 or more');
}

/** Deeper messages have no practical use, and the bridge's own parsers go no deeper. */
const MAX_JSON_DEPTH = 1000;

export function parseJsonDepth(text: string): Parsed<number> {
  const levels = wholeNumber(text);
  return levels >= 1 && levels <= MAX_JSON_DEPTH
    ? accept(levels)
    : refuse(`a whole number from 1 to ${MAX_JSON_DEPTH}`);
}

export function parseFlag(text: string): Parsed<boolean> {
  const word = text.toLowerCase();
  if (['true', '1', 'yes', 'on'].includes(word)) return accept(true);
  if (['false', '0', 'no', 'off'].includes(word)) return accept(false);
  return refuse('true or false');
}

/** Parses `true`, `false` or `search`. */
export function parseAggregate(text: string): Parsed<'off' | 'all' | 'search'> {
  if (text.toLowerCase() === 'search') return accept('search');
  const flag = parseFlag(text);
  return flag.ok ? accept(flag.value ? 'all' : 'off') : refuse('true, false or search');
}

export function parseChoice<T extends string>(choices: readonly T[]): (text: string) => Parsed<T> {
  return (text) => {
    const chosen = choices.find((choice) => choice === text);
    if (chosen !== undefined) return accept(chosen);
    const [meant, ...others] = text === '' ? [] : suggest(text, choices);
    return { ok: false, expected: `one of ${choices.join(', ')}`, meant: others.length === 0 ? meant : undefined };
  };
}

/** Parses a host name or address to listen on, without a port. Brackets around IPv6 are optional. */
export function parseListenHost(text: string): Parsed<string> {
  const bare = text.replace(/^\[(.*)\]$/, '$1');
  if (isIP(bare) !== 0 || isHostName(bare)) return accept(bare);
  return refuse(
    'an address or host name without scheme and port, like 127.0.0.1, 0.0.0.0 or ::1 (the port has its own option)',
  );
}

/** Parses a value of the Host header into lower case: a name with or without a port, IPv6 in brackets. */
export function parseAllowedHost(text: string): Parsed<string> {
  if (isIP(text) === 6) return accept(`[${text.toLowerCase()}]`);
  const [, host = '', port = '0'] = /^(\[[^\]]+\]|[^:]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const isAddress = host.startsWith('[') && isIP(host.slice(1, -1)) === 6;
  if ((isAddress || isHostName(host)) && parsePort(port).ok) return accept(text.toLowerCase());
  return refuse('a host name without scheme or wildcard, like mcp.example.com or mcp.example.com:8443');
}

/** Parses an origin as browsers send it, such as `https://app.example.com` or `vscode-webview://abc`. */
export function parseOrigin(text: string): Parsed<string> {
  const match = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*]+\/?$/i.exec(text);
  if (match === null || !URL.canParse(text)) {
    return refuse(
      'an exact web origin, like https://app.example.com (no path, no wildcard: any page could call otherwise)',
    );
  }
  const { origin } = new URL(text);
  // For schemes outside the URL standard, such as those of editor and browser extensions, URL reports the origin
  // `null`.
  return accept(origin === 'null' ? text.replace(/\/$/, '').toLowerCase() : origin);
}

/** Parses the public URL of this process, and drops trailing slashes. */
export function parseBaseUrl(text: string): Parsed<URL> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const usable = url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
  if (!usable || url.search !== '' || url.hash !== '') {
    return refuse('an http or https URL without user, query and fragment, like https://example.com/tools');
  }
  url.pathname = url.pathname.replace(/\/+$/, '');
  return accept(url);
}

/**
 * Parses the path of an endpoint: absolute, without a query, and in the unescaped form that requests are compared with.
 */
export function parseEndpointPath(text: string): Parsed<string> {
  const path = text.length > 1 ? text.replace(/\/+$/, '') : text;
  // A URL leaves a plain path as it is, and changes one with dots, spaces, escapes or doubled slashes.
  if (/^\/(?!\/)[\w\-.~/:@!$&'()*+,;=]*$/.test(path) && new URL(path, 'http://localhost').pathname === path)
    return accept(path);
  return refuse('an absolute path like /mcp, without query or spaces');
}

export function parseText(text: string): Parsed<string> {
  return text === '' ? refuse('a value that is not empty') : accept(text);
}

/** Parses the path of a file or folder, and makes it absolute. */
export function parsePath(text: string, { resolvePath }: Pick<ReadingContext, 'resolvePath'>): Parsed<string> {
  return text === '' ? parseText(text) : accept(resolvePath(text));
}

/**
 * Parses a path or a pattern. A pattern is kept apart from its folder, whose name may hold characters of patterns. Only
 * the reader of the place knows the home folder.
 */
export function parseWatchedPath(
  text: string,
  { resolvePath }: Pick<ReadingContext, 'resolvePath'>,
): Parsed<WatchedPath> {
  if (text === '') return refuse('a path, or a pattern like src/**/*.ts');
  return accept({ path: /^~[/\\]/.test(text) ? resolvePath(text) : text, folder: resolvePath('.') });
}

/** Parses the origin at which other replicas reach this one. */
export function parseOwnOrigin(text: string): Parsed<URL> {
  const parsed = parseBaseUrl(text);
  return parsed.ok && parsed.value.pathname === '/'
    ? parsed
    : refuse('an http or https URL without path, like http://10.0.0.5:8000');
}

/** With a shorter lease, the other replicas would take a busy one for dead. */
const MIN_LEASE_MS = 1000;

export function parseLease(text: string): Parsed<number> {
  const parsed = parsePositiveDuration(text);
  const expected = 'a duration of at least 1s, like 15s';
  if (!parsed.ok) return { ...parsed, expected };
  return parsed.value >= MIN_LEASE_MS ? parsed : refuse(expected);
}

/** Parses what precedes each key in Redis. Redis Cluster gives braces in keys a meaning. */
export function parseStorePrefix(text: string): Parsed<string> {
  return /^[\x21-\x7a|~]{1,100}$/.test(text)
    ? accept(text)
    : refuse('at most 100 visible characters of ASCII without braces');
}

/** Parses a pattern for tool names. */
export function parseNamePattern(text: string): Parsed<string> {
  if (text !== '' && compileNamePattern(text) !== undefined) return accept(text);
  return refuse('a pattern for names like read_*, made of *, ?, [a-z], [!a-z] and {a,b}');
}

/** A name whose last label is all digits is refused: it is a mistyped address or a port (`--host 8000`). */
function isHostName(text: string): boolean {
  if (/(^|\.)\d+\.?$/.test(text)) return isIP(text) === 4;
  return /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?$/i.test(text);
}

/** Returns NaN, which fails every comparison, for any other text. */
function wholeNumber(text: string): number {
  return /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
}

function accept<T>(value: T): Parsed<T> {
  return { ok: true, value };
}

function refuse(expected: string): Parsed<never> {
  return { ok: false, expected };
}
