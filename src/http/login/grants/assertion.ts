/**
 * [RFC 7523 2.1] Exchanges an assertion for tokens. It comes from a workload, or from an identity provider for a user.
 */
import type { AssertionSource, IdentityProvider } from '../../../config/remote.ts';
import {
  type ExchangeAnswer,
  exchangeIdToken,
  findForeignAudience,
  readAssertionFile,
  requestByAssertion,
} from '../assertions.ts';
import { findOwnClient, useConfigured } from '../client-identity.ts';
import { discoverIdentityProvider, isSameIssuer } from '../discover.ts';
import { loginError, quoteOthers } from '../login-error.ts';
import type { LoginClient, StoredLogin } from '../login-store.ts';
import { chooseScopes, OFFLINE_ACCESS, OPENID } from '../scopes.ts';
import { checkIdToken, readClaims } from '../token-requests.ts';
import { conclude, contextOf, type Grant, type GrantRequest, toLogin } from './grant.ts';
import { refreshLogin } from './refresh.ts';
import { logInAsUser } from './user.ts';

export const logInWithAssertion: Grant = async (request) => {
  const { assertion: source } = request.config;
  // A new assertion takes the place of a refresh token. [RFC 7521 4.1]
  const scopes = request.scopes.filter((scope) => scope !== OFFLINE_ACCESS);
  const own: GrantRequest = { ...request, scopes };
  switch (source?.kind) {
    case 'file':
      return await logInAsWorkload(own, source);
    case 'identity-provider':
      return await logInThroughProvider(own, source);
    case undefined:
      throw loginError('An assertion is needed', 'Give --oauth-assertion-file.');
  }
};

// ---- A workload

async function logInAsWorkload(
  request: GrantRequest,
  { file }: Extract<AssertionSource, { kind: 'file' }>,
): Promise<StoredLogin> {
  const { authorizationServer: as, config, scopes, deps } = request;
  const assertion = readAssertionFile(file);
  const { aud, sub, exp } = readClaims(assertion, `The assertion in ${file}`, 'Expected one with claims.');
  const foreign = findForeignAudience(aud, as);
  // Some platforms issue assertions for an audience that is not a URL. The user then configures the authorization
  // server.
  if (foreign !== undefined && config.issuer === undefined) {
    const problem = `The assertion in ${file} is for ${foreign}, and the authorization server is ${as.issuer}`;
    const trust = `if you trust that server with it, give --oauth-issuer ${quoteOthers(as.issuer)}.`;
    throw loginError(problem, `It is sent to nobody; ${trust}`);
  }
  const client = findOwnClient(request) ?? clientOf(sub);
  const hasExpired = typeof exp === 'number' && exp * 1000 <= deps.wallClock();
  const advice = hasExpired
    ? `The assertion in ${file} has expired, by the clock of this machine; the file is read again for the next call.`
    : `The assertion is that in ${file}; does the authorization server trust its issuer?`;
  return conclude(request, client, await requestByAssertion(contextOf(request, client), assertion, scopes), advice);
}

function clientOf(subject: unknown): LoginClient {
  const id = typeof subject === 'string' && subject !== '' ? subject : 'unknown';
  return { origin: 'assertion', id, method: 'none' };
}

// ---- A user of an identity provider

/** [ext-auth enterprise-managed-authorization] */
async function logInThroughProvider(request: GrantRequest, source: IdentityProvider): Promise<StoredLogin> {
  const { authorizationServer: as } = request;
  const client = findOwnClient(request);
  if (client === undefined) {
    throw loginError(`${as.issuer} has to know the client beforehand`, 'Give --oauth-client-id.');
  }
  const { assertion, scopes, identity } = await requestAssertion(request, source, client);
  // The user's parameters were sent with the request that began the login, at the identity provider.
  const context = contextOf({ ...request, parameters: { ...request.parameters, extra: new Map() } }, client);
  const answer = await requestByAssertion(context, assertion, scopes);
  const advice = `It was shown an assertion of ${source.issuer}; both have to allow the client and the user.`;
  const login = conclude(request, client, answer, advice);
  return identity === undefined ? login : { ...login, identity };
}

interface ProviderGrant extends Pick<Extract<ExchangeAnswer, { kind: 'assertion' }>, 'assertion' | 'scopes'> {
  /** The login at the identity provider; undefined if the ID token comes from a file. */
  readonly identity: StoredLogin | undefined;
}

async function requestAssertion(
  request: GrantRequest,
  source: IdentityProvider,
  client: LoginClient,
): Promise<ProviderGrant> {
  const { authorizationServer, parameters, scopes } = request;
  const atProvider = await prepareProvider(request, source);
  const exchange = (idToken: string, own: GrantRequest): Promise<ExchangeAnswer> =>
    exchangeIdToken(contextOf(own, useConfigured(source.client, own.authorizationServer, undefined)), {
      ...{ idToken, authorizationServer, scopes },
      resource: parameters.resource,
    });
  if (source.idToken.kind === 'file') {
    const answer = await exchange(readIdToken(atProvider, source.client.id, source.idToken.file), atProvider);
    if (answer.kind === 'refused') throw refusedByProvider(source, answer);
    return { ...answer, identity: undefined };
  }
  const afterLogin: GrantRequest = { ...atProvider, parameters: { ...atProvider.parameters, extra: new Map() } };
  const keep = (identity: StoredLogin): Promise<void> => {
    const { previous } = request;
    const isSameServer = previous !== undefined && isSameIssuer(previous.issuer, authorizationServer.issuer);
    return request.keep({ ...(isSameServer ? previous : toLogin(request, client, undefined)), identity });
  };
  const stored = atProvider.previous;
  if (stored?.tokens !== undefined && !isDue(stored, request)) {
    const answer = await exchange(stored.tokens.accessToken, afterLogin);
    if (answer.kind === 'assertion') return { ...answer, identity: stored };
    // The refusal of a valid ID token is a decision, unless a refreshed token can be tried.
    if (stored.tokens.refreshToken === undefined) throw refusedByProvider(source, answer);
  }
  const identity = (await refreshIdentity(atProvider, stored)) ?? (await logInAsUser(atProvider, source.idToken.grant));
  // The login is stored at once, because the next step may fail: a refresh token may be usable only once, and the user
  // should be asked only once.
  await keep(identity);
  const answer = await exchange(identity.tokens?.accessToken ?? '', afterLogin);
  if (answer.kind === 'refused') throw refusedByProvider(source, answer);
  return { ...answer, identity };
}

/**
 * Prepares a login at the identity provider, as the client that the user has configured there. The token of that login
 * is the user's ID token.
 */
async function prepareProvider(request: GrantRequest, source: IdentityProvider): Promise<GrantRequest> {
  const { idToken } = source;
  const { guard, fetch } = request.reachFrom(new URL(source.issuer));
  const warn = (text: string): void => request.deps.log.warn(text);
  const grant = idToken.kind === 'login' ? idToken.grant : 'jwt-bearer';
  const authorizationServer = await discoverIdentityProvider(source.issuer, { grant, warn, fetch });
  return {
    ...{ ...request, guard, fetch, authorizationServer },
    config: { ...request.config, client: source.client, clientMetadataUrl: undefined, token: 'id' },
    // Only the server's own tokens are bound to a key.
    parameters: { resource: undefined, extra: request.config.extraParameters, binding: undefined },
    scopes: chooseScopes({
      ...{ status: 401, configured: [], challenged: [], advertised: [], previous: [], always: [OPENID] },
      supported: authorizationServer.scopes_supported,
    }),
    previous: request.previous?.identity,
    findNewerLogin: () => request.findNewerLogin()?.identity,
  };
}

function readIdToken({ authorizationServer, deps }: GrantRequest, clientId: string, file: string): string {
  const idToken = readAssertionFile(file);
  const client: LoginClient = { origin: 'configured', id: clientId, method: 'none' };
  const context = { authorizationServer, client, wallClock: deps.wallClock };
  const name = `The ID token for ${authorizationServer.issuer} in ${file}`;
  checkIdToken(idToken, context, name, 'Nothing of it is sent; the file is read again for the next call.');
  return idToken;
}

function isDue({ tokens }: StoredLogin, { deps }: GrantRequest): boolean {
  return tokens?.renewAtMs === undefined || deps.wallClock() >= tokens.renewAtMs;
}

async function refreshIdentity(
  request: GrantRequest,
  stored: StoredLogin | undefined,
): Promise<StoredLogin | undefined> {
  const refreshToken = stored?.tokens?.refreshToken;
  if (stored === undefined || refreshToken === undefined) return undefined;
  return await refreshLogin(request, stored, refreshToken);
}

function refusedByProvider(
  { issuer, idToken }: IdentityProvider,
  answer: Extract<ExchangeAnswer, { kind: 'refused' }>,
) {
  const wayOut = answer.isClientUnknown
    ? CHECK_PROVIDER_CLIENT
    : idToken.kind === 'file'
      ? `It was shown the ID token in ${idToken.file}; whoever runs the identity provider decides who may use the server.`
      : 'Whoever runs the identity provider decides who may use the server; --login anew logs you in there again.';
  return loginError(`${issuer} gave no assertion for the server (${answer.reason})`, wayOut);
}

const CHECK_PROVIDER_CLIENT = 'Check --oauth-idp-client-id and --oauth-idp-secret-file.';
