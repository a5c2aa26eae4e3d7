import { showUrl } from '../shown-url.ts';
import { isSocketUrl, reachedAs } from '../socket-addresses.ts';

/** The request fails after this many redirects, which may go in a circle: as many as the official SDKs follow. */
export const MAX_REDIRECTS = 5;

export type RedirectVerdict =
  | { readonly kind: 'none' }
  | { readonly kind: 'follow'; readonly url: URL }
  /** Why not, as the rest of a sentence that starts with what the server answered, and the way out. */
  | { readonly kind: 'refuse'; readonly reason: string; readonly wayOut: string };

const KEEPING_METHOD: ReadonlySet<number> = new Set([307, 308]);
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const NONE: RedirectVerdict = { kind: 'none' };

/**
 * Where a request may go on to. Only within the origin, or from http to https at the same host: the server was named by
 * the user, and neither messages nor credentials are for anybody else. A POST goes on with 307 and 308 only: with 301, 302 and 303 a client may turn it into
 * a GET, which would lose the message, so what the server means by them is not guessed. [RFC 9110 15.4]
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
  if (!URL.canParse(location, url.href)) return refuse('a redirect to something that is no URL', TELL_OPERATORS);
  const target = new URL(location, url);
  if (target.origin !== url.origin && !isSecured(url, target)) {
    // The path is not shown: another server chose it, and it may hold a credential.
    const shown = target.origin === 'null' ? target.protocol : target.origin;
    return refuse(`a redirect to another origin, ${shown}`, 'if the server has moved, use its URL there');
  }
  if (hops >= MAX_REDIRECTS) return refuse(`more than ${MAX_REDIRECTS} redirects in a row`, TELL_OPERATORS);
  if (method !== 'GET' && !KEEPING_METHOD.has(status)) {
    return refuse(
      `a redirect to ${showUrl(reachedAs(url, target))}, with which a ${method} is not sent again`,
      'use that URL',
    );
  }
  target.username = '';
  target.password = '';
  return { kind: 'follow', url: reachedAs(url, target) };
}

/** The same host over TLS, with both on their default ports. The official SDKs follow no other change of origin. */
function isSecured(from: URL, to: URL): boolean {
  // The host in the URL of a socket is a name for it, and nobody's address.
  if (isSocketUrl(from)) return false;
  const areDefault = from.port === '' && to.port === '';
  return from.protocol === 'http:' && to.protocol === 'https:' && from.hostname === to.hostname && areDefault;
}

const TELL_OPERATORS = 'tell the operators of the server';

function refuse(reason: string, wayOut: string): RedirectVerdict {
  return { kind: 'refuse', reason, wayOut };
}
