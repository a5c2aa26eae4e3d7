/** Assertions at an identity provider and an authorization server that others have written. */

import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createRemoteJWKSet, generateKeyPair, jwtVerify, SignJWT } from 'jose';
import Provider, { type ClientMetadata, type Configuration } from 'oidc-provider';
import { CLIENT_AT_PROVIDER, CLIENT_AT_SERVER, ID_JAG, JWT_BEARER, TOKEN_EXCHANGE } from '../../support/company.ts';
import { createUser, temporaryFolder } from './logged-in.ts';

/** Answers at a port of its own; gone when the test ends. */
async function listen(t: ExecutionContext) {
  const listener = createServer();
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    listener.close();
    listener.closeAllConnections();
  });
  return { listener, origin: `http://127.0.0.1:${(listener.address() as AddressInfo).port}` };
}

/** A provider that knows one client, and whose users agree to everything. */
async function startProvider(t: ExecutionContext, grant: string, client: Partial<ClientMetadata>) {
  const { listener, origin: issuer } = await listen(t);
  const configuration: Configuration = {
    clients: [{ client_id: CLIENT_AT_PROVIDER, token_endpoint_auth_method: 'none', ...client }],
    scopes: ['openid', 'offline_access', 'read'],
    extraClientMetadata: { properties: [] },
    features: { devInteractions: { enabled: false } },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
  };
  const provider = new Provider(issuer, configuration);
  const counts = { pages: 0, exchanges: 0, refreshes: 0 };
  provider.on('grant.success', ({ oidc }) => {
    if (oidc.params?.grant_type === 'refresh_token') counts.refreshes += 1;
    if (oidc.params?.grant_type === grant) counts.exchanges += 1;
  });
  const answer = provider.callback();
  listener.on('request', async (request, response) => {
    if (request.url?.startsWith('/interaction/') !== true) return void answer(request, response);
    const { prompt, params, session } = await provider.interactionDetails(request, response);
    if (prompt.name === 'login') {
      counts.pages += 1;
      return void provider.interactionFinished(request, response, { login: { accountId: 'somebody' } });
    }
    const granted = new provider.Grant({ accountId: session?.accountId ?? '', clientId: String(params.client_id) });
    granted.addOIDCScope(String(params.scope));
    const consent = { grantId: await granted.save() };
    await provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
  });
  return { issuer, provider, counts };
}

type KeyPair = Awaited<ReturnType<typeof generateKeyPair>>;

/** Users log in here, and clients get assertions about them. */
async function startIdentityProvider(t: ExecutionContext, { privateKey }: KeyPair) {
  const started = await startProvider(t, TOKEN_EXCHANGE, {
    application_type: 'native',
    redirect_uris: ['http://127.0.0.1/callback'],
    grant_types: ['authorization_code', 'refresh_token', TOKEN_EXCHANGE],
  });
  const { issuer, provider } = started;
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
  const names = ['subject_token', 'subject_token_type', 'requested_token_type', 'audience', 'resource', 'scope'];
  provider.registerGrantType<Record<string, string>>(
    TOKEN_EXCHANGE,
    async (context) => {
      const { client, params } = context.oidc;
      const { subject_token: idToken = '', audience = '', resource } = params;
      const { payload } = await jwtVerify(idToken, keys, { issuer, audience: client.clientId });
      const assertion = new SignJWT({
        resource,
        client_id: CLIENT_AT_SERVER,
        scope: params.scope,
        sub: payload.sub ?? '',
      })
        .setProtectedHeader({ alg: 'ES256', typ: 'oauth-id-jag+jwt' })
        .setIssuer(issuer)
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime('5m');
      const token = await assertion.sign(privateKey);
      context.body = { access_token: token, issued_token_type: ID_JAG, token_type: 'N_A', expires_in: 300 };
    },
    names,
  );
  return started;
}

interface Trust {
  readonly trusted: string;
  readonly typ?: string;
}

/** A server, and the authorization server that gives tokens for assertions of an issuer that it trusts. */
async function startServer(t: ExecutionContext, { publicKey }: KeyPair, client: Partial<ClientMetadata>) {
  const { listener, origin } = await listen(t);
  const url = new URL(`${origin}/mcp`);
  const { issuer, provider, counts } = await startProvider(t, JWT_BEARER, {
    ...{ client_id: CLIENT_AT_SERVER, redirect_uris: [], response_types: [], grant_types: [JWT_BEARER] },
    ...client,
  });
  const trust: { current: Trust } = { current: { trusted: '' } };
  provider.registerGrantType<Record<string, string>>(
    JWT_BEARER,
    async (context) => {
      const { trusted, ...options } = trust.current;
      const { oidc } = context;
      const checks = { issuer: trusted, audience: issuer, ...options };
      const { payload } = await jwtVerify(oidc.params.assertion ?? '', publicKey, checks);
      if (payload.client_id !== undefined && payload.client_id !== oidc.client.clientId) throw new Error('client_id');
      if (payload.resource !== undefined && payload.resource !== url.href) throw new Error('resource');
      const token = new provider.ClientCredentials({ client: oidc.client, scope: oidc.params.scope });
      context.body = { access_token: await token.save(), token_type: 'Bearer', expires_in: 600 };
    },
    ['assertion', 'scope', 'resource'],
  );
  const expired = new Set<string>();
  let latest = '';
  listener.on('request', async (request, response) => {
    if (request.url === '/.well-known/oauth-protected-resource/mcp') {
      response.setHeader('content-type', 'application/json');
      const metadata = { resource: url.href, authorization_servers: [issuer], scopes_supported: ['read'] };
      return void response.end(JSON.stringify(metadata));
    }
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
    const isGood = token !== '' && !expired.has(token) && (await provider.ClientCredentials.find(token)) !== undefined;
    if (!isGood) return void response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
    latest = token;
    response.end('served');
  });
  return { ...{ url, issuer, counts, trust }, expire: () => void expired.add(latest) };
}

test('an independent identity provider vouches for its user at an independent authorization server, asked once', async (t) => {
  const pair = await generateKeyPair('ES256');
  const company = await startIdentityProvider(t, pair);
  const server = await startServer(t, pair, {
    token_endpoint_auth_method: 'client_secret_basic',
    client_secret: 'hunter2',
  });
  server.trust.current = { trusted: company.issuer, typ: 'oauth-id-jag+jwt' };
  const settings = {
    grant: 'jwt-bearer',
    client: { id: CLIENT_AT_SERVER, proof: { kind: 'secret', secret: 'hunter2' } },
    assertion: {
      kind: 'identity-provider',
      issuer: company.issuer,
      client: { id: CLIENT_AT_PROVIDER, proof: { kind: 'none' } },
      idToken: { kind: 'login', grant: 'authorization-code' },
    },
    stateDirectory: temporaryFolder(t),
  } as const;
  const user = createUser(t, server.url, settings);
  t.is((await user.call()).body, 'served');
  // An ID token lasts an hour.
  for (const lifeMs of [0, 3_590_000]) {
    server.expire();
    const later = createUser(t, server.url, { ...settings, wallClock: () => Date.now() + lifeMs });
    t.is((await later.call()).body, 'served');
    t.deepEqual(later.opened, []);
  }
  t.deepEqual(company.counts, { pages: 1, exchanges: 3, refreshes: 1 });
  t.is(server.counts.exchanges, 3);
  t.is(user.opened.length, 1);
});

test('an independent authorization server takes the assertion of a workload', async (t) => {
  const pair = await generateKeyPair('ES256');
  const server = await startServer(t, pair, {});
  server.trust.current = { trusted: 'https://platform.example' };
  const stateDirectory = temporaryFolder(t);
  const file = join(stateDirectory, 'assertion');
  const write = async (): Promise<void> => {
    const assertion = new SignJWT({ sub: 'agent' }).setProtectedHeader({ alg: 'ES256' });
    const claims = assertion.setIssuer('https://platform.example').setAudience(server.issuer).setExpirationTime('1m');
    writeFileSync(file, await claims.sign(pair.privateKey));
  };
  const client = { id: CLIENT_AT_SERVER, proof: { kind: 'none' } } as const;
  const assertion = { kind: 'file', file } as const;
  const workload = createUser(t, server.url, { grant: 'jwt-bearer', client, assertion, stateDirectory });
  for (const round of [1, 2]) {
    await write();
    t.is((await workload.call()).body, 'served');
    t.is(server.counts.exchanges, round);
    server.expire();
  }
});
