/**
 * One parser per kind of value, from text to a typed value or to what had been expected. Pure; the caller knows which
 * option the text came from and makes the error.
 */
import { isIP } from 'node:net';
import { compileNamePattern } from '../../config/name-pattern.ts';

export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly expected: string };

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const UNIT_BYTES: Readonly<Record<string, number>> = { '': 1, b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 };

/** Beyond this a Node timer fires at once: its delay is a signed 32-bit number of milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;
const DAY_MS = 24 * 3_600_000;
const WINDOW_MS: Readonly<Record<string, number>> = { ...UNIT_MS, d: DAY_MS, w: 7 * DAY_MS };
/** Nothing is kept for longer. */
const MAX_WINDOW_MS = 400 * DAY_MS;

/** A Buffer and a string can hold no more on every supported platform. */
const MAX_BYTES = 512 * 2 ** 20;
/** Less would refuse an ordinary `initialize`. */
const MIN_BYTES = 4 * 2 ** 10;

/** `500ms`, `30s`, `5m`, `2h`, `1.5h`; a bare number is seconds. In milliseconds. */
export function parseDuration(text: string): Parsed<number> {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/i.exec(text);
  const ms = Math.round(Number(match?.[1]) * (UNIT_MS[(match?.[2] ?? 's').toLowerCase()] ?? Number.NaN));
  if (ms <= MAX_TIMER_MS) return accept(ms);
  return refuse('a duration like 500ms, 30s, 5m or 2h (a bare number is seconds; at most 596h)');
}

/** A longer time in the past: `30d`, `12w`; also what `parseDuration` takes, with its unit. In ms. */
export function parseWindow(text: string): Parsed<number> {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)$/i.exec(text);
  const ms = Math.round(Number(match?.[1]) * (WINDOW_MS[(match?.[2] ?? '').toLowerCase()] ?? Number.NaN));
  if (ms > 0 && ms <= MAX_WINDOW_MS) return accept(ms);
  return refuse('a time like 12h, 30d or 12w (at most 400d)');
}

/** In the month before it was deprecated; no header can say that it ended before that. [RFC 9745 4] */
const EARLIEST_SUNSET_MS = Date.UTC(2025, 3, 1);
const LAST_OF_A_DAY = 'T23:59:59Z';

/** `2027-03-31`: the end of that day, UTC; `2027-03-31T12:00Z`, `2027-03-31T12:00:00+02:00`: that moment. */
export function parseSunset(text: string): Parsed<{ readonly date: string; readonly atMs: number }> {
  const [, day, time] = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2}))?$/.exec(text) ?? [];
  const atMs = Date.parse(`${day}${time ?? LAST_OF_A_DAY}`);
  // There is no 31st of April, and Date would take the next day for it.
  const isReal = day !== undefined && !Number.isNaN(atMs) && new Date(day).toISOString().startsWith(day);
  if (isReal && atMs >= EARLIEST_SUNSET_MS) return accept({ date: text, atMs });
  return refuse(
    `a date as YYYY-MM-DD, the last day, or a time as YYYY-MM-DDThh:mm:ssZ; not before ${new Date(EARLIEST_SUNSET_MS).toISOString().slice(0, 10)}`,
  );
}

/** Parses what `parseDuration` does, but for a duration of nothing. */
export function parsePositiveDuration(text: string): Parsed<number> {
  const parsed = parseDuration(text);
  return parsed.ok && parsed.value === 0 ? refuse('a duration longer than 0, like 30s, 5m or 2h') : parsed;
}

/** `65536`, `64k`, `16m`, `0.5g`, in powers of 1024. In bytes. */
export function parseMessageSize(text: string): Parsed<number> {
  const match = /^(\d+(?:\.\d+)?)([kmg]?)(?:i?b)?$/i.exec(text);
  const bytes = Math.floor(Number(match?.[1]) * (UNIT_BYTES[(match?.[2] ?? '').toLowerCase()] ?? Number.NaN));
  if (bytes >= MIN_BYTES && bytes <= MAX_BYTES) return accept(bytes);
  return refuse('a size from 4k to 512m, like 64k or 16m (a bare number is bytes)');
}

export function parsePort(text: string): Parsed<number> {
  const port = wholeNumber(text);
  return port <= 65_535 ? accept(port) : refuse('a port number from 0 to 65535');
}

/** `0600`, `660`: permissions of a file, in octal digits. */
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

/** Deeper messages serve nobody, and what the bridge parses itself goes no deeper. */
const MAX_JSON_DEPTH = 1000;

export function parseJsonDepth(text: string): Parsed<number> {
  const levels = wholeNumber(text);
  return levels >= 1 && levels <= MAX_JSON_DEPTH
    ? accept(levels)
    : refuse(`a whole number from 1 to ${MAX_JSON_DEPTH}`);
}

export function parseFlag(text: string): Parsed<boolean> {
  if (/^(true|1|yes|on)$/i.test(text)) return accept(true);
  if (/^(false|0|no|off)$/i.test(text)) return accept(false);
  return refuse('true or false');
}

export function parseChoice<T extends string>(choices: readonly T[]): (text: string) => Parsed<T> {
  return (text) => {
    const chosen = choices.find((choice) => choice === text);
    return chosen === undefined ? refuse(`one of ${choices.join(', ')}`) : accept(chosen);
  };
}

/** A name or address to listen on, without port; IPv6 with or without its brackets. */
export function parseListenHost(text: string): Parsed<string> {
  const bare = text.replace(/^\[(.*)\]$/, '$1');
  if (isIP(bare) !== 0 || isHostName(bare)) return accept(bare);
  return refuse(
    'an address or host name without scheme and port, like 127.0.0.1, 0.0.0.0 or ::1 (the port has its own option)',
  );
}

/** What may stand in a Host header, lower case: a name with or without port; IPv6 in brackets. */
export function parseAllowedHost(text: string): Parsed<string> {
  if (isIP(text) === 6) return accept(`[${text.toLowerCase()}]`);
  const [, host = '', port = '0'] = /^(\[[^\]]+\]|[^:]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const isAddress = host.startsWith('[') && isIP(host.slice(1, -1)) === 6;
  if ((isAddress || isHostName(host)) && parsePort(port).ok) return accept(text.toLowerCase());
  return refuse('a host name without scheme or wildcard, like mcp.example.com or mcp.example.com:8443');
}

/** An origin as browsers send it: `https://app.example.com`, `vscode-webview://abc`. */
export function parseOrigin(text: string): Parsed<string> {
  const match = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*]+\/?$/i.exec(text);
  if (match === null || !URL.canParse(text)) {
    return refuse(
      'an exact web origin, like https://app.example.com (no path, no wildcard: any page could call otherwise)',
    );
  }
  const { origin } = new URL(text);
  // Schemes the URL standard does not know, such as those of editor and browser extensions, have no `origin` there.
  return accept(origin === 'null' ? text.replace(/\/$/, '').toLowerCase() : origin);
}

/** Where clients reach this process from outside; a slash at the end is dropped. */
export function parseBaseUrl(text: string): Parsed<URL> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const usable = url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
  if (!usable || url.search !== '' || url.hash !== '') {
    return refuse('an http or https URL without user, query and fragment, like https://example.com/tools');
  }
  url.pathname = url.pathname.replace(/\/+$/, '');
  return accept(url);
}

/** The path of an endpoint: absolute, without query, and unescaped as it would be compared. */
export function parseEndpointPath(text: string): Parsed<string> {
  const path = text.length > 1 ? text.replace(/\/+$/, '') : text;
  // Through a URL an innocent path comes out as it went in: dots, spaces, escapes and doubled slashes do not.
  if (/^\/(?!\/)[\w\-.~/:@!$&'()*+,;=]*$/.test(path) && new URL(path, 'http://localhost').pathname === path)
    return accept(path);
  return refuse('an absolute path like /mcp, without query or spaces');
}

export function parseText(text: string): Parsed<string> {
  return text === '' ? refuse('a value that is not empty') : accept(text);
}

/** A pattern for names of tools. */
export function parseNamePattern(text: string): Parsed<string> {
  if (text !== '' && compileNamePattern(text) !== undefined) return accept(text);
  return refuse('a pattern for names like read_*, made of *, ?, [a-z], [!a-z] and {a,b}');
}

/** An all-digit last label is refused: it is a mistyped address or a port (`--host 8000`). */
function isHostName(text: string): boolean {
  if (/(^|\.)\d+\.?$/.test(text)) return isIP(text) === 4;
  return /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?$/i.test(text);
}

/** NaN for anything else, which fails every comparison. */
function wholeNumber(text: string): number {
  return /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
}

function accept<T>(value: T): Parsed<T> {
  return { ok: true, value };
}

function refuse(expected: string): Parsed<never> {
  return { ok: false, expected };
}
