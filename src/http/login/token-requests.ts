import { decodeJwt } from 'jose';
import {
  type AuthorizationServer,
  allowInsecureRequests,
  authorizationCodeGrantRequest,
  type Client,
  clientCredentialsGrantRequest,
  customFetch,
  deviceCodeGrantRequest,
  refreshTokenGrantRequest,
} from 'oauth4webapi';
import type { RegisteredClient } from '../../config/remote.ts';
import { assertNever, BridgeError } from '../../errors.ts';
import { findTokenFault, MAX_TOKEN_LENGTH } from '../client/credentials.ts';
import { authenticate } from './client-identity.ts';
import { isSameIssuer, withoutNull } from './discover.ts';
import { describeOAuthError, loginError } from './login-error.ts';
import { busyError, isBusy, type LoginFetch, NONCE_HEADER } from './login-fetch.ts';
import type { LoginClient, Tokens } from './login-store.ts';
import type { ProofKey } from './proof-key.ts';
import {
  adviseResource,
  beginningMembers,
  isResourceRefused,
  type RequestParameters,
  resourceMember,
} from './request-parameters.ts';
import { OPENID } from './scopes.ts';
import type { TokenBinding } from './token-binding.ts';

const TELL_OPERATORS = 'Tell its operators.';
const USUAL_WAY_OUT = 'If that lasts, log in once with --login anew, or tell its operators.';

/** A token is renewed this long before it expires, or after three quarters of its lifetime if that is later. */
const RENEW_AHEAD_MS = 30_000;

export interface TokenContext {
  readonly authorizationServer: AuthorizationServer;
  readonly client: LoginClient;
  readonly proof: RegisteredClient['proof'] | undefined;
  readonly parameters: RequestParameters;
  /** The kind of token that is sent to the server. */
  readonly token: 'access' | 'id';
  readonly fetch: LoginFetch;
  /** Returns milliseconds since 1970; the stored time of a renewal is based on it. */
  readonly wallClock: () => number;
}

export interface CodeGrant {
  /** The parameters that `validateAuthResponse` has accepted. */
  readonly parameters: URLSearchParams;
  readonly callback: string;
  readonly verifier: string;
}

/**
 * The answers that decide about the login; all others are errors. `refused` means that the authorization server finally
 * rejects the refresh token, the code or the client. `isClientUnknown` is true if it does not know the client
 * (`invalid_client`). [RFC 6749 5.2]
 */
export type TokenAnswer =
  | { readonly kind: 'tokens'; readonly tokens: Tokens }
  | {
      readonly kind: 'refused';
      readonly reason: string;
      readonly isClientUnknown: boolean;
    };

/**
 * Exchanges the code of a login for tokens. Like the other requests here, it rejects with ERR_UPSTREAM_* if there is no
 * usable answer; `patiently` retries the temporary failures.
 * @param scopes the scopes that the user was asked for
 */
export function exchangeCode(context: TokenContext, grant: CodeGrant, scopes: readonly string[]): Promise<TokenAnswer> {
  const { parameters, callback, verifier } = grant;
  return askForTokens(context, scopes, async (as, client, options) =>
    authorizationCodeGrantRequest(as, client, await authenticateAs(context), parameters, callback, verifier, options),
  );
}

/**
 * @param scopes the scopes of the login, which some authorization servers require in the request; undefined if they are
 * not known, because the server could refuse any others
 */
export function refreshTokens(
  context: TokenContext,
  refreshToken: string,
  scopes: readonly string[] | undefined,
): Promise<TokenAnswer> {
  return askForTokens(context, scopes, async (as, client, options) => {
    const additionalParameters = { ...options.additionalParameters, ...scopeParameter(scopes) };
    const auth = await authenticateAs(context);
    return refreshTokenGrantRequest(as, client, auth, refreshToken, { ...options, additionalParameters });
  });
}

/** Asks whether the user of a device has decided. `waiting` means that the user has not. */
export async function requestDeviceTokens(
  context: TokenContext,
  deviceCode: string,
  scopes: readonly string[],
): Promise<TokenAnswer | Extract<JudgedAnswer, { kind: 'waiting' }>> {
  const answer = await askEndpoint(context, TOKEN_ENDPOINT, async (as, client, options) =>
    deviceCodeGrantRequest(as, client, await authenticateAs(context), deviceCode, options),
  );
  return answer.kind === 'given' ? tokensOf(answer.members, scopes, context) : answer;
}

/** Asks for tokens in the name of the client itself. */
export function requestOwnTokens(context: TokenContext, scopes: readonly string[]): Promise<TokenAnswer> {
  const parameters = { ...beginningMembers(context.parameters), ...scopeParameter(scopes) };
  return askForTokens(context, scopes, async (as, client, options) =>
    clientCredentialsGrantRequest(as, client, await authenticateAs(context), parameters, options),
  );
}

export function authenticateAs({ client, proof }: TokenContext) {
  return authenticate(client, proof);
}

export function scopeParameter(scopes: readonly string[] = []) {
  return scopes.length > 0 ? { scope: scopes.join(' ') } : {};
}

/** Sends one request. Called again for a retry, because a client's assertions can be used only once. */
export type Ask = (as: AuthorizationServer, client: Client, options: AskOptions) => Promise<Response>;

/** Returns the library's options for the requests of this login. */
export function optionsFor({ fetch, parameters }: TokenContext) {
  return {
    [customFetch]: (url: string, { body, headers, method }: AskInit) =>
      fetch(new URL(url), {
        ...{ method: method === 'POST' ? 'POST' : 'GET', headers, body: body?.toString() },
        binding: parameters.binding,
      }),
    // LoginFetch decides which addresses may be requested, and over which scheme.
    [allowInsecureRequests]: true,
    additionalParameters: resourceMember(parameters),
  };
}
type AskOptions = ReturnType<typeof optionsFor>;
interface AskInit {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: URLSearchParams | undefined;
}

export const TOKEN_ENDPOINT: Endpoint = { name: 'token endpoint', gives: 'access_token' };

export async function askForTokens(
  context: TokenContext,
  scopes: readonly string[] | undefined,
  ask: Ask,
): Promise<TokenAnswer> {
  const answer = await askEndpoint(context, TOKEN_ENDPOINT, ask);
  if (answer.kind === 'waiting') throw refusing(context, TOKEN_ENDPOINT, answer);
  return answer.kind === 'given' ? tokensOf(answer.members, scopes, context) : answer;
}

function tokensOf(members: Members, scopes: readonly string[] | undefined, context: TokenContext): TokenAnswer {
  const tokens = toTokens(members, scopes, context);
  if (tokens !== undefined) return { kind: 'tokens', tokens };
  const reason = 'its answer has no ID token, which --oauth-token id and --oauth-idp-issuer ask for';
  return { kind: 'refused', reason, isClientUnknown: false };
}

/** An endpoint of an authorization server: its name in messages, and the member that its successful answers have. */
export interface Endpoint {
  readonly name: string;
  readonly gives: string;
  /** The advice if a request is refused; absent for the advice about logins. */
  readonly wayOut?: string;
}

/** Sends a request to an endpoint. Rejects with ERR_UPSTREAM_* if the answer decides nothing. */
export async function askEndpoint(
  context: TokenContext,
  endpoint: Endpoint,
  ask: Ask,
): Promise<Extract<JudgedAnswer, { kind: 'given' | 'refused' | 'waiting' }>> {
  const { authorizationServer: as } = context;
  const unusable = () =>
    loginError(`The ${endpoint.name} of ${as.issuer} did not answer as OAuth has it`, TELL_OPERATORS);
  const send = async (): Promise<AskedAnswer> => {
    try {
      const response = await ask(as, { client_id: context.client.id }, optionsFor(context));
      return { response, members: await readMembers(response) };
    } catch (thrown) {
      if (thrown instanceof BridgeError) throw thrown;
      // The library's error is neither shown nor kept as the cause, because it may contain parts of the request.
      throw unusable();
    }
  };
  const { response, members } = await sendWithProof(context.parameters.binding, send);
  const judged = judgeAnswer(response, members, { wanted: endpoint.gives, parameters: context.parameters });
  switch (judged.kind) {
    case 'given':
    case 'refused':
    case 'waiting':
      return judged;
    case 'passing':
      throw busyError(response, `The ${endpoint.name} of ${as.issuer} gives no token at the moment (${judged.reason})`);
    case 'failed':
      throw refusing(context, endpoint, judged);
    case 'unusable':
      throw unusable();
    default:
      return assertNever(judged);
  }
}

interface AskedAnswer {
  readonly response: Response;
  /** Undefined if the body is not a JSON object. */
  readonly members: Members | undefined;
}

/** [RFC 9449 5, 8] The errors of an authorization server that requires a proof, or another proof. */
const PROOF_ERRORS: ReadonlySet<unknown> = new Set(['use_dpop_nonce', 'invalid_dpop_proof']);

/**
 * Sends a request. Sends it again with a proof if the server asks for one, and once more with the nonce in a refusal.
 */
async function sendWithProof(
  binding: TokenBinding | undefined,
  send: () => Promise<AskedAnswer>,
): Promise<AskedAnswer> {
  let answer = await send();
  if (binding === undefined) return answer;
  if (binding.key === undefined && wantsProof(answer.members) && (await binding.begin())) answer = await send();
  const { response, members } = answer;
  const mayRepeat = binding.key !== undefined && response.headers.has(NONCE_HEADER);
  return mayRepeat && members?.error === 'use_dpop_nonce' ? await send() : answer;
}

/** True if an answer asks for a proof. Some authorization servers only mention DPoP in the description of the error. */
function wantsProof({ error, error_description: description }: Members = {}): boolean {
  return PROOF_ERRORS.has(error) || (typeof error === 'string' && /\bdpop\b/i.test(textOf(description) ?? ''));
}

export function refusing(
  { authorizationServer: as }: TokenContext,
  { name, wayOut: usual = USUAL_WAY_OUT }: Endpoint,
  { reason, wayOut = usual }: { readonly reason: string; readonly wayOut?: string | undefined },
) {
  return loginError(`The ${name} of ${as.issuer} refuses the request (${reason})`, wayOut);
}

type Members = Readonly<Record<string, unknown>>;

/** Returns undefined if the body is not a JSON object. Members that are null count as absent, as in metadata. */
async function readMembers(response: Response): Promise<Members | undefined> {
  const body: unknown = await response.json().catch(() => undefined);
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? withoutNull(body) : undefined;
}

/** [RFC 6749 5.2, RFC 8628 3.5] Errors that reject the credentials of the request, so that a retry is useless. */
const FINAL_ERRORS: ReadonlySet<unknown> = new Set([
  ...['invalid_grant', 'invalid_client', 'unauthorized_client', 'invalid_scope', 'access_denied', 'expired_token'],
]);
const PASSING_ERRORS: ReadonlySet<unknown> = new Set(['temporarily_unavailable', 'server_error']);
/** [RFC 8628 3.5] The user has not decided yet. */
const WAITING_ERRORS: ReadonlySet<unknown> = new Set(['authorization_pending', 'slow_down']);

/**
 * - `given`: the answer has the requested member.
 * - `refused`: the refusal is final, so that only a new login helps.
 * - `waiting`: the user of a device has not decided yet. `isTooFast` means that the server was asked too often.
 * - `passing`: the authorization server, or a proxy in front of it, is busy or out of order.
 * - `failed`: the request itself is refused, and a new login would send the same one.
 * - `unusable`: the answer does not follow OAuth.
 */
type JudgedAnswer =
  | { readonly kind: 'given'; readonly members: Members }
  | Extract<TokenAnswer, { kind: 'refused' }>
  | { readonly kind: 'waiting'; readonly reason: string; readonly isTooFast: boolean }
  | { readonly kind: 'passing'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly wayOut: string | undefined }
  | { readonly kind: 'unusable' };

/** Decides which answers of an endpoint are final and which are temporary. */
function judgeAnswer(
  response: Response,
  members: Members | undefined,
  { wanted, parameters }: { readonly wanted: string; readonly parameters: RequestParameters },
): JudgedAnswer {
  const { status } = response;
  if (members === undefined) return { kind: 'passing', reason: `status ${status}, and no JSON` };
  const { error, error_description: description, [wanted]: given } = members;
  const said = typeof error === 'string' ? describeOAuthError(error, textOf(description)) : `status ${status}`;
  // Some servers send these errors with 429.
  if (WAITING_ERRORS.has(error)) return { kind: 'waiting', reason: said, isTooFast: error === 'slow_down' };
  if (isBusy(response) || PASSING_ERRORS.has(error)) return { kind: 'passing', reason: said };
  if (typeof error === 'string' && isResourceRefused(error, textOf(description)))
    return { kind: 'failed', reason: said, wayOut: adviseResource(parameters) };
  if (FINAL_ERRORS.has(error)) return { kind: 'refused', reason: said, isClientUnknown: error === 'invalid_client' };
  if (wantsProof(members)) {
    const { binding } = parameters;
    // A new login reads the metadata and can create a key.
    if (binding?.key === undefined) return { kind: 'refused', reason: said, isClientUnknown: false };
    return { kind: 'failed', reason: said, wayOut: binding.advise(response.headers.get('date')) };
  }
  if (typeof error === 'string') return { kind: 'failed', reason: said, wayOut: undefined };
  return typeof given === 'string' && status < 300 ? { kind: 'given', members } : { kind: 'unusable' };
}

/**
 * Reads the tokens of an answer. A token without a type counts as one of the requested type. Returns undefined if an ID
 * token is needed and missing, as in the answer to some refreshes. [OpenID Connect Core 12.2]
 */
export function toTokens(
  members: Members,
  asked: readonly string[] | undefined,
  context: TokenContext,
): Tokens | undefined {
  const { refresh_token: next, scope } = members;
  const [idToken, refreshToken] = [textOf(members.id_token), textOf(next)];
  const shown = context.token === 'id' ? idToken : (textOf(members.access_token) ?? '');
  if (shown === undefined) return undefined;
  const key = readBinding(members, context);
  const fault = findTokenFault(shown);
  if (fault !== undefined) throw loginError(`The token that the authorization server gave ${fault}`, TELL_OPERATORS);
  if (refreshToken !== undefined && refreshToken.length > MAX_TOKEN_LENGTH) {
    const problem = `The refresh token that the authorization server gave has ${refreshToken.length} characters`;
    throw loginError(problem, `Expected at most ${MAX_TOKEN_LENGTH}. ${TELL_OPERATORS}`);
  }
  // [RFC 6749 5.1] An answer without scopes grants those that were requested.
  const named =
    textOf(scope)
      ?.split(' ')
      .filter((name) => name !== '') ?? asked;
  // Some answers name only the scopes of the access token. A refresh without OPENID returns no ID token.
  const scopes = context.token === 'id' ? [...new Set([...(named ?? []), OPENID])] : named;
  const nowMs = context.wallClock();
  const life = context.token === 'id' ? readExpiry(shown, context) - nowMs / 1000 : secondsOf(members.expires_in);
  return {
    accessToken: shown,
    hasIdToken: idToken !== undefined,
    refreshToken,
    renewAtMs: renewAt(nowMs, life),
    scopes,
    key,
  };
}

/**
 * Returns the expiry of an ID token. Its signature need not be checked, because it came over the connection to the
 * token endpoint.
 */
function readExpiry(idToken: string, context: TokenContext): number {
  const name = `The ID token that ${context.authorizationServer.issuer} gave`;
  return checkIdToken(idToken, context, name, 'Nothing of it is used; tell its operators.');
}

/**
 * Returns the key that the tokens are bound to; undefined if they are not bound. If a proof was sent and the token is
 * not bound, it is used only if the server may accept it. [RFC 9449 5]
 */
function readBinding(
  { token_type: type }: Members,
  { authorizationServer: as, parameters: { binding } }: TokenContext,
): ProofKey | undefined {
  const key = binding?.key;
  const kind = type ?? (key === undefined ? 'Bearer' : 'DPoP');
  switch (typeof kind === 'string' ? kind.toLowerCase() : undefined) {
    case 'dpop':
      if (key !== undefined) return key;
      break;
    case 'bearer': {
      if (binding?.isRequired !== true) return undefined;
      const problem = `${as.issuer} gave a token that is not bound to a key, which the server would not take`;
      throw loginError(problem, 'Nothing of it is used. Tell their operators.');
    }
    default:
  }
  const expected = key === undefined ? 'Bearer' : 'DPoP';
  throw loginError('The authorization server gave a token of another kind', `Expected one of the type ${expected}.`);
}

/**
 * Returns the time at which an ID token expires, in seconds since 1970. Throws if the token is from another issuer, for
 * another client, or expired. [OpenID Connect Core 3.1.3.7]
 * @param name the name of the token in messages
 */
export function checkIdToken(
  idToken: string,
  { authorizationServer: as, client, wallClock }: Pick<TokenContext, 'authorizationServer' | 'client' | 'wallClock'>,
  name: string,
  wayOut: string,
): number {
  const { iss, aud, exp } = readClaims(idToken, name, wayOut);
  const refuse = (fault: string) => loginError(`${name} ${fault}`, wayOut);
  if (typeof iss !== 'string' || !isSameIssuer(iss, as.issuer)) throw refuse('is not of that issuer');
  if (![aud].flat().includes(client.id)) throw refuse('is for another client');
  if (typeof exp !== 'number') throw refuse('does not say when it expires');
  if (exp * 1000 <= wallClock()) throw refuse('has expired, by the clock of this machine');
  return exp;
}

/** @param name the name of the token in messages */
export function readClaims(jwt: string, name: string, wayOut: string): Readonly<Record<string, unknown>> {
  try {
    return decodeJwt(jwt);
  } catch {
    throw loginError(`${name} is no JWT`, wayOut);
  }
}

/** Returns NaN if the server names no lifetime, or none that is a number. */
export function secondsOf(life: unknown): number {
  return typeof life === 'number' ? life : Number(textOf(life) ?? Number.NaN);
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** @param expiresIn seconds; NaN if the server names no lifetime */
function renewAt(nowMs: number, expiresIn: number): number | undefined {
  if (!(expiresIn >= 0)) return undefined;
  const lifeMs = expiresIn * 1000;
  return nowMs + lifeMs - Math.min(RENEW_AHEAD_MS, lifeMs / 4);
}
