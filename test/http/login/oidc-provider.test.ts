/** Logging in at an authorization server that others have written. */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import Provider, { type Configuration } from 'oidc-provider';
import type { Browser } from '../../support/browser.js';
import { ProofReader } from '../../support/proofs.ts';
import { waitFor } from '../../support/wait-for.ts';
import { createUser, temporaryFolder } from './logged-in.ts';

const SCOPES = ['read', 'write'];

/** A provider that registers clients and rotates refresh tokens, whose user agrees to everything. */
async function startProvider(t: ExecutionContext, resource: string, changes: Configuration = {}) {
  const listener = createServer();
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    listener.close();
    listener.closeAllConnections();
  });
  const issuer = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  const configuration: Configuration = {
    scopes: ['openid', 'offline_access', ...SCOPES],
    clientAuthMethods: ['none', 'client_secret_basic'],
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      // The provider gives bound tokens to clients that prove possession of a key, and wants a nonce in each proof.
      dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => true },
      deviceFlow: {
        enabled: true,
        userCodeInputSource: async (context, form) => {
          context.body = form;
        },
        userCodeConfirmSource: async (context, form) => {
          context.body = form;
        },
        successSource: async (context) => {
          context.body = 'logged in';
        },
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({ scope: SCOPES.join(' '), accessTokenTTL: 3600 }),
      },
    },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async (_, client, code) =>
      client.grantTypeAllowed('refresh_token') && code.scopes.has('offline_access'),
    findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    ...changes,
  };
  const provider = new Provider(issuer, configuration);
  const counts = { tokens: 0, revoked: 0, asked: [] as URLSearchParams[] };
  provider.on('grant.success', () => {
    counts.tokens += 1;
  });
  provider.on('grant.revoked', () => {
    counts.revoked += 1;
  });
  const answer = provider.callback();
  listener.on('request', async (request, response) => {
    if (request.url?.startsWith('/interaction/') !== true) return void answer(request, response);
    const { prompt, params, session } = await provider.interactionDetails(request, response);
    if (prompt.name === 'login') {
      return void provider.interactionFinished(request, response, { login: { accountId: 'somebody' } });
    }
    const grant = new provider.Grant({ accountId: session?.accountId ?? '', clientId: String(params.client_id) });
    grant.addOIDCScope(String(params.scope));
    grant.addResourceScope(resource, String(params.scope));
    const grantId = await grant.save();
    await provider.interactionFinished(request, response, { consent: { grantId } }, { mergeWithLastSubmission: true });
  });
  return { issuer, provider, counts };
}

type Takes = 'access token' | 'ID token' | 'bound token';

/**
 * A server whose tokens are those of the provider. A bound one has to come with a proof of the key that the provider knows.
 */
async function startServer(t: ExecutionContext, takes: Takes = 'access token', changes?: Configuration) {
  const listener = createServer();
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    listener.close();
    listener.closeAllConnections();
  });
  const origin = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  const url = new URL(`${origin}/mcp`);
  const { issuer, provider, counts } = await startProvider(t, url.href, changes);
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
  const reader = new ProofReader();
  const isGood = async (token: string, { authorization, dpop }: IncomingHttpHeaders): Promise<boolean> => {
    if (token === '' || expired.has(token)) return false;
    const found = await provider.AccessToken.find(token);
    if (takes === 'access token') return found !== undefined && found.jkt === undefined;
    if (takes === 'bound token') {
      const proof = await reader.read(dpop, { method: 'POST', url: url.href, token });
      return authorization === `DPoP ${token}` && found?.jkt === proof.thumbprint;
    }
    return await jwtVerify(token, keys, { issuer }).then(
      () => true,
      () => false,
    );
  };
  /** Tokens that the server takes no longer. */
  const expired = new Set<string>();
  let latest = '';
  const challenge = takes === 'bound token' && changes === undefined ? 'DPoP algs="ES256"' : 'Bearer';
  listener.on('request', async (request, response) => {
    if (request.url === '/.well-known/oauth-protected-resource/mcp') {
      response.setHeader('content-type', 'application/json');
      const metadata = { resource: url.href, authorization_servers: [`${issuer}/`], scopes_supported: SCOPES };
      return void response.end(JSON.stringify(metadata));
    }
    const token = request.headers.authorization?.replace(/^(?:Bearer|DPoP) /, '') ?? '';
    if (!(await isGood(token, request.headers))) {
      return void response.writeHead(401, { 'www-authenticate': challenge }).end();
    }
    latest = token;
    response.end('served');
  });
  return { url, counts, expire: () => void expired.add(latest) };
}

/** Opens the page for a code, fills in every form that comes, and returns the last page. */
async function enterCode(browser: Browser, page: string): Promise<string> {
  let { url, text } = await browser.visit(page);
  for (;;) {
    const action = /<form[^>]* action="([^"]+)"/.exec(text)?.[1];
    if (action === undefined) return text;
    const inputs = [...text.matchAll(/<input[^>]* name="([^"]+)" value="([^"]*)"/g)];
    const body = new URLSearchParams(inputs.map(([, name = '', value = '']): [string, string] => [name, value]));
    body.set('confirm', 'yes');
    const answer = await browser.open(new URL(action, url), { method: 'POST', body });
    const location = answer.headers.get('location');
    ({ url, text } =
      location === null ? { url, text: await answer.text() } : await browser.visit(new URL(location, url)));
  }
}

const CODE_LINE = /within 10 min, open (\S+) in any browser and enter the code (\S+), or open ([^"\s]+)"/;

test('a user without a browser here logs in with a code at an independent authorization server', async (t) => {
  const server = await startServer(t);
  const stateDirectory = temporaryFolder(t);
  const user = createUser(t, server.url, { stateDirectory, grant: 'device-code-if-offered' });
  const call = user.call();
  const [, page = '', code, complete = ''] = await waitFor(() => CODE_LINE.exec(user.log()) ?? undefined, {
    message: 'a code in the log',
  });
  t.regex(page, /^http:\/\/127\.0\.0\.1:\d+\/device$/);
  t.is(complete, `${page}?user_code=${code}`);
  t.is(await enterCode(user.browser, complete), 'logged in');
  t.is((await call).body, 'served');
  t.deepEqual(user.opened, []);
  server.expire();
  t.is((await user.call()).body, 'served', 'it is renewed without asking');
  const other = createUser(t, server.url, { stateDirectory });
  t.is((await other.call()).body, 'served', 'the login is kept whatever the grant');
  t.is(server.counts.tokens, 2);
  t.deepEqual([...user.opened, ...other.opened], []);
});

test('an independent authorization server registers the client, logs the user in, and refreshes for all processes once', async (t) => {
  const server = await startServer(t);
  const stateDirectory = temporaryFolder(t);
  const processes = Array.from({ length: 5 }, () => createUser(t, server.url, { stateDirectory }));
  for (const call of await Promise.all(processes.map((one) => one.call()))) t.is(call.body, 'served');
  t.is(processes.flatMap(({ opened }) => opened).length, 1);
  t.is(server.counts.tokens, 1);
  for (const round of [2, 3]) {
    server.expire();
    for (const call of await Promise.all(processes.map((one) => one.call()))) t.is(call.body, 'served');
    t.is(server.counts.tokens, round);
  }
  t.is(server.counts.revoked, 0);
  t.is(processes.flatMap(({ opened }) => opened).length, 1);
});

test('an independent authorization server gives an ID token that is shown, renewed, and wanted by the server', async (t) => {
  const server = await startServer(t, 'ID token');
  const { failure } = await createUser(t, server.url, { scopes: ['openid', 'read'] }).call();
  t.regex(failure?.message ?? '', /There was an ID token as well, .*--oauth-token id\.$/);
  const user = createUser(t, server.url, { token: 'id' });
  t.is((await user.call()).body, 'served');
  server.expire();
  // Two ID tokens of one second are the same text.
  const second = Math.floor(Date.now() / 1000);
  await waitFor(() => Math.floor(Date.now() / 1000) > second);
  t.is((await user.call()).body, 'served');
  t.is(user.opened.length, 1);
});

for (const [whoever, changes] of [
  ['the server', undefined],
  ['the provider', { clientDefaults: { dpop_bound_access_tokens: true } }],
] as const) {
  test(`an independent authorization server binds tokens to a key where ${whoever} wants that, with nonces, for all processes`, async (t) => {
    const server = await startServer(t, 'bound token', changes);
    const stateDirectory = temporaryFolder(t);
    const processes = Array.from({ length: 2 }, () => createUser(t, server.url, { stateDirectory }));
    for (const call of await Promise.all(processes.map((one) => one.call())))
      t.is(call.body, 'served', call.failure?.message);
    for (const round of [2, 3]) {
      server.expire();
      for (const call of await Promise.all(processes.map((one) => one.call()))) t.is(call.body, 'served');
      t.is(server.counts.tokens, round);
    }
    t.is(server.counts.revoked, 0);
    t.is(processes.flatMap(({ opened }) => opened).length, 1);
  });
}
