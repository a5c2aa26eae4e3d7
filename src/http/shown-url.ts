/** So long is a name at most that holds digits among its letters; beyond, it is more likely a key or a UUID. */
const LONGEST_NAME = 11;
const LONGEST_SEGMENT = 40;

/**
 * A URL as it may stand in logs and messages: userinfo, query and fragment can hold credentials, and hosted servers put
 * keys into the path. What looks like one there is shown as `…`.
 */
export function showUrl(url: URL): string {
  const path = url.pathname.split('/').map((segment) => (isLikeKey(segment) ? '…' : segment));
  return `${url.protocol}//${url.host}${path.join('/')}`;
}

function isLikeKey(segment: string): boolean {
  if (segment.length > LONGEST_SEGMENT) return true;
  return segment.split(/[^a-z0-9]/i).some((word) => word.length > LONGEST_NAME && /\d/.test(word));
}
