import { BridgeError } from '../../errors.ts';
import type { HttpClient } from '../client/client.ts';
import { ControlClient, type ControlResponse } from '../client/control-client.ts';
import { SessionCookies } from '../client/cookies.ts';
import { judgeRedirect } from '../client/redirects.ts';
import { parseRetryAfter } from '../retry-after.ts';
import { showUrl } from '../shown-url.ts';
import type { AddressGuard } from './address-guard.ts';
import { loginError } from './login-error.ts';
import type { TokenBinding } from './token-binding.ts';

/** Callers wait, and a server that needs longer for a few lines of JSON is out of order. */
const FETCH_TIMEOUT_MS = 15_000;
/** The statuses of final answers range from here to `MAX_STATUS`. [RFC 9110 15] */
const MIN_STATUS = 200;
const MAX_STATUS = 599;
const WAY_OUT = 'Check the address, or tell the operators of the server.';

export interface LoginRequest {
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Proves possession of its key with each request, also after a redirect, and gets the nonces of the answers. */
  readonly binding?: TokenBinding | undefined;
}

/** Sends a request of a login, to a server that only metadata has named. */
export type LoginFetch = (url: URL, request: LoginRequest) => Promise<Response>;

/**
 * @param http without the credentials and headers of the server: they are for nobody else
 */
export function createLoginFetch(http: HttpClient, guard: Pick<AddressGuard, 'check' | 'lookupFor'>): LoginFetch {
  const control = new ControlClient(http);
  const ask = async (url: URL, { method, headers: usual, body, binding }: LoginRequest): Promise<ControlResponse> => {
    await guard.check(url);
    const lookup = await guard.lookupFor(url);
    const dpop = binding?.prove(method, url);
    const headers = dpop === undefined ? usual : { ...usual, dpop };
    const sent = { method, url, headers, cookies: new SessionCookies(), timeoutMs: FETCH_TIMEOUT_MS };
    const asked = { ...sent, ...(body !== undefined && { body }), ...(lookup !== undefined && { lookup }) };
    const answer = await control.request(asked).catch((thrown: unknown) => {
      throw findRefusal(thrown) ?? thrown;
    });
    const { status } = answer;
    if (status >= MIN_STATUS && status <= MAX_STATUS) return answer;
    throw loginError(`${showUrl(url)} answered ${status}, which is no final status of HTTP`, WAY_OUT);
  };
  return async (url, request) => {
    let target = url;
    for (let hops = 0; ; hops += 1) {
      const answer = await ask(target, request);
      const hasNonce = request.binding?.hear(target, answer.headers) === true;
      const next = redirectOf({ method: request.method, url: target, hops }, answer);
      if (next === undefined) return toResponse(answer, hasNonce);
      target = next;
    }
  };
}

/** Finds the error with which the guard has refused a connection. */
function findRefusal(thrown: unknown): BridgeError | undefined {
  if (!(thrown instanceof Error)) return undefined;
  if (thrown instanceof BridgeError && thrown.code === 'ERR_UPSTREAM_AUTH') return thrown;
  return findRefusal(thrown.cause);
}

/**
 * The next URL of a redirect; undefined: there is none. Documents may move within their origin, and a POST follows only
 * redirects that keep its method and body.
 */
function redirectOf(request: Hop, { status, headers: { location } }: ControlResponse): URL | undefined {
  const verdict = judgeRedirect({ ...request, status, location });
  if (verdict.kind === 'follow') return verdict.url;
  if (verdict.kind === 'none') return undefined;
  const wayOut = 'Nothing is sent there in a login; tell the operators of the server.';
  throw loginError(`${showUrl(request.url)} answered ${status} with ${verdict.reason}`, wayOut);
}

interface Hop {
  readonly method: LoginRequest['method'];
  readonly url: URL;
  readonly hops: number;
}

/** Returns true for the answer of an authorization server, or of something in front of it, that is busy or out of order. */
export function isBusy({ status }: Response): boolean {
  return status === 429 || status >= 500;
}

/** The error of an answer after which the same request may succeed, at the time that the answer names. */
export function busyError({ headers }: Response, problem: string): BridgeError {
  const retryAfterMs = parseRetryAfter(headers.get('retry-after') ?? undefined, Date.now()) ?? 0;
  return loginError(problem, 'Try again later.', retryAfterMs);
}

const PASSED_ON = ['retry-after', 'date'] as const;
/** In a response that brings a nonce for the next proofs. */
export const NONCE_HEADER = 'dpop-nonce';

function toResponse({ status, headers, body }: ControlResponse, hasNonce: boolean): Response {
  // A Response may have no body with some statuses. Of those, HTTP allows one to be sent with 205 only.
  const isEmpty = body.length === 0 || status === 205;
  const passed = new Headers({ 'content-type': headers['content-type'] ?? '' });
  for (const name of hasNonce ? [...PASSED_ON, NONCE_HEADER] : PASSED_ON) {
    const value = headers[name];
    if (typeof value === 'string') passed.set(name, value);
  }
  return new Response(isEmpty ? null : new Uint8Array(body), { status, headers: passed });
}
