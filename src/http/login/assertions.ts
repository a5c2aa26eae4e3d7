/** Assertions: reading them from files, checking their audience, and sending them. */
import { genericTokenEndpointRequest } from 'oauth4webapi';
import { readSmallFile } from '../../io/bounded-file.ts';
import { MAX_TOKEN_LENGTH } from '../client/credentials.ts';
import { isSameIssuer } from './discover.ts';
import { loginError, quoteOthers } from './login-error.ts';
import { beginningMembers, type RequestParameters } from './request-parameters.ts';
import {
  type Ask,
  askEndpoint,
  askForTokens,
  authenticateAs,
  readClaims,
  refusing,
  scopeParameter,
  TOKEN_ENDPOINT,
  type TokenAnswer,
  type TokenContext,
  textOf,
} from './token-requests.ts';

/** [RFC 7519 3] Three parts in base64url. The check keeps other file contents from being sent. */
const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/;
const EXPECTED = `Expected one JWT of at most ${MAX_TOKEN_LENGTH} characters and nothing else.`;

/**
 * Reads the assertion from a file that another program keeps up to date. Throws ERR_UPSTREAM_AUTH, which names the file
 * but does not quote its content.
 */
export function readAssertionFile(path: string): string {
  let text: string;
  try {
    text = readSmallFile(path).trim();
  } catch (thrown) {
    const { code = 'unknown error' } = thrown as NodeJS.ErrnoException;
    throw loginError(`Cannot read the assertion file ${path} (${code})`, EXPECTED);
  }
  if (text.length <= MAX_TOKEN_LENGTH && JWT.test(text)) return text;
  const found =
    text.length > MAX_TOKEN_LENGTH ? `has ${text.length} characters` : text === '' ? 'is empty' : 'holds no JWT';
  throw loginError(`The assertion file ${path} ${found}`, EXPECTED);
}

/**
 * Returns the audiences of a JWT that is not for this authorization server, in words for a message; undefined if it is
 * for this one. [RFC 7523 3] The audience may be its issuer or its token endpoint.
 */
export function findForeignAudience(
  aud: unknown,
  { issuer, token_endpoint: endpoint }: TokenContext['authorizationServer'],
): string | undefined {
  const audiences = [aud].flat().filter((name) => typeof name === 'string');
  if (audiences.some((name) => isSameIssuer(name, issuer) || name === endpoint)) return undefined;
  return audiences.length === 0 ? 'nobody in particular' : quoteOthers(audiences.join(', '));
}

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** Exchanges an assertion for tokens. [RFC 7523 2.1] Rejects with ERR_UPSTREAM_*. */
export function requestByAssertion(
  context: TokenContext,
  assertion: string,
  scopes: readonly string[],
): Promise<TokenAnswer> {
  return askForTokens(context, scopes, async (as, client, { additionalParameters: _, ...options }) => {
    const parameters = { ...beginningMembers(context.parameters), ...scopeParameter(scopes), assertion };
    return genericTokenEndpointRequest(as, client, await authenticateAs(context), JWT_BEARER, parameters, options);
  });
}

const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token';
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag';

export interface ExchangeRequest {
  /** The ID token of the user. */
  readonly idToken: string;
  /** The authorization server that the assertion will be sent to. */
  readonly authorizationServer: TokenContext['authorizationServer'];
  readonly resource: RequestParameters['resource'];
  /** The scopes to request at that authorization server. */
  readonly scopes: readonly string[];
}

export type ExchangeAnswer =
  | { readonly kind: 'assertion'; readonly assertion: string; readonly scopes: readonly string[] }
  | Extract<TokenAnswer, { kind: 'refused' }>;

/**
 * Requests an assertion about a user from the user's identity provider, for one authorization server. [RFC 8693 2.1;
 * ext-auth enterprise-managed-authorization#token-exchange] Rejects with ERR_UPSTREAM_*.
 */
export async function exchangeIdToken(provider: TokenContext, request: ExchangeRequest): Promise<ExchangeAnswer> {
  const { idToken, authorizationServer, resource, scopes } = request;
  const context: TokenContext = { ...provider, parameters: { ...provider.parameters, resource } };
  const parameters = {
    ...beginningMembers(context.parameters),
    ...scopeParameter(scopes),
    requested_token_type: ID_JAG,
    audience: authorizationServer.issuer,
    subject_token: idToken,
    subject_token_type: ID_TOKEN,
  };
  const ask: Ask = async (as, client, { additionalParameters: _, ...options }) =>
    genericTokenEndpointRequest(as, client, await authenticateAs(context), TOKEN_EXCHANGE, parameters, options);
  const answer = await askEndpoint(context, TOKEN_ENDPOINT, ask);
  if (answer.kind === 'waiting') throw refusing(context, TOKEN_ENDPOINT, answer);
  if (answer.kind === 'refused') return answer;
  const { access_token: assertion, issued_token_type: type, scope } = answer.members;
  const name = `The assertion that ${provider.authorizationServer.issuer} gave`;
  const refuse = (fault: string) => loginError(`${name} ${fault}`, UNUSED);
  if (type !== ID_JAG) throw refuse(`is of the type ${quoteOthers(textOf(type) ?? 'nothing')}, expected ${ID_JAG}`);
  const given = textOf(assertion) ?? '';
  if (given.length > MAX_TOKEN_LENGTH)
    throw refuse(`has ${given.length} characters, expected at most ${MAX_TOKEN_LENGTH}`);
  const foreign = findForeignAudience(readClaims(given, name, UNUSED).aud, authorizationServer);
  if (foreign !== undefined) throw refuse(`is for ${foreign}, expected ${authorizationServer.issuer}`);
  const granted = textOf(scope)?.split(' ');
  return { kind: 'assertion', assertion: given, scopes: granted?.filter((one) => one !== '') ?? scopes };
}

const UNUSED = 'It is sent to nobody; tell whoever runs the identity provider.';
