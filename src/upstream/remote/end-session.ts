import type { HttpClient } from '../../http/client/client.ts';
import type { HttpRequest } from '../../http/client/http-call.ts';
import { JSON_TYPE } from '../../http/headers.ts';

/** A server that does not answer must not hold up the end; its session is left to its own time limit. */
const END_TIMEOUT_MS = 2000;

/** What a session was opened with. */
export interface SessionTarget extends Pick<HttpRequest, 'url' | 'cookies' | 'forwarded'> {
  readonly http: HttpClient;
}

/**
 * [spec 2025-11-25 transports#session-management] DELETE when done; the server may answer 405. Resolves with the status;
 * undefined when there was no response.
 * @param headers those of the session
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
