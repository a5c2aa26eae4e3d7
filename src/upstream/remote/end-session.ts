import type { HttpClient } from '../../http/client/client.ts';
import type { HttpRequest } from '../../http/client/http-call.ts';
import { JSON_TYPE } from '../../http/headers.ts';

/**
 * Time limit for the DELETE, so that an unresponsive server does not delay the shutdown. Its session then ends by the
 * server's own time limit.
 */
const END_TIMEOUT_MS = 2000;

/** Client, URL, cookies and headers with which a session was opened. */
export interface SessionTarget extends Pick<HttpRequest, 'url' | 'cookies' | 'forwarded'> {
  readonly http: HttpClient;
}

/**
 * Ends a session. [spec 2025-11-25 transports#session-management] A client should send DELETE when done, and the server
 * may answer 405. Resolves with the status, or with undefined if there was no response.
 * @param headers headers of the session
 */
export function endSession(
  { http, url, cookies, forwarded }: SessionTarget,
  headers: Readonly<Record<string, string>>,
): Promise<number | undefined> {
  return new Promise((resolve) => {
    let status: number | undefined;
    http.request(
      {
        method: 'DELETE',
        url,
        headers: { Accept: JSON_TYPE, ...headers },
        forwarded,
        body: undefined,
        timeouts: { connectMs: END_TIMEOUT_MS, firstByteMs: END_TIMEOUT_MS, idleMs: 0, callMs: END_TIMEOUT_MS },
        cookies,
        isRepeatable: true,
      },
      {
        sent: () => {},
        response: (head) => {
          status = head.status;
        },
        data: () => {},
        end: () => resolve(status),
        error: () => resolve(status),
      },
    );
  });
}
