import { toPrintable } from '../printable.ts';
import { isSocketUrl, showSocketPath } from './socket-addresses.ts';

/** A name that holds digits among its letters is at most this long; what is longer is more likely a key or a UUID. */
const LONGEST_NAME = 11;
const LONGEST_SEGMENT = 40;

/**
 * A URL as it may stand in logs and messages: userinfo, query and fragment can hold credentials, and hosted servers put
 * keys into the path. What looks like one there is shown as `…`.
 */
export function showUrl(url: URL): string {
  // The path of a socket is no credential: who may use it is a matter of its file.
  if (isSocketUrl(url)) return toPrintable(`${showSocketPath(url.socketPath)}#${hideKeys(url.pathname)}`, LONGEST_PATH);
  return `${url.protocol}//${url.host}${hideKeys(url.pathname)}`;
}

/** Longer paths are cut in logs. */
const LONGEST_PATH = 200;

/** What a client has asked for, without the query, as it may stand in a log. A proxy's client asks for a whole URL. */
export function showRequestTarget(target: string): string {
  const [path = ''] = target.split(/[?#]/, 1);
  const whole = path.startsWith('/') || !URL.canParse(path) ? undefined : new URL(path);
  return toPrintable(whole === undefined ? hideKeys(path) : showUrl(whole), LONGEST_PATH);
}

/** A path of this machine, which may name what was fetched with a key. */
export function showFile(path: string): string {
  return toPrintable(hideKeys(path), LONGEST_PATH);
}

function hideKeys(path: string): string {
  return path
    .split(/([/\\])/)
    .map((segment) => (isLikeKey(segment) ? '…' : segment))
    .join('');
}

function isLikeKey(encoded: string): boolean {
  if (encoded.length > LONGEST_SEGMENT) return true;
  return decode(encoded)
    .split(/[^a-z0-9]/i)
    .some((word) => word.length > LONGEST_NAME && /\d/.test(word));
}

/** Percent signs would part a word that is one. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
