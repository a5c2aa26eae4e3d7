import type { IncomingHttpHeaders } from 'node:http';
import type { Agent as HttpsAgent } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { Got } from 'got';
import { BridgeError } from '../../errors.ts';
import { timeoutError } from './call-limits.ts';
import type { HttpClient } from './client.ts';
import type { SessionCookies } from './cookies.ts';
import { codeOf, toConnectError } from './network-error.ts';

/** Metadata documents are small, so a longer body is cut off. */
const MAX_BODY_BYTES = 1024 * 1024;

export interface ControlRequest {
  readonly method: 'GET' | 'POST';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly cookies: SessionCookies;
  /** Resolves the host name, unless a proxy resolves it. */
  readonly lookup?: LookupFunction;
  /** The time limit for the whole request. */
  readonly timeoutMs: number;
}

export interface ControlResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/**
 * Sends occasional requests, for metadata documents and tokens, where speed does not matter. Shares connections,
 * certificates, proxies and configured headers with the MCP messages. Does not follow redirects.
 */
export class ControlClient {
  readonly #http: HttpClient;
  #got: Promise<Got> | undefined;

  constructor(http: HttpClient) {
    this.#http = http;
  }

  /** Resolves with any status. Rejects with a BridgeError if there is no response, or if its body is too long. */
  async request(request: ControlRequest): Promise<ControlResponse> {
    const { method, url, headers, body, cookies, lookup, timeoutMs } = request;
    const got = await this.#load();
    const agent = this.#http.agents.agentFor(url);
    const pending = got(url, {
      method,
      headers: this.#http.headersFor(url, { method, headers, forwarded: undefined, cookies }),
      ...(body !== undefined && { body }),
      ...(lookup !== undefined && { dnsLookup: lookup as never }),
      // The agent fits the scheme, which the types cannot know.
      agent: url.protocol === 'https:' ? { https: agent as HttpsAgent } : { http: agent },
      timeout: { request: timeoutMs },
    });
    let isTooLong = false;
    pending.on('downloadProgress', ({ transferred }) => {
      if (transferred <= MAX_BODY_BYTES) return;
      isTooLong = true;
      pending.cancel();
    });
    try {
      const { statusCode, headers: received, rawBody } = await pending;
      return { status: statusCode, headers: received, body: Buffer.from(rawBody) };
    } catch (cause) {
      if (isTooLong) throw new BridgeError('ERR_UPSTREAM_HTTP', `The answer is longer than ${MAX_BODY_BYTES} bytes.`);
      throw codeOf(cause) === 'ETIMEDOUT'
        ? timeoutError(url, 'call', timeoutMs)
        : toConnectError(url, cause, this.#http.agents.proxyFor(url));
    }
  }

  /** Loads the library with the first request: most runs make none, and loading takes time. */
  #load(): Promise<Got> {
    this.#got ??= import('got').then(({ got }) =>
      got.extend({ followRedirect: false, throwHttpErrors: false, retry: { limit: 0 } }),
    );
    return this.#got;
  }
}
