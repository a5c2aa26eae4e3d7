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

/** Callers wait for the answer, and a server that needs longer for a few lines of JSON is out of order. */
const FETCH_TIMEOUT_MS = 15_000;
/** Final responses have statuses from MIN_STATUS to MAX_STATUS. [RFC 9110 15] */
const MIN_STATUS = 200;
const MAX_STATUS = 599;
const WAY_OUT = 'Check the address, or tell the operators of the server.';

export interface LoginRequest {
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Adds a proof to each request, also after a redirect, and stores the nonces of the answers. */
  readonly binding?: TokenBinding | undefined;
}

/** Sends a request of a login to a server that only metadata has named. */
export type LoginFetch = (url: URL, request: LoginRequest) => Promise<Response>;

/** @param http a client without the credentials and headers of the server, because no other server may get them */
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

/** Finds the error with which the guard has rejected a connection. */
function findRefusal(thrown: unknown): BridgeError | undefined {
  if (!(thrown instanceof Error)) return undefined;
  if (thrown instanceof BridgeError && thrown.code === 'ERR_UPSTREAM_AUTH') return thrown;
  return findRefusal(thrown.cause);
}

/**
 * Returns the next URL of a redirect; undefined if there is none. Documents may move within their origin, and a POST
 * follows only redirects that keep its method and body.
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

/** True if an authorization server, or a proxy in front of it, is busy or out of order. */
export function isBusy({ status }: Response): boolean {
  return status === 429 || status >= 500;
}

/** Creates the error for an answer after which the same request may succeed, at the time that the answer names. */
export function busyError({ headers }: Response, problem: string): BridgeError {
  const retryAfterMs = parseRetryAfter(headers.get('retry-after') ?? undefined, Date.now()) ?? 0;
  return loginError(problem, 'Try again later.', retryAfterMs);
}

const PASSED_ON = ['retry-after', 'date'] as const;
/** The header with the nonce for the next proofs. */
export const NONCE_HEADER = 'dpop-nonce';

function toResponse({ status, headers, body }: ControlResponse, hasNonce: boolean): Response {
  // The constructor of Response rejects a body with some statuses. Of these, only 205 can arrive with a body.
  const isEmpty = body.length === 0 || status === 205;
  const passed = new Headers({ 'content-type': headers['content-type'] ?? '' });
  for (const name of hasNonce ? [...PASSED_ON, NONCE_HEADER] : PASSED_ON) {
    const value = headers[name];
    if (typeof value === 'string') passed.set(name, value);
  }
  return new Response(isEmpty ? null : new Uint8Array(body), { status, headers: passed });
}
