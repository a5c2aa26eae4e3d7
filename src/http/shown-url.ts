import { toPrintable } from '../printable.ts';
import { isSocketUrl, showSocketPath } from './socket-addresses.ts';

/** Longest word with digits that counts as a name. A longer one is more likely a key or a UUID. */
const LONGEST_NAME = 11;
const LONGEST_SEGMENT = 40;

/**
 * Shows a URL in logs and messages. Userinfo, query and fragment are left out, because they can hold credentials;
 * hosted servers also put keys into the path, so likely ones there become `…`.
 */
export function showUrl(url: URL): string {
  // A socket's path is no credential, because access is controlled by the file's permissions.
  if (isSocketUrl(url)) return toPrintable(`${showSocketPath(url.socketPath)}#${hideKeys(url.pathname)}`, LONGEST_PATH);
  return `${url.protocol}//${url.host}${hideKeys(url.pathname)}`;
}

/** Longer paths are cut. */
const LONGEST_PATH = 200;

/**
 * Shows the target of a client's request in logs, without its query. The request target of a proxy's client is a whole
 * URL.
 */
export function showRequestTarget(target: string): string {
  const [path = ''] = target.split(/[?#]/, 1);
  const whole = path.startsWith('/') || !URL.canParse(path) ? undefined : new URL(path);
  return toPrintable(whole === undefined ? hideKeys(path) : showUrl(whole), LONGEST_PATH);
}

/** Shows a path of this machine. It may contain a key, if the file was downloaded with one. */
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

/** Decodes the segment, because percent escapes would split a word. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
