import {
  AuthorizationResponseError,
  type AuthorizationServer,
  calculatePKCECodeChallenge,
  generateRandomCodeVerifier,
  generateRandomState,
  validateAuthResponse,
} from 'oauth4webapi';
import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import type { BridgeError } from '../../errors.ts';
import { showUrl } from '../shown-url.ts';
import type { AddressGuard } from './address-guard.ts';
import type { CallbackListener, CallbackVerdict } from './callback-listener.ts';
import { adviseCallback } from './client-identity.ts';
import { announcesPkce } from './discover.ts';
import { describeOAuthError, loginError, quoteOthers } from './login-error.ts';
import type { StoredLogin } from './login-store.ts';
import { LOGIN_TIMEOUT_MS } from './patience.ts';
import { adviseResource, beginningMembers, isResourceRefused, type RequestParameters } from './request-parameters.ts';
import { OFFLINE_ACCESS } from './scopes.ts';
import type { CodeGrant } from './token-requests.ts';

/** Limit on the length of the login page's URL in characters. Common servers reject longer request lines. */
const MAX_PAGE_LENGTH = 16 * 1024;
/** The interval at which a waiting login checks whether the user has logged in through another process. */
const LOOK_PERIOD_MS = 1000;

/**
 * Opens the user's browser at the address where a login begins. Does nothing if the user opens the address from the
 * log.
 */
export type OpenBrowser = (start: URL) => void;

/**
 * Asks a user whose browser is on another machine to open the login page, and passes on the text that the user enters:
 * the address at which that browser ends up. Returns a function that stops asking.
 */
export type AskToPaste = (
  place: { readonly page: URL; readonly callback: string },
  entered: (text: string) => CallbackVerdict,
) => () => void;

export interface BrowserLogin {
  /** The server that the login is for. */
  readonly server: URL;
  readonly authorizationServer: AuthorizationServer;
  readonly clientId: string;
  readonly listener: CallbackListener;
  /** The address at which the listener listens. */
  readonly callback: string;
  readonly parameters: RequestParameters;
  readonly scopes: readonly string[];
  /** True if PKCE counts as supported when the metadata does not mention it. */
  readonly assumesPkce: boolean;
  readonly guard: Pick<AddressGuard, 'checkPage'>;
  readonly openBrowser: OpenBrowser;
  readonly askToPaste: AskToPaste | undefined;
  /** Returns a login that another process has completed meanwhile. */
  readonly findNewerLogin: () => StoredLogin | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborted with the error to reject with. */
  readonly signal: AbortSignal;
}

/**
 * - `code`: the browser has returned with a code that can be exchanged for tokens.
 * - `refused`: the user or the authorization server has refused, with an OAuth error code.
 * - `other-process`: another process has completed a login.
 */
export type BrowserOutcome =
  | { readonly kind: 'code'; readonly grant: CodeGrant }
  | { readonly kind: 'refused'; readonly code: string; readonly error: BridgeError }
  | { readonly kind: 'other-process'; readonly login: StoredLogin };

/** Sends the user to the authorization server and waits until the browser returns. Rejects with ERR_UPSTREAM_AUTH. */
export async function authorizeInBrowser(login: BrowserLogin): Promise<BrowserOutcome> {
  const { authorizationServer: as, callback, log } = login;
  const verifier = generateRandomCodeVerifier();
  const state = generateRandomState();
  const page = await createAuthorizationUrl(login, state, verifier);
  login.signal.throwIfAborted();
  const begin = (start: URL): void => {
    // Most logs show this level, because this line may be the only notice of what the calls wait for. The address of
    // the login page itself is never shown: anybody who sees it could complete this login with another account.
    log.warn(`the server asks for a login; if no browser opens, open ${start.href}`);
    login.openBrowser(start);
  };
  const outcome = await waitForUser(login, { page, state, begin });
  if (outcome.kind !== 'code') return outcome;
  log.debug({ issuer: as.issuer }, 'the user has come back from the browser');
  return { kind: 'code', grant: { parameters: outcome.parameters, callback, verifier } };
}

async function createAuthorizationUrl(login: BrowserLogin, state: string, verifier: string): Promise<URL> {
  const { authorizationServer: as, clientId, callback, scopes } = login;
  if (as.authorization_endpoint === undefined) {
    throw loginError(`${as.issuer} has no page to log in at`, 'Expected an authorization_endpoint.');
  }
  const url = new URL(as.authorization_endpoint);
  await login.guard.checkPage(url);
  refuseWithoutPkce(as, login.assumesPkce);
  const { binding } = login.parameters;
  const parameters = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: callback,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    ...(scopes.includes(OFFLINE_ACCESS) && { prompt: 'consent' }),
    ...beginningMembers(login.parameters),
    ...(binding?.key !== undefined && { dpop_jkt: binding.key.thumbprint }),
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  const { length } = url.href;
  if (length <= MAX_PAGE_LENGTH) return url;
  const problem = `The page to log in at, of ${as.issuer}, would have an address of ${length} characters`;
  throw loginError(problem, `Expected at most ${MAX_PAGE_LENGTH}; tell the operators of the server.`);
}

/**
 * [spec 2025-11-25 basic/authorization#authorization-code-protection] Metadata without this member means that PKCE is
 * not supported, so the login is refused. The user can override that, because some servers support PKCE without
 * announcing it.
 */
function refuseWithoutPkce(as: AuthorizationServer, isAssumed: boolean): void {
  const methods = as.code_challenge_methods_supported;
  if (announcesPkce(as) || (methods === undefined && isAssumed)) return;
  const found =
    methods === undefined
      ? 'its metadata has no code_challenge_methods_supported'
      : `its code_challenge_methods_supported has ${quoteOthers(methods.join(', ')) || 'nothing'}`;
  const risk = 'Without it the code that it sends could be used by others';
  const wayOut =
    methods === undefined
      ? '; if you know that it supports PKCE, give --oauth-assume-pkce.'
      : '; give a token instead.';
  throw loginError(`${as.issuer} does not say that it supports PKCE with S256: ${found}`, `${risk}${wayOut}`);
}

type UserOutcome =
  | { readonly kind: 'code'; readonly parameters: URLSearchParams }
  | Exclude<BrowserOutcome, { kind: 'code' }>;

interface BrowserStart {
  readonly page: URL;
  readonly state: string;
  /** Opens the address where the login begins in the user's browser. */
  readonly begin: (start: URL) => void;
}

function waitForUser(login: BrowserLogin, { page, state, begin }: BrowserStart): Promise<UserOutcome> {
  const { authorizationServer: as, clientId, listener, findNewerLogin, clock, signal } = login;
  let cleanUp = (): void => {};
  const outcome = new Promise<UserOutcome>((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    let stopAsking = (): void => {};
    const stopLooking = clock.every(LOOK_PERIOD_MS, () => {
      const newer = findNewerLogin();
      if (newer !== undefined) resolve({ kind: 'other-process', login: newer });
    });
    const cancel = clock.after(LOGIN_TIMEOUT_MS, () => reject(tooLate(login.callback)));
    signal.addEventListener('abort', abort, { once: true });
    cleanUp = () => {
      stopLooking();
      stopAsking();
      cancel();
      signal.removeEventListener('abort', abort);
    };
    const receive = (parameters: URLSearchParams): CallbackVerdict => {
      // [spec 2025-11-25 basic/authorization#open-redirection] This response belongs to another login; the right one
      // may still arrive.
      if (parameters.get('state') !== state) return 'ignored';
      try {
        resolve({ kind: 'code', parameters: validateAuthResponse(as, { client_id: clientId }, parameters, state) });
        return 'done';
      } catch (thrown) {
        if (thrown instanceof AuthorizationResponseError) {
          resolve(toRefusal(thrown, login));
          return 'refused';
        }
        reject(notFrom(as.issuer));
        return 'failed';
      }
    };
    const server = showUrl(login.server);
    begin(listener.offer({ server, page, receive, contested: () => reject(contested()) }));
    const entered = (text: string): CallbackVerdict => receivePasted(text, login.callback, receive);
    stopAsking = login.askToPaste?.({ page, callback: login.callback }, entered) ?? stopAsking;
  });
  return outcome.finally(() => cleanUp());
}

/** Evaluates the address that the user has pasted. Browsers hide the scheme, so it may be missing. */
function receivePasted(
  text: string,
  callback: string,
  receive: (parameters: URLSearchParams) => CallbackVerdict,
): CallbackVerdict {
  const written = /^https?:\/\//i.test(text) ? text : `http://${text}`;
  if (!URL.canParse(written)) return 'ignored';
  const { origin, pathname, searchParams } = new URL(written);
  return `${origin}${pathname}` === callback ? receive(searchParams) : 'ignored';
}

function toRefusal(thrown: AuthorizationResponseError, login: BrowserLogin): UserOutcome {
  const { error: code, error_description: description } = thrown;
  const problem = `The login at ${login.authorizationServer.issuer} was refused (${describeOAuthError(code, description)})`;
  const wayOut = isResourceRefused(code, description) ? adviseResource(login.parameters) : 'The next call asks again.';
  return { kind: 'refused', code, error: loginError(problem, wayOut) };
}

/**
 * Creates the error for a response from another issuer. Its text is not shown. [spec 2026-07-28
 * basic/authorization#authorization-response-validation]
 */
function notFrom(issuer: string): BridgeError {
  const problem = `The browser came back from somebody else than ${issuer}, or without saying from whom`;
  return loginError(problem, 'Nothing of that is used; the next call asks again.');
}

function contested() {
  return loginError(
    'The address that begins the login was opened in two browsers, and nobody can tell which of them is yours',
    'Nothing of that is used; the next call asks again. Open its address in one browser only.',
  );
}

function tooLate(callback: string) {
  return loginError(
    `Nobody has logged in within ${LOGIN_TIMEOUT_MS / 60_000} minutes`,
    `The next call asks again; the address to open is in the log. ${adviseCallback(callback)}`,
  );
}
