import { showUrl } from './shown-url.ts';

/** A server that sends us round in circles is given up after this many. */
export const MAX_REDIRECTS = 3;

export type RedirectVerdict =
  | { readonly kind: 'none' }
  | { readonly kind: 'follow'; readonly url: URL }
  /** Why not, as the rest of a sentence that starts with what the server answered. */
  | { readonly kind: 'refuse'; readonly reason: string };

const KEEPING_METHOD: ReadonlySet<number> = new Set([307, 308]);
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const NONE: RedirectVerdict = { kind: 'none' };

/**
 * Where a message may go on to. Only within the origin: the server was named by the user, and neither messages nor
 * credentials are for anybody else. 301, 302 and 303 turn a POST into a GET, which would lose the message; the one case
 * where the method is kept all the same is the slash that a web framework wants at the end of the path.
 */
export function judgeRedirect(request: {
  readonly method: string;
  readonly url: URL;
  readonly status: number;
  readonly location: string | undefined;
  readonly hops: number;
}): RedirectVerdict {
  const { method, url, status, location, hops } = request;
  if (!REDIRECTS.has(status) || location === undefined) return NONE;
  if (!URL.canParse(location, url.href)) return { kind: 'refuse', reason: 'a redirect to something that is no URL' };
  const target = new URL(location, url);
  const shown = showUrl(target);
  if (target.origin !== url.origin) {
    return { kind: 'refuse', reason: `a redirect to another origin, ${shown}; if the server has moved, use that URL` };
  }
  if (hops >= MAX_REDIRECTS) return { kind: 'refuse', reason: `more than ${MAX_REDIRECTS} redirects in a row` };
  if (method !== 'GET' && !KEEPING_METHOD.has(status) && !differsInSlashOnly(url, target)) {
    return { kind: 'refuse', reason: `a redirect that does not keep the method, to ${shown}; use that URL` };
  }
  target.username = '';
  target.password = '';
  return { kind: 'follow', url: target };
}

function differsInSlashOnly(from: URL, to: URL): boolean {
  return from.search === to.search && from.pathname.replace(/\/$/, '') === to.pathname.replace(/\/$/, '');
}
