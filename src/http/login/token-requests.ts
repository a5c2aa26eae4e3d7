import {
  type AuthorizationServer,
  allowInsecureRequests,
  authorizationCodeGrantRequest,
  type Client,
  clientCredentialsGrantRequest,
  customFetch,
  processGenericTokenEndpointResponse,
  ResponseBodyError,
  refreshTokenGrantRequest,
  type TokenEndpointResponse,
} from 'oauth4webapi';
import type { RegisteredClient } from '../../config/remote.ts';
import { BridgeError } from '../../errors.ts';
import { findTokenFault, MAX_TOKEN_LENGTH } from '../client/credentials.ts';
import { authenticate } from './client-identity.ts';
import { describeOAuthError, loginError } from './login-error.ts';
import type { LoginFetch } from './login-fetch.ts';
import type { LoginClient, Tokens } from './login-store.ts';

const TELL_OPERATORS = 'Tell its operators.';

/** A token is renewed so long before it expires, or a quarter of its life, whichever is less. */
const RENEW_AHEAD_MS = 30_000;

export interface TokenContext {
  readonly authorizationServer: AuthorizationServer;
  readonly client: LoginClient;
  readonly proof: RegisteredClient['proof'] | undefined;
  /** [RFC 8707] What the token is for: sent every time. */
  readonly resource: string;
  readonly fetch: LoginFetch;
  /** Milliseconds since 1970, by which the time to renew is stored. */
  readonly wallClock: () => number;
}

export interface CodeGrant {
  /** The parameters that `validateAuthResponse` has let through. */
  readonly parameters: URLSearchParams;
  readonly callback: string;
  readonly verifier: string;
}

export type TokenAnswer =
  | { readonly kind: 'tokens'; readonly tokens: Tokens }
  /** The authorization server has refused with an error of OAuth. */
  | {
      readonly kind: 'refused';
      readonly reason: string;
      /** [RFC 6749 5.2] It does not know the client: `invalid_client`. */
      readonly isClientUnknown: boolean;
    };

/**
 * Exchanges the code of a login for tokens. Like the other requests here, it rejects with ERR_UPSTREAM_* when there is
 * no usable answer.
 */
export function exchangeCode(context: TokenContext, grant: CodeGrant): Promise<TokenAnswer> {
  const { parameters, callback, verifier } = grant;
  return askForTokens(context, async (as, client, options) =>
    authorizationCodeGrantRequest(as, client, await authenticateAs(context), parameters, callback, verifier, options),
  );
}

export function refreshTokens(context: TokenContext, refreshToken: string): Promise<TokenAnswer> {
  return askForTokens(context, async (as, client, options) =>
    refreshTokenGrantRequest(as, client, await authenticateAs(context), refreshToken, options),
  );
}

/** Asks for tokens in the name of the client itself. */
export function requestOwnTokens(context: TokenContext, scopes: readonly string[]): Promise<TokenAnswer> {
  const parameters = {
    resource: context.resource,
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
  };
  return askForTokens(context, async (as, client, options) =>
    clientCredentialsGrantRequest(as, client, await authenticateAs(context), parameters, options),
  );
}

function authenticateAs({ client, proof }: TokenContext) {
  return authenticate(client, proof);
}

type Ask = (as: AuthorizationServer, client: Client, options: AskOptions) => Promise<Response>;

function optionsFor({ fetch, resource }: TokenContext) {
  return {
    [customFetch]: (url: string, { body, headers, method }: AskInit) =>
      fetch(new URL(url), { method: method === 'POST' ? 'POST' : 'GET', headers, body: body?.toString() }),
    // Our own fetch decides which addresses may be asked, and how.
    [allowInsecureRequests]: true,
    additionalParameters: { resource },
  };
}
type AskOptions = ReturnType<typeof optionsFor>;
interface AskInit {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: URLSearchParams | undefined;
}

async function askForTokens(context: TokenContext, ask: Ask): Promise<TokenAnswer> {
  const { authorizationServer: as } = context;
  const client: Client = { client_id: context.client.id };
  try {
    const response = await withoutIdToken(await ask(as, client, optionsFor(context)));
    return {
      kind: 'tokens',
      tokens: toTokens(await processGenericTokenEndpointResponse(as, client, response), context),
    };
  } catch (thrown) {
    if (thrown instanceof BridgeError) throw thrown;
    if (thrown instanceof ResponseBodyError) {
      const reason = describeOAuthError(thrown.error, thrown.error_description);
      return { kind: 'refused', reason, isClientUnknown: thrown.error === 'invalid_client' };
    }
    // The message of the library is not shown, nor is its error kept as the cause: it holds the answer.
    throw loginError(`The token endpoint of ${as.issuer} did not answer as OAuth has it`, TELL_OPERATORS);
  }
}

/**
 * Takes out the ID token: the user's identity is not needed, and an ID token that is not quite right must not stop the
 * login.
 */
async function withoutIdToken(response: Response): Promise<Response> {
  const { status, headers } = response;
  const text = await response.text();
  try {
    const { id_token: _, ...fields } = JSON.parse(text);
    return new Response(JSON.stringify(fields), { status, headers });
  } catch {
    return new Response(text, { status, headers });
  }
}

function toTokens(answer: TokenEndpointResponse, { wallClock }: TokenContext): Tokens {
  const { access_token: accessToken, refresh_token: refreshToken, expires_in: expiresIn } = answer;
  if (answer.token_type !== 'bearer') {
    throw loginError('The authorization server gave a token of another kind', 'Expected one of the type Bearer.');
  }
  const fault = findTokenFault(accessToken);
  if (fault !== undefined) throw loginError(`The token that the authorization server gave ${fault}`, TELL_OPERATORS);
  if (refreshToken !== undefined && refreshToken.length > MAX_TOKEN_LENGTH) {
    const problem = `The refresh token that the authorization server gave has ${refreshToken.length} characters`;
    throw loginError(problem, `Expected at most ${MAX_TOKEN_LENGTH}. ${TELL_OPERATORS}`);
  }
  return { accessToken, refreshToken, renewAtMs: renewAt(wallClock(), expiresIn) };
}

function renewAt(nowMs: number, expiresIn: number | undefined): number | undefined {
  if (expiresIn === undefined) return undefined;
  const lifeMs = expiresIn * 1000;
  return nowMs + lifeMs - Math.min(RENEW_AHEAD_MS, lifeMs / 4);
}
