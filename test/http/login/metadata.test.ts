import test from 'ava';
import { MAX_NAMED_SERVERS, readResourceMetadata, readServerMetadata } from '../../../src/http/login/discover.ts';
import { startLoginWorld } from '../../support/login-world.ts';
import { createUser } from './logged-in.ts';

const RESOURCE = 'https://example.com/mcp';
const SERVER = 'https://auth.example';

for (const [title, servers, fault] of [
  ['a number', 5, 'authorization_servers is a number instead of a list of URLs'],
  ['a text', SERVER, 'authorization_servers is a string instead of a list of URLs'],
  ['an object', { 0: SERVER }, 'authorization_servers is an object instead of a list of URLs'],
  ['numbers', [1, 2], 'authorization_servers has a number among its entries instead of a URL'],
  ['a good one and null', [SERVER, null], 'authorization_servers has null among its entries instead of a URL'],
  ['objects', [{ issuer: SERVER }], 'authorization_servers has an object among its entries instead of a URL'],
  ['lists', [[SERVER]], 'authorization_servers has a list among its entries instead of a URL'],
  ['a name', ['auth.example'], 'authorization_servers has "auth.example", which is no URL'],
  ['plain http', ['http://auth.example'], 'authorization_servers has http://auth.example, which is no URL with https'],
  ['a file', ['file:///etc'], 'authorization_servers has file:///etc, which is no URL with https'],
  ['a script', ['javascript:x'], 'authorization_servers has javascript:x, which is no URL with https'],
  ['a million', new Array(1_000_000).fill(SERVER), 'authorization_servers has 1000000 entries; expected at most 100'],
] as const) {
  test(`says what is wrong where the authorization servers are ${title}`, (t) => {
    const document = { resource: RESOURCE, authorization_servers: servers };
    t.deepEqual(readResourceMetadata(document), { fault });
  });
}

test('takes metadata of a resource with members of the right types, or without them', (t) => {
  t.deepEqual(readResourceMetadata({ resource: RESOURCE, authorization_servers: null }), {
    resource: RESOURCE,
    authorizationServers: [],
    scopes: [],
    boundTokens: { areRequired: false, algorithms: undefined },
  });
  const servers = [...new Array(MAX_NAMED_SERVERS - 1).fill(SERVER), 'http://localhost:8080/tenant'];
  t.deepEqual(
    readResourceMetadata({
      ...{ resource: RESOURCE, authorization_servers: servers, scopes_supported: ['a'], other: 1 },
      ...{ dpop_bound_access_tokens_required: true, dpop_signing_alg_values_supported: ['ES256'] },
    }),
    {
      ...{ resource: RESOURCE, authorizationServers: servers, scopes: ['a'] },
      boundTokens: { areRequired: true, algorithms: ['ES256'] },
    },
  );
});

for (const [members, fault] of [
  [{ resource: undefined }, 'it has no member resource'],
  [{ resource: ['x'] }, 'resource is a list instead of a URL'],
  [{ resource: 'mcp' }, 'resource is no URL'],
  [{ scopes_supported: 'read write' }, 'scopes_supported is no list of texts'],
  [{ scopes_supported: [1] }, 'scopes_supported is no list of texts'],
  [{ dpop_bound_access_tokens_required: 'yes' }, 'dpop_bound_access_tokens_required is neither true nor false'],
  [{ dpop_signing_alg_values_supported: 'ES256' }, 'dpop_signing_alg_values_supported is no list of texts'],
] as const) {
  test(`says what is wrong with a resource that says ${JSON.stringify(members)}`, (t) => {
    t.deepEqual(readResourceMetadata({ resource: RESOURCE, authorization_servers: [SERVER], ...members }), { fault });
  });
}

for (const [members, fault] of [
  [{ token_endpoint: undefined }, 'it has no member token_endpoint'],
  [{ token_endpoint: null }, 'it has no member token_endpoint'],
  [{ token_endpoint: 5 }, 'token_endpoint is a number instead of a URL'],
  [{ authorization_endpoint: { url: SERVER } }, 'authorization_endpoint is an object instead of a URL'],
  [{ registration_endpoint: 'nowhere' }, 'registration_endpoint is no URL'],
  [{ scopes_supported: { a: true } }, 'scopes_supported is no list of texts'],
  [{ code_challenge_methods_supported: 'S256' }, 'code_challenge_methods_supported is no list of texts'],
  [{ token_endpoint_auth_methods_supported: ['none', 1] }, 'token_endpoint_auth_methods_supported is no list of texts'],
  [{ client_id_metadata_document_supported: 'yes' }, 'client_id_metadata_document_supported is neither true nor false'],
  [
    { authorization_response_iss_parameter_supported: 'false' },
    'authorization_response_iss_parameter_supported is neither true nor false',
  ],
] as const) {
  test(`says what is wrong with an authorization server that says ${JSON.stringify(members)}`, (t) => {
    const metadata = { issuer: SERVER, token_endpoint: `${SERVER}/token`, ...members };
    t.deepEqual(readServerMetadata(metadata), { fault });
  });
}

for (const servers of [5, [1], ['auth.example'], ['http://auth.example'], new Array(200_000).fill(1)]) {
  test(`calls are told what is wrong with authorization servers like ${JSON.stringify(servers).slice(0, 20)}`, async (t) => {
    const world = await startLoginWorld(t);
    world.resource = { authorization_servers: servers };
    const { failure } = await createUser(t, world.url).call();
    t.is(failure?.code, 'ERR_UPSTREAM_AUTH');
    t.regex(
      failure?.message ?? '',
      /^The metadata at http\S+ cannot be used; authorization_servers (is|has) .+ wrong or hostile/,
    );
    t.is(world.asked.length, 0);
  });
}
