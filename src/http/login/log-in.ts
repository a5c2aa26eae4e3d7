/** Logs in ahead of time, by sending the server requests for which it may ask for a login. */
import type { LoginConfig, RemoteConfig } from '../../config/remote.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { NO_TIMEOUTS } from '../client/call-limits.ts';
import { HttpClient } from '../client/client.ts';
import { SessionCookies } from '../client/cookies.ts';
import type { HttpRequest, ResponseHead } from '../client/http-call.ts';
import { showUrl } from '../shown-url.ts';
import type { AskToPaste } from './authorize-in-browser.ts';
import { createLogin } from './create-login.ts';

export interface LogInRequest {
  readonly server: URL;
  readonly config: LoginConfig;
  readonly remote: RemoteConfig;
  readonly userAgent: string;
  readonly askToPaste: AskToPaste | undefined;
  readonly deps: Deps;
  /** Aborted with the error to reject with. */
  readonly signal: AbortSignal;
}

/** `unasked` means that the server has answered without asking for a login. */
export type LogInOutcome = 'logged-in' | 'unasked';

/** Rejects with ERR_UPSTREAM_* if the login fails. */
export async function logIn(request: LogInRequest): Promise<LogInOutcome> {
  const { server, remote, userAgent, signal, deps } = request;
  const login = await createLogin({
    ...request,
    openShared: undefined,
    registered: () => {},
    waits: 'user',
  });
  const { headers, tls, proxyEnv } = remote;
  const http = new HttpClient({
    ...{ headers, bearerTokenFile: undefined, credentials: login, tls, proxyEnv, socketPath: undefined, userAgent },
    clock: deps.clock,
  });
  const close = (): void => {
    login.close();
    http.close();
  };
  try {
    // Some servers with the old transport protect only the event stream.
    for (const method of ['POST', 'GET'] as const) {
      const head = await ask(http, server, method, signal);
      if (head.wasAuthorized) return 'logged-in';
      if (head.status === 401 || head.status === 403) throw refusedAnyway(server, head);
    }
    return 'unasked';
  } finally {
    close();
  }
}

/** A request without a session that has no effect. */
const PING = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}');

/** Resolves with the head of the response; the body is not read. */
function ask(http: HttpClient, url: URL, method: HttpRequest['method'], signal: AbortSignal): Promise<ResponseHead> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const headers =
      method === 'POST'
        ? { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
        : { accept: 'text/event-stream' };
    const request: HttpRequest = {
      ...{ method, url, headers, forwarded: undefined, cookies: new SessionCookies(), isRepeatable: true },
      body: method === 'POST' ? PING : undefined,
      timeouts: { ...NO_TIMEOUTS, firstByteMs: FIRST_BYTE_MS },
    };
    const call = http.request(request, {
      sent: () => {},
      response: (head) => {
        resolve(head);
        call.abort();
      },
      data: () => {},
      end: () => {},
      error: reject,
    });
    signal.addEventListener(
      'abort',
      () => {
        call.abort();
        reject(signal.reason);
      },
      { once: true },
    );
  });
}

/** The time limit for an answer of the server. */
const FIRST_BYTE_MS = 30_000;

/** Creates the error for a server that refuses the request and offers no login, or none that helped. */
function refusedAnyway(server: URL, { status, offersNoLogin }: ResponseHead): BridgeError {
  const problem = `The server at ${showUrl(server)} refuses with ${status}`;
  const reason = offersNoLogin ? ' and offers no login' : '';
  return new BridgeError('ERR_UPSTREAM_AUTH', `${problem}${reason}. \`mcp-portage probe\` shows what it wants.`);
}
