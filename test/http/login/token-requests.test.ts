import test from 'ava';
import { MAX_TOKEN_LENGTH } from '../../../src/http/client/credentials.ts';
import type { LoginRequest } from '../../../src/http/login/login-fetch.ts';
import {
  exchangeCode,
  refreshTokens,
  requestOwnTokens,
  type TokenAnswer,
  type TokenContext,
} from '../../../src/http/login/token-requests.ts';

const ISSUER = 'https://auth.example';
const RESOURCE = 'https://mcp.example/mcp';
const NOW_MS = 1_000_000;
const BEARER = { access_token: 'access', token_type: 'Bearer' };

/** An authorization server that answers each token request so; what it is asked is kept. */
function answering(body: unknown, status = 200) {
  const asked: (LoginRequest & { readonly url: string })[] = [];
  const context: TokenContext = {
    authorizationServer: { issuer: ISSUER, token_endpoint: `${ISSUER}/token` },
    client: { origin: 'configured', id: 'me', method: 'none' },
    proof: undefined,
    resource: RESOURCE,
    fetch: async (url, request) => {
      asked.push({ ...request, url: url.href });
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      return new Response(text, { status, headers: { 'content-type': 'application/json' } });
    },
    wallClock: () => NOW_MS,
  };
  const parametersOf = () => Object.fromEntries(new URLSearchParams(asked.at(-1)?.body));
  return { context, asked, parametersOf };
}

const failure = (answer: Promise<TokenAnswer>) => answer.then(String, (error: Error) => error.message);

test('each request for tokens says what they are for', async (t) => {
  const { context, asked, parametersOf } = answering(BEARER);
  const parameters = new URLSearchParams({ code: 'c' });
  const common = { client_id: 'me', resource: RESOURCE };
  await refreshTokens(context, 'old');
  t.deepEqual(parametersOf(), { ...common, grant_type: 'refresh_token', refresh_token: 'old' });
  await requestOwnTokens(context, []);
  t.deepEqual(parametersOf(), { ...common, grant_type: 'client_credentials' });
  await requestOwnTokens(context, ['read', 'write']);
  t.is(parametersOf().scope, 'read write');
  for (const { method, url } of asked) t.deepEqual([method, url], ['POST', `${ISSUER}/token`]);
  // A code that no login has let through is not sent.
  const grant = { parameters, callback: 'http://127.0.0.1:1/', verifier: 'v' };
  t.regex(await failure(exchangeCode(context, grant)), /did not answer as OAuth has it/);
  t.is(asked.length, 3);
});

test('a token is renewed half a minute before it expires, or a quarter of its life before', async (t) => {
  const renewalOf = async (expiresIn: number | undefined) => {
    const answer = await refreshTokens(answering({ ...BEARER, expires_in: expiresIn }).context, 'old');
    return answer.kind === 'tokens' ? answer.tokens.renewAtMs : answer.reason;
  };
  t.is(await renewalOf(3600), NOW_MS + 3_570_000);
  t.is(await renewalOf(120), NOW_MS + 90_000);
  t.is(await renewalOf(40), NOW_MS + 30_000);
  t.is(await renewalOf(undefined), undefined);
});

test('tokens are taken as they come, and the user’s identity is not looked at', async (t) => {
  const given = { ...BEARER, refresh_token: 'next', id_token: 'no token at all' };
  t.deepEqual(await refreshTokens(answering(given).context, 'old'), {
    kind: 'tokens',
    tokens: { accessToken: 'access', refreshToken: 'next', renewAtMs: undefined },
  });
});

test('an error of OAuth is a refusal with its reason', async (t) => {
  const refused = answering({ error: 'invalid_grant', error_description: 'expired' }, 400);
  t.deepEqual(await refreshTokens(refused.context, 'old'), {
    kind: 'refused',
    reason: 'invalid_grant: expired',
    isClientUnknown: false,
  });
  const unknown = answering({ error: 'invalid_client' }, 401);
  t.like(await refreshTokens(unknown.context, 'old'), { kind: 'refused', isClientUnknown: true });
});

test('says what is wrong with the tokens that were given, without showing them', async (t) => {
  const tellOf = (body: unknown, status?: number) => failure(refreshTokens(answering(body, status).context, 'old'));
  const unusable = `The token endpoint of ${ISSUER} did not answer as OAuth has it. Tell its operators.`;
  for (const body of ['no JSON', 'null', '[]', {}, { access_token: 5, token_type: 'Bearer' }]) {
    t.is(await tellOf(body), unusable, JSON.stringify(body));
  }
  t.is(await tellOf('no JSON', 500), unusable);
  t.is(
    await tellOf({ ...BEARER, token_type: 'DPoP' }),
    'The authorization server gave a token of another kind. Expected one of the type Bearer.',
  );
  const message = await tellOf({ ...BEARER, access_token: 'secret\r\n' });
  t.regex(message, /^The token that the authorization server gave .*\. Tell its operators\.$/);
  t.notRegex(message, /secret/);
  const tooLong = 'r'.repeat(MAX_TOKEN_LENGTH + 1);
  t.is(
    await tellOf({ ...BEARER, refresh_token: tooLong }),
    `The refresh token that the authorization server gave has ${tooLong.length} characters. ` +
      `Expected at most ${MAX_TOKEN_LENGTH}. Tell its operators.`,
  );
  const longest = await refreshTokens(answering({ ...BEARER, refresh_token: tooLong.slice(1) }).context, 'old');
  t.is(longest.kind, 'tokens');
});
