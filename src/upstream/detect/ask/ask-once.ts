import type { HttpClient } from '../../../http/client/client.ts';
import type { SessionCookies } from '../../../http/client/cookies.ts';
import type { HttpCall, HttpHandler, HttpRequest } from '../../../http/client/http-call.ts';

/** The server to ask, as one client sees it. */
export interface HttpTarget {
  readonly http: HttpClient;
  readonly url: URL;
  readonly cookies: SessionCookies;
  /** Headers of the client's request that may go along; see Lane. */
  readonly forwarded?: Readonly<Record<string, string>> | undefined;
  readonly maxMessageBytes: number;
}

export interface OneRequest extends Pick<HttpRequest, 'method' | 'headers' | 'body'> {
  /** For everything from name resolution to the answer. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Sends one request and lets its reader say what it has seen, whereupon the connection is let go. Resolves whatever
 * happens; rejects only with the reason of the signal.
 */
export function askOnce<Seen extends object>(
  target: HttpTarget,
  { timeoutMs, signal, ...request }: OneRequest,
  createReader: (settle: (seen: Seen) => void) => HttpHandler,
): Promise<Seen & { readonly tookMs: number }> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const { http, url, forwarded, cookies } = target;
    const abort = (): void => {
      call.abort();
      reject(signal.reason);
    };
    const startedMs = http.clock.now();
    const reader = createReader((seen) => {
      signal.removeEventListener('abort', abort);
      call.abort();
      resolve({ ...seen, tookMs: http.clock.now() - startedMs });
    });
    const timeouts = { connectMs: timeoutMs, firstByteMs: timeoutMs, idleMs: 0, callMs: timeoutMs };
    // Nothing that is asked this way changes anything at the server beyond opening a session.
    const call: HttpCall = http.request({ ...request, url, forwarded, timeouts, cookies, isRepeatable: true }, reader);
    signal.addEventListener('abort', abort, { once: true });
  });
}
