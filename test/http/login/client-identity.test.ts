import test from 'ava';
import {
  authenticate,
  chooseMethod,
  type IdentityRequest,
  identifyClient,
  useConfigured,
} from '../../../src/http/login/client-identity.ts';
import type { LoginRequest } from '../../../src/http/login/login-fetch.ts';
import type { LoginClient, StoredLogin } from '../../../src/http/login/login-store.ts';
import { NO_OPTIONS } from './login-config.ts';

const ISSUER = 'https://auth.example';
const REGISTRATION = `${ISSUER}/register`;
const CALLBACK = 'http://127.0.0.1:1234/callback';
const REGISTERED: LoginClient = {
  origin: 'registered',
  id: 'me',
  method: 'none',
  secret: undefined,
  callback: CALLBACK,
  scopes: undefined,
  areTokensBound: false,
};

type Answer = readonly [status: number, body: unknown];

/** Identifies a client that an authorization server with a place to register answers so; what it is asked is kept. */
async function identify(changes: Partial<IdentityRequest>, [status, body]: Answer = [201, { client_id: 'new' }]) {
  const asked: (LoginRequest & { readonly url: string })[] = [];
  const request: IdentityRequest = {
    config: { ...NO_OPTIONS, stateDirectory: undefined },
    authorizationServer: { issuer: ISSUER, registration_endpoint: REGISTRATION },
    previous: undefined,
    callback: CALLBACK,
    scopes: [],
    parameters: { binding: undefined },
    fetch: async (url, sent) => {
      asked.push({ ...sent, url: url.href });
      return new Response(typeof body === 'string' ? body : JSON.stringify(body), { status });
    },
    ...changes,
  };
  const outcome = await identifyClient(request).catch((error: Error) => error.message);
  return { outcome, asked, sent: JSON.parse(asked[0]?.body ?? 'null') };
}

function loginOf(client: LoginClient, issuer = ISSUER): StoredLogin {
  const token = { tokenEndpoint: `${ISSUER}/token`, resource: 'https://mcp.example', scopes: [], tokens: undefined };
  return { issuer, client, ...token };
}

test('registers as a native program without a secret, with what the authorization server has to know', async (t) => {
  const { outcome, asked, sent } = await identify({});
  t.deepEqual(outcome, { ...REGISTERED, id: 'new' });
  t.is(asked.length, 1);
  t.like(asked[0], {
    url: REGISTRATION,
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/json' },
  });
  t.deepEqual(sent, {
    client_name: 'mcp-portage',
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    application_type: 'native',
  });
  t.is((await identify({ scopes: ['read', 'write'] })).sent.scope, 'read write');
});

test('asks for a secret only where the authorization server offers nothing else', async (t) => {
  const methodFor = async (offered: string[]) => {
    const endpoints = { issuer: ISSUER, registration_endpoint: REGISTRATION };
    const authorizationServer = { ...endpoints, token_endpoint_auth_methods_supported: offered };
    return (await identify({ authorizationServer })).sent.token_endpoint_auth_method;
  };
  t.is(await methodFor(['client_secret_basic', 'none']), 'none');
  t.is(await methodFor(['client_secret_post', 'client_secret_basic']), 'client_secret_basic');
  t.is(await methodFor(['client_secret_post']), 'client_secret_post');
});

test('keeps what the authorization server has registered', async (t) => {
  const register = async (body: object) => (await identify({}, [201, { client_id: 'new', ...body }])).outcome;
  const secret = 's';
  t.like(await register({ client_secret: secret }), { secret, method: 'client_secret_basic' });
  const post = 'client_secret_post';
  t.like(await register({ client_secret: secret, token_endpoint_auth_method: post }), { secret, method: post });
  t.like(await register({ client_secret: secret, token_endpoint_auth_method: 'other' }), {
    secret,
    method: 'client_secret_basic',
  });
  for (const none of ['', 5, null])
    t.like(await register({ client_secret: none }), { secret: undefined, method: 'none' });
});

test('a registration is for the way of authenticating that the user has chosen, whatever the answer says', async (t) => {
  const config = { ...NO_OPTIONS, stateDirectory: undefined, authMethod: 'client_secret_post' } as const;
  const authorizationServer = {
    issuer: ISSUER,
    registration_endpoint: REGISTRATION,
    token_endpoint_auth_methods_supported: [config.authMethod],
  };
  const answer = { client_id: 'new', client_secret: 's', token_endpoint_auth_method: 'client_secret_basic' };
  const { outcome, sent } = await identify({ config, authorizationServer }, [201, answer]);
  t.is(sent.token_endpoint_auth_method, 'client_secret_post');
  t.like(outcome, { id: 'new', method: 'client_secret_post', secret: 's' });
  const without = await identify({ config, authorizationServer }, [201, { client_id: 'new' }]);
  t.is(
    without.outcome,
    `${REGISTRATION} registered mcp-portage without a secret, which --oauth-auth-method client_secret_post needs. ` +
      'Register a client there by hand and give its id with --oauth-client-id.',
  );
});

test('says why the authorization server has not registered a client', async (t) => {
  const byHand = 'Register a client there by hand and give its id with --oauth-client-id.';
  const atOther = `If ${CALLBACK} was refused, give another address with --oauth-callback, such as http://localhost:1234/callback.`;
  for (const [answer, said] of [
    [[400, { error: 'invalid_redirect_uri', error_description: 'no http' }], 'invalid_redirect_uri: no http'],
    [[400, { error: 'invalid_redirect_uri', error_description: 5 }], 'invalid_redirect_uri'],
    [[400, { client_id: 'new' }], 'it answered 400 without a client_id'],
    [[201, { client_id: '' }], 'it answered 201 without a client_id'],
    [[201, { client_id: 5 }], 'it answered 201 without a client_id'],
    [[200, 'null'], 'it answered 200 without a client_id'],
    [[200, '"text"'], 'it answered 200 without a client_id'],
    [[403, 'no JSON'], 'it answered 403 without a client_id'],
  ] as const) {
    const { outcome } = await identify({}, answer);
    const wayOut = said.startsWith('invalid_redirect_uri') ? `${atOther} ${byHand}` : byHand;
    t.is(outcome, `${REGISTRATION} did not register mcp-portage as a client (${said}). ${wayOut}`);
  }
});

test('a registration is used again where it was made, for the same way back', async (t) => {
  const previous = loginOf(REGISTERED);
  const again = await identify({ previous });
  t.deepEqual(again.outcome, REGISTERED);
  t.is(again.asked.length, 0);
  const document: LoginClient = { origin: 'document', id: 'https://me.example/client.json', method: 'none' };
  for (const changes of [
    { previous, callback: 'http://127.0.0.1:1235/callback' },
    { previous: loginOf(REGISTERED, 'https://other.example') },
    { previous: loginOf(document) },
  ]) {
    t.like((await identify(changes)).outcome, { id: 'new' });
  }
});

test('a document about the client stands for a registration where the authorization server reads it', async (t) => {
  const config = { ...NO_OPTIONS, stateDirectory: undefined, clientMetadataUrl: 'https://me.example/client.json' };
  const reads = { issuer: ISSUER, registration_endpoint: REGISTRATION, client_id_metadata_document_supported: true };
  const { outcome, asked } = await identify({ config, authorizationServer: reads });
  t.deepEqual(outcome, { origin: 'document', id: config.clientMetadataUrl, method: 'none' });
  t.is(asked.length, 0);
  t.like((await identify({ config })).outcome, { origin: 'registered' });
  t.like((await identify({ authorizationServer: reads })).outcome, { origin: 'registered' });
});

test('says which options there are where nobody is registered', async (t) => {
  const problem = `${ISSUER} does not register clients that it does not know`;
  const wayOut = 'Register one there by hand and give its id with --oauth-client-id';
  const { outcome } = await identify({ authorizationServer: { issuer: ISSUER } });
  t.is(outcome, `${problem}. ${wayOut}.`);
  const reads = { issuer: ISSUER, client_id_metadata_document_supported: true };
  const other = await identify({ authorizationServer: reads });
  t.is(other.outcome, `${problem}. ${wayOut} or --oauth-client-document.`);
});

test('a client that the user has configured is used before any other, with the issuer that it is known to', async (t) => {
  const client = { id: 'mine', proof: { kind: 'none' } } as const;
  const config = { ...NO_OPTIONS, stateDirectory: undefined, client };
  const configured = { origin: 'configured', id: 'mine', method: 'none' } as const;
  const { outcome, asked } = await identify({ config, previous: loginOf(configured) });
  t.deepEqual(outcome, configured);
  t.is(asked.length, 0);
  const key = { id: 'mine', proof: { kind: 'key', file: 'key.pem' } } as const;
  t.is(useConfigured(key, { issuer: ISSUER }, undefined).method, 'private_key_jwt');
  const moved = await identify({ config, previous: loginOf(configured, 'https://old.example') });
  t.is(
    moved.outcome,
    `The server now names ${ISSUER}, but the client mine is known to https://old.example. ` +
      'If that is right, log in once with --login anew.',
  );
});

test('a secret goes where the authorization server wants it, into the header if it does not say', (t) => {
  const choose = (offered: string[] | undefined, secret: string | undefined = 's') =>
    chooseMethod({ issuer: ISSUER, ...(offered && { token_endpoint_auth_methods_supported: offered }) }, secret);
  t.is(choose(undefined), 'client_secret_basic');
  t.is(choose(['client_secret_post', 'client_secret_basic']), 'client_secret_basic');
  t.is(choose(['private_key_jwt', 'client_secret_post']), 'client_secret_post');
  t.is(choose(['private_key_jwt']), 'none');
});

test('shows the secret of a registration, or that of the user, and nothing where there is none', async (t) => {
  const shownBy = async (client: LoginClient, proof?: Parameters<typeof authenticate>[1]) => {
    const [body, headers] = [new URLSearchParams(), new Headers()];
    const show = await authenticate(client, proof);
    await show({ issuer: ISSUER }, { client_id: client.id }, body, headers);
    return { header: headers.get('authorization'), ...Object.fromEntries(body) };
  };
  const basic = (words: string) => ({ header: `Basic ${Buffer.from(words).toString('base64')}` });
  const post = (secret: string) => ({ header: null, client_id: 'me', client_secret: secret });
  const nothing = { header: null, client_id: 'me' };
  const [inHeader, inBody] = ['client_secret_basic', 'client_secret_post'] as const;
  const registered = { ...REGISTERED, secret: 'theirs' };
  t.deepEqual(await shownBy({ ...registered, method: inHeader }), basic('me:theirs'));
  t.deepEqual(await shownBy({ ...registered, method: inBody }), post('theirs'));
  t.deepEqual(await shownBy(registered), nothing);
  const configured = { origin: 'configured', id: 'me' } as const;
  const proof = { kind: 'secret', secret: 'mine' } as const;
  t.deepEqual(await shownBy({ ...configured, method: inHeader }, proof), basic('me:mine'));
  t.deepEqual(await shownBy({ ...configured, method: inBody }, proof), post('mine'));
  for (const method of [inHeader, inBody, 'private_key_jwt', 'none'] as const) {
    t.deepEqual(await shownBy({ ...configured, method }), nothing, method);
  }
});

test('a registration is used for the scopes that it was made for, granted or not, and others need a new one', async (t) => {
  const scopes = { asked: ['read', 'offline_access'], granted: ['read'] };
  const known = { ...REGISTERED, scopes };
  const use = async (wanted: readonly string[]) =>
    (await identify({ previous: loginOf(known), scopes: wanted })).outcome === known;
  t.true(await use(['read']));
  t.true(await use(['read', 'offline_access']));
  t.false(await use(['read', 'write']));
});

test('what a registration was granted is what its response says', async (t) => {
  const scopes = ['read', 'offline_access'];
  const grantedFor = async (response: object) => {
    const { outcome } = await identify({ scopes }, [201, { client_id: 'new', ...response }]);
    return typeof outcome === 'string' || outcome.origin !== 'registered' ? outcome : outcome.scopes?.granted;
  };
  t.is(await grantedFor({}), undefined);
  t.is(await grantedFor({ grant_types: ['authorization_code', 'refresh_token'] }), undefined);
  t.deepEqual(await grantedFor({ scope: 'read more' }), ['read', 'more']);
  t.deepEqual(await grantedFor({ grant_types: ['authorization_code'] }), ['read']);
});

test('an authorization server that is busy registers nobody now, and may do so later', async (t) => {
  for (const status of [429, 500, 503]) {
    const { outcome } = await identify({}, [status, '']);
    t.is(outcome, `${REGISTRATION} registers no clients at the moment (status ${status}). Try again later.`);
  }
});
