import test from 'ava';
import type { BridgeError } from '../../../src/errors.ts';
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
function answering(body: unknown, status = 200, retryAfter?: string) {
  const asked: (LoginRequest & { readonly url: string })[] = [];
  const context: TokenContext = {
    authorizationServer: { issuer: ISSUER, token_endpoint: `${ISSUER}/token` },
    client: { origin: 'configured', id: 'me', method: 'none' },
    proof: undefined,
    parameters: { resource: RESOURCE, extra: new Map(), binding: undefined },
    token: 'access',
    fetch: async (url, request) => {
      asked.push({ ...request, url: url.href });
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      return new Response(text, { status, headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter } });
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
  await refreshTokens(context, 'old', undefined);
  t.deepEqual(parametersOf(), { ...common, grant_type: 'refresh_token', refresh_token: 'old' });
  await refreshTokens(context, 'old', ['read', 'write']);
  t.is(parametersOf().scope, 'read write', 'what the login has');
  await refreshTokens(context, 'old', []);
  t.false('scope' in parametersOf());
  await requestOwnTokens(context, []);
  t.deepEqual(parametersOf(), { ...common, grant_type: 'client_credentials' });
  await requestOwnTokens(context, ['read', 'write']);
  t.is(parametersOf().scope, 'read write');
  for (const { method, url } of asked) t.deepEqual([method, url], ['POST', `${ISSUER}/token`]);
  // A code that no login has let through is not sent.
  const grant = { parameters, callback: 'http://127.0.0.1:1/', verifier: 'v' };
  t.regex(await failure(exchangeCode(context, grant, [])), /did not answer as OAuth has it/);
  t.is(asked.length, 5);
});

test('a token is renewed half a minute before it expires, or a quarter of its life before', async (t) => {
  const renewalOf = async (expiresIn: number | undefined) => {
    const answer = await refreshTokens(answering({ ...BEARER, expires_in: expiresIn }).context, 'old', ['read']);
    return answer.kind === 'tokens' ? answer.tokens.renewAtMs : answer.reason;
  };
  t.is(await renewalOf(3600), NOW_MS + 3_570_000);
  t.is(await renewalOf(120), NOW_MS + 90_000);
  t.is(await renewalOf(40), NOW_MS + 30_000);
  t.is(await renewalOf(undefined), undefined);
});

test('tokens are taken as they come, and the user’s identity is not looked at', async (t) => {
  const given = { ...BEARER, refresh_token: 'next', id_token: 'no token at all' };
  t.deepEqual(await refreshTokens(answering(given).context, 'old', ['read']), {
    kind: 'tokens',
    tokens: {
      ...{ accessToken: 'access', hasIdToken: true, refreshToken: 'next', renewAtMs: undefined },
      scopes: ['read'],
      key: undefined,
    },
  });
});

const CLAIMS = { iss: ISSUER, aud: 'me', exp: NOW_MS / 1000 + 3600, email: 'hunter2@example.com' };

/** The ID token of these claims. [RFC 7515 3.1] */
function idToken(claims: object): string {
  const parts = [{ alg: 'RS256' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'));
  return [...parts, 'signature'].join('.');
}

/** How a login goes that shows an ID token with these claims, or this text. */
async function tokensOfId(claims: object | string | undefined, scope?: string) {
  const id_token = typeof claims === 'object' ? idToken(claims) : claims;
  const { context } = answering({ ...BEARER, expires_in: 60, id_token, scope });
  return await refreshTokens({ ...context, token: 'id' }, 'old', ['openid']).catch((error: Error) => error.message);
}

test('an ID token that is to be shown is checked for issuer, client and time, and renewed by its own time', async (t) => {
  const token = idToken(CLAIMS);
  t.deepEqual(await tokensOfId(CLAIMS), {
    kind: 'tokens',
    tokens: {
      ...{ accessToken: token, hasIdToken: true, refreshToken: undefined, renewAtMs: NOW_MS + 3_570_000 },
      scopes: ['openid'],
      key: undefined,
    },
  });
  for (const claims of [
    { ...CLAIMS, iss: `${ISSUER}/` },
    { ...CLAIMS, aud: ['other', 'me'] },
  ]) {
    t.like(await tokensOfId(claims), { kind: 'tokens' });
  }
  const named = await tokensOfId(CLAIMS, 'read');
  t.deepEqual(typeof named === 'object' && named.kind === 'tokens' && named.tokens.scopes, ['read', 'openid']);
  for (const [claims, fault] of [
    [{ ...CLAIMS, iss: 'https://evil.example' }, 'is not of that issuer'],
    [{ ...CLAIMS, iss: undefined }, 'is not of that issuer'],
    [{ ...CLAIMS, aud: 'other' }, 'is for another client'],
    [{ ...CLAIMS, aud: [] }, 'is for another client'],
    [{ ...CLAIMS, aud: undefined }, 'is for another client'],
    [{ ...CLAIMS, exp: NOW_MS / 1000 }, 'has expired, by the clock of this machine'],
    [{ ...CLAIMS, exp: undefined }, 'does not say when it expires'],
    [{ ...CLAIMS, exp: '9999999999' }, 'does not say when it expires'],
  ] as const) {
    const message = `The ID token that ${ISSUER} gave ${fault}. Nothing of it is used; tell its operators.`;
    t.is((await tokensOfId(claims)) as string, message);
  }
});

test('what is no ID token is not shown in its place, and neither is the access token', async (t) => {
  for (const text of ['hunter2', 'a.b.c', `${idToken(CLAIMS)}.x`]) {
    t.is(
      (await tokensOfId(text)) as string,
      'The ID token that https://auth.example gave is no JWT. Nothing of it is used; tell its operators.',
    );
  }
  t.regex((await tokensOfId('a\r\nX-Evil: 1')) as string, /^The token that the authorization server gave (?!.*Evil)/);
  for (const none of [undefined, '']) {
    t.like(await tokensOfId(none), { kind: 'refused', isClientUnknown: false });
  }
});

test('only four errors of OAuth are final: the login has to be made again', async (t) => {
  const refused = answering({ error: 'invalid_grant', error_description: 'expired' }, 400);
  t.deepEqual(await refreshTokens(refused.context, 'old', []), {
    kind: 'refused',
    reason: 'invalid_grant: expired',
    isClientUnknown: false,
  });
  const unknown = answering({ error: 'invalid_client', error_description: null }, 401);
  t.like(await refreshTokens(unknown.context, 'old', []), { kind: 'refused', isClientUnknown: true });
  for (const error of ['unauthorized_client', 'invalid_scope']) {
    t.like(await refreshTokens(answering({ error }, 400).context, 'old', []), { kind: 'refused', reason: error });
  }
  for (const error of ['invalid_request', 'bad_refresh_token']) {
    const message = await failure(refreshTokens(answering({ error }, 400).context, 'old', []));
    t.is(
      message,
      `The token endpoint of ${ISSUER} refuses the request (${error}). If that lasts, log in once with --login anew, or tell its operators.`,
    );
  }
});

for (const [title, body, status, reason] of [
  ['too many requests', { error: 'invalid_grant' }, 429, 'invalid_grant'],
  ['a gateway', '<h1>Bad gateway</h1>', 502, 'status 502, and no JSON'],
  ['a fault', { error: 'invalid_grant' }, 500, 'invalid_grant'],
  ['an error that says so', { error: 'temporarily_unavailable' }, 400, 'temporarily_unavailable'],
  ['another one', { error: 'server_error' }, 400, 'server_error'],
  ['a page of a proxy', '<html>', 200, 'status 200, and no JSON'],
  ['a list', '[]', 200, 'status 200, and no JSON'],
] as const) {
  test(`what passes says when to try again: ${title}`, async (t) => {
    for (const [retryAfter, retryAfterMs] of [
      [undefined, 0],
      ['7', 7000],
    ] as const) {
      const { context } = answering(body, status, retryAfter);
      const error = await t.throwsAsync(refreshTokens(context, 'old', []), { code: 'ERR_UPSTREAM_AUTH' });
      t.is(
        error?.message,
        `The token endpoint of ${ISSUER} gives no token at the moment (${reason}). Try again later.`,
      );
      t.is((error as BridgeError).retryAfterMs, retryAfterMs);
    }
  });
}

test('members that are null count as absent, a token without a type is a bearer token, and nonsense limits no life', async (t) => {
  const tokensOf = async (body: object) => {
    const answer = await refreshTokens(answering(body).context, 'old', ['read']);
    return answer.kind === 'tokens' ? answer.tokens : answer.reason;
  };
  const tokens = {
    accessToken: 'access',
    hasIdToken: false,
    refreshToken: undefined,
    renewAtMs: undefined,
    scopes: ['read'],
    key: undefined,
  };
  const empty = { token_type: null, refresh_token: null, expires_in: null, scope: null, id_token: null, error: null };
  t.deepEqual(await tokensOf({ access_token: 'access', ...empty }), tokens);
  t.deepEqual(await tokensOf({ access_token: 'access' }), tokens);
  for (const expiresIn of ['', 'soon', -1, {}])
    t.deepEqual(await tokensOf({ ...BEARER, expires_in: expiresIn }), tokens);
  t.deepEqual(await tokensOf({ ...BEARER, expires_in: '120' }), { ...tokens, renewAtMs: NOW_MS + 90_000 });
});

test('the scopes of a token are those that were granted, as far as the answer says', async (t) => {
  const scopesOf = async (scope: string | undefined) => {
    const answer = await refreshTokens(answering({ ...BEARER, scope }).context, 'old', ['read', 'write']);
    return answer.kind === 'tokens' ? answer.tokens.scopes : answer.reason;
  };
  t.deepEqual(await scopesOf(undefined), ['read', 'write']);
  t.deepEqual(await scopesOf('read'), ['read']);
});

test('says what is wrong with the tokens that were given, without showing them', async (t) => {
  const tellOf = (body: unknown, status?: number) =>
    failure(refreshTokens(answering(body, status).context, 'old', ['read']));
  const unusable = `The token endpoint of ${ISSUER} did not answer as OAuth has it. Tell its operators.`;
  for (const body of [{}, { access_token: 5, token_type: 'Bearer' }]) {
    t.is(await tellOf(body), unusable, JSON.stringify(body));
  }
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
  const longest = await refreshTokens(answering({ ...BEARER, refresh_token: tooLong.slice(1) }).context, 'old', [
    'read',
  ]);
  t.is(longest.kind, 'tokens');
});
