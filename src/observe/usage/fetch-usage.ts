/** Fetches the usage that a running bridge has counted. */
import type { Response } from 'got';
import { BridgeError } from '../../errors.ts';
import { SocketAgent } from '../../http/client/socket-agent.ts';
import { showUrl } from '../../http/shown-url.ts';
import { isSocketUrl, reachedAs } from '../../http/socket-addresses.ts';
import { parseUsage, type Usage, UsageFault } from './usage.ts';
import { MAX_FILE_BYTES } from './usage-folder.ts';

export interface FetchUsageRequest {
  /** Any address of the bridge. */
  readonly url: URL;
  /** Bearer token; undefined: none is needed. */
  readonly token: string | undefined;
  /** Fetches the counts of the replica that answers, or those of all replicas. */
  readonly replicas: 'one' | 'all';
}

const TIMEOUT_MS = 10_000;
/** Limit of the response; no usage file is larger. */
const MAX_ANSWER_BYTES = MAX_FILE_BYTES;

/** Rejects with a BridgeError that says what to do. */
export async function fetchUsage({ url, token, replicas }: FetchUsageRequest): Promise<Usage> {
  const asked = reachedAs(url, new URL(`/status/usage.json${replicas === 'all' ? '?replicas=all' : ''}`, url));
  const shown = showUrl(asked);
  const { got } = await import('got');
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  let response: Response<string>;
  let isTooLarge = false;
  try {
    const limits = { retry: { limit: 0 }, timeout: { request: TIMEOUT_MS }, decompress: false };
    const agent = isSocketUrl(asked) ? { agent: { http: new SocketAgent(asked.socketPath, {}) } } : {};
    const pending = got(asked, { headers, ...limits, ...agent, throwHttpErrors: false, followRedirect: false });
    pending.on('downloadProgress', ({ transferred }) => {
      if (transferred <= MAX_ANSWER_BYTES) return;
      isTooLarge = true;
      pending.cancel();
    });
    response = await pending;
  } catch (cause) {
    if (isTooLarge) throw unreadable(shown, `it is larger than ${MAX_ANSWER_BYTES} bytes`, cause);
    const { code } = cause as NodeJS.ErrnoException;
    throw new BridgeError('ERR_UPSTREAM_CONNECT', `No bridge answers at ${shown} (${code}); is it running?`, { cause });
  }
  if (response.statusCode !== 200) throw refused(response.statusCode, shown);
  try {
    return parseUsage(JSON.parse(response.body));
  } catch (cause) {
    const detail = cause instanceof UsageFault ? cause.message : 'it is not JSON';
    throw unreadable(shown, detail, cause);
  }
}

function unreadable(shown: string, detail: string, cause: unknown): BridgeError {
  return new BridgeError('ERR_UPSTREAM_PROTOCOL', `The response of ${shown} cannot be read: ${detail}.`, { cause });
}

function refused(status: number, shown: string): BridgeError {
  if (status === 401 || status === 403) {
    return new BridgeError(
      'ERR_UPSTREAM_AUTH',
      `${shown} answers ${status}: pass its --status-token with the same option.`,
    );
  }
  if (status === 503) {
    const text = `${shown} answers 503: the replica cannot reach the store, where the counts of all are; try again later.`;
    return new BridgeError('ERR_STORE_UNAVAILABLE', text);
  }
  const message = `${shown} answers ${status}: this bridge counts nothing, or shows it to nobody. Start it with --usage, and where other machines can reach it with --status-token.`;
  return new BridgeError('ERR_UPSTREAM_HTTP', message);
}
