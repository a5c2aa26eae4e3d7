import { showUrl } from '../shown-url.ts';
import { isSocketUrl, reachedAs } from '../socket-addresses.ts';

/** The request fails after this many redirects in a row, as they may form a loop. The official SDKs follow as many. */
export const MAX_REDIRECTS = 5;

/**
 * The decision about a redirect. For `refuse`, `reason` completes a sentence that begins with the server's answer, and
 * `wayOut` tells the user what to do.
 */
export type RedirectVerdict =
  | { readonly kind: 'none' }
  | { readonly kind: 'follow'; readonly url: URL }
  | { readonly kind: 'refuse'; readonly reason: string; readonly wayOut: string };

const KEEPING_METHOD: ReadonlySet<number> = new Set([307, 308]);
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const NONE: RedirectVerdict = { kind: 'none' };

/**
 * Decides whether a request follows a redirect. Targets must have the same origin, or be the same host over https
 * instead of http: the user has named this server, and no other one may get the messages or credentials. A POST follows
 * only 307 and 308: after 301, 302 and 303 a client may turn it into a GET, which would lose the message, and the
 * bridge does not guess what the server means. [RFC 9110 15.4]
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

/**
 * True if the target is the same host over TLS and both URLs have the default port. The official SDKs follow no other
 * change of origin.
 */
function isSecured(from: URL, to: URL): boolean {
  // The host in the URL of a socket is only a label, not an address.
  if (isSocketUrl(from)) return false;
  const areDefault = from.port === '' && to.port === '';
  return from.protocol === 'http:' && to.protocol === 'https:' && from.hostname === to.hostname && areDefault;
}

const TELL_OPERATORS = 'tell the operators of the server';

function refuse(reason: string, wayOut: string): RedirectVerdict {
  return { kind: 'refuse', reason, wayOut };
}
