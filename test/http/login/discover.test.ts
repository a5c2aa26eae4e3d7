import test from 'ava';
import { canonicalUri, type DiscoverRequest, discover, isSameIssuer } from '../../../src/http/login/discover.ts';

const ORIGIN = 'https://mcp.example';
const ISSUER = 'https://auth.example';
const AT_RESOURCE = '/.well-known/oauth-protected-resource';
const AT_SERVER = '/.well-known/oauth-authorization-server';
const AT_OPENID = '/.well-known/openid-configuration';
const RESOURCE = { resource: `${ORIGIN}/mcp`, authorization_servers: [ISSUER] };
const AUTHORIZATION = {
  issuer: ISSUER,
  token_endpoint: `${ISSUER}/token`,
  authorization_endpoint: `${ISSUER}/authorize`,
  code_challenge_methods_supported: ['S256'],
};

const UNBOUND = { areRequired: false, algorithms: undefined };

type Documents = Readonly<Record<string, unknown>>;

/** Looks for the metadata of a server where these documents are; a number is a status without one. */
async function discoverIn(documents: Documents, changes: Partial<DiscoverRequest> = {}) {
  const asked: string[] = [];
  const warnings: string[] = [];
  const request: DiscoverRequest = {
    server: new URL(`${ORIGIN}/mcp`),
    resourceMetadata: undefined,
    ...{ issuer: undefined, grant: 'authorization-code', corrections: {} },
    warn: (text) => void warnings.push(text),
    fetch: async (url, { method, headers }) => {
      asked.push(url.href);
      const document = documents[url.href] ?? 404;
      const isAskedForJson = method === 'GET' && headers.accept === 'application/json';
      const status = !isAskedForJson ? 406 : typeof document === 'number' ? document : 200;
      const body = typeof document === 'string' ? document : JSON.stringify(document);
      return new Response(body, { status, headers: { 'content-type': 'application/json' } });
    },
    ...changes,
  };
  const outcome = await discover(request).catch((error: Error) => error.message);
  return { outcome, asked, warnings };
}

/** The documents of a server and of its authorization server, with one of them changed. */
const documentsWith = (changes: Documents) => ({
  [`${ORIGIN}${AT_RESOURCE}/mcp`]: RESOURCE,
  [`${ISSUER}${AT_SERVER}`]: AUTHORIZATION,
  ...changes,
});

test('asks a server and its authorization server for JSON, at the place of the path first', async (t) => {
  const { outcome, asked } = await discoverIn(documentsWith({}));
  t.deepEqual(outcome, {
    authorizationServer: AUTHORIZATION,
    resource: `${ORIGIN}/mcp`,
    scopes: [],
    boundTokens: UNBOUND,
  });
  t.deepEqual(asked, [`${ORIGIN}${AT_RESOURCE}/mcp`, `${ISSUER}${AT_SERVER}`]);
});

test('asks at each place once, without the slash at the end of a path', async (t) => {
  const nowhere = async (url: string) => (await discoverIn({}, { server: new URL(url) })).asked;
  t.deepEqual(await nowhere(`${ORIGIN}/`), [
    `${ORIGIN}${AT_RESOURCE}`,
    `${ORIGIN}${AT_SERVER}`,
    `${ORIGIN}${AT_OPENID}`,
  ]);
  t.deepEqual((await nowhere(`${ORIGIN}/a/b/`)).slice(0, 2), [
    `${ORIGIN}${AT_RESOURCE}/a/b`,
    `${ORIGIN}${AT_RESOURCE}`,
  ]);
  const resource = { ...RESOURCE, authorization_servers: [`${ISSUER}/tenant/`] };
  const { asked } = await discoverIn({ [`${ORIGIN}${AT_RESOURCE}`]: resource });
  t.deepEqual(asked.slice(2), [
    `${ISSUER}${AT_SERVER}/tenant`,
    `${ISSUER}${AT_OPENID}/tenant`,
    `${ISSUER}/tenant${AT_OPENID}`,
  ]);
});

test('asks first where the refusal says the metadata is', async (t) => {
  const resourceMetadata = new URL(`${ORIGIN}/elsewhere`);
  const { outcome, asked } = await discoverIn(documentsWith({ [resourceMetadata.href]: RESOURCE }), {
    resourceMetadata,
  });
  t.like(outcome, { resource: `${ORIGIN}/mcp` });
  t.deepEqual(asked, [resourceMetadata.href, `${ISSUER}${AT_SERVER}`]);
});

test('takes a server without metadata for its own authorization server, unless another issuer is given', async (t) => {
  const own = { ...AUTHORIZATION, issuer: ORIGIN };
  const { outcome } = await discoverIn({ [`${ORIGIN}${AT_SERVER}`]: own });
  t.deepEqual(outcome, { authorizationServer: own, resource: `${ORIGIN}/mcp`, scopes: [], boundTokens: UNBOUND });
  const given = await discoverIn({ [`${ISSUER}${AT_SERVER}`]: AUTHORIZATION }, { issuer: ISSUER });
  t.like(given.outcome, { authorizationServer: AUTHORIZATION });
  t.is((await discoverIn({})).outcome, undefined, 'it has nothing to do with OAuth');
});

test('only a status that says so means that there is no metadata', async (t) => {
  const place = `${ORIGIN}${AT_RESOURCE}/mcp`;
  for (const status of [400, 404, 499]) t.is((await discoverIn({ [place]: status })).outcome, undefined, `${status}`);
  for (const status of [399, 500, 201]) {
    const { outcome } = await discoverIn({ [place]: status });
    t.is(outcome, `${place} answered ${status} without metadata. Try again later.`);
  }
  const created = async () => new Response(JSON.stringify(RESOURCE), { status: 201 });
  t.is((await discoverIn({}, { fetch: created })).outcome, `${place} answered 201 without metadata. Try again later.`);
  for (const document of ['no JSON', 'null', '[]', '"text"']) {
    const { outcome } = await discoverIn({ [place]: document });
    t.is(outcome, `${place} answered 200 without metadata. Try again later.`, document);
  }
});

test('metadata of an authorization server is of the issuer that was asked, or an error', async (t) => {
  const place = `${ISSUER}${AT_SERVER}`;
  const wayOut = 'It is wrong or hostile; tell the operators of the server.';
  const outcomeOf = async (document: unknown) => (await discoverIn(documentsWith({ [place]: document }))).outcome;
  t.is(
    await outcomeOf({ ...AUTHORIZATION, issuer: 'https://evil.example' }),
    `The metadata at ${place} cannot be used; its issuer is https://evil.example, expected ${ISSUER}. ` +
      `If you trust whoever serves it, give --oauth-issuer ${ISSUER}.`,
  );
  t.is(await outcomeOf('no JSON'), `${place} answered 200 without metadata. Try again later.`);
  t.is(await outcomeOf(500), `${place} answered 500 without metadata. Try again later.`);
  t.is(
    await outcomeOf({ ...AUTHORIZATION, issuer: undefined }),
    `The metadata at ${place} cannot be used; it has no member issuer. ${wayOut}`,
  );
  t.is(
    await outcomeOf({ issuer: ISSUER }),
    `The metadata at ${place} cannot be used; it has no member token_endpoint. ${wayOut}`,
  );
});

test('of several authorization servers the next is tried where the metadata of one cannot be used, and none while one is only busy', async (t) => {
  const bad = 'https://bad.example';
  const resource = { ...RESOURCE, authorization_servers: [bad, ISSUER] };
  const outcomeOf = async (document: unknown) => {
    const changes = { [`${ORIGIN}${AT_RESOURCE}/mcp`]: resource, [`${bad}${AT_SERVER}`]: document };
    return (await discoverIn(documentsWith(changes))).outcome;
  };
  const misnamed = { ...AUTHORIZATION, issuer: 'https://evil.example' };
  for (const document of [404, { issuer: bad }, { issuer: bad, token_endpoint: 7 }, misnamed]) {
    t.like(await outcomeOf(document), { authorizationServer: AUTHORIZATION }, JSON.stringify(document));
  }
  // A client that the user has registered at the first one is not shown to the second, just because that is out of order.
  t.is(await outcomeOf(503), `${bad}${AT_SERVER} answered 503 without metadata. Try again later.`);
  const alone = { ...resource, authorization_servers: [bad, `${bad}/other`] };
  const documents = { [`${ORIGIN}${AT_RESOURCE}/mcp`]: alone, [`${bad}${AT_SERVER}`]: { issuer: bad } };
  t.regex(String((await discoverIn(documents)).outcome), /it has no member token_endpoint/, 'the first fault is told');
});

test('an issuer that the user has named may call itself differently, and the log says so', async (t) => {
  const document = { ...AUTHORIZATION, issuer: 'https://other.example/\n' };
  const documents = documentsWith({ [`${ISSUER}${AT_SERVER}`]: document });
  const { outcome, warnings } = await discoverIn(documents, { issuer: ISSUER });
  t.like(outcome, { authorizationServer: document });
  t.deepEqual(warnings, [
    `the metadata of ${ISSUER} names https://other.example/ as its issuer; it is used, as --oauth-issuer says so`,
  ]);
  t.deepEqual((await discoverIn(documentsWith({}), { issuer: ISSUER })).warnings, []);
});

test('a slash at the end of an issuer is no difference, in the option, in metadata and in that of the server', async (t) => {
  const spellings = [ISSUER, `${ISSUER}/`, 'HTTPS://AUTH.example:443'];
  for (const named of spellings) {
    for (const found of spellings) {
      for (const issuer of [undefined, ...spellings]) {
        const { outcome } = await discoverIn(
          documentsWith({
            [`${ORIGIN}${AT_RESOURCE}/mcp`]: { ...RESOURCE, authorization_servers: [named] },
            [`${ISSUER}${AT_SERVER}`]: { ...AUTHORIZATION, issuer: found },
          }),
          { issuer },
        );
        t.like(outcome, { authorizationServer: { issuer: found } }, 'as it writes itself, for the callback');
      }
    }
  }
  for (const [one, other] of [
    ['https://a.example/tenant', 'https://a.example/other'],
    ['https://a.example', 'http://a.example'],
    ['https://a.example', 'https://a.example:8443'],
    ['https://a.example/x', 'https://a.example/X'],
  ] as const) {
    t.false(isSameIssuer(one, other), `${one} ${other}`);
  }
});

for (const [title, instead] of [
  ['502', 502],
  ['503', 503],
  ['a page', '<!doctype html>'],
  ['a document with members of wrong types', { ...RESOURCE, scopes_supported: 'read' }],
  ['a document about another server', { ...RESOURCE, resource: 'https://other.example' }],
] as const) {
  test(`the next place is looked at where the one of the path has ${title}`, async (t) => {
    const documents = documentsWith({
      [`${ORIGIN}${AT_RESOURCE}/mcp`]: instead,
      [`${ORIGIN}${AT_RESOURCE}`]: { resource: ORIGIN, authorization_servers: [ISSUER] },
    });
    t.like((await discoverIn(documents)).outcome, { resource: ORIGIN, authorizationServer: AUTHORIZATION });
    const elsewhere = new URL(`${ORIGIN}/elsewhere`);
    const named = documentsWith({ [elsewhere.href]: instead });
    const { outcome } = await discoverIn(named, { resourceMetadata: elsewhere });
    t.like(outcome, { authorizationServer: AUTHORIZATION }, 'also the one that the refusal names');
  });
}

for (const [title, instead] of [
  ['502', 502],
  ['a page', '<!doctype html>'],
  ['no PKCE', { ...AUTHORIZATION, code_challenge_methods_supported: undefined }],
  ['no page to log in at', { ...AUTHORIZATION, authorization_endpoint: null }],
  ['another issuer', { ...AUTHORIZATION, issuer: 'https://other.example' }],
] as const) {
  test(`the next document of an authorization server is looked at where one has ${title}`, async (t) => {
    const documents = documentsWith({
      [`${ISSUER}${AT_SERVER}`]: instead,
      [`${ISSUER}${AT_OPENID}`]: { ...AUTHORIZATION, scopes_supported: ['openid'] },
    });
    const { outcome } = await discoverIn(documents);
    t.like(outcome, { authorizationServer: { scopes_supported: ['openid'] } });
  });
}

test('a document that lacks something is used where there is no better one, and at once by a client itself', async (t) => {
  const lacking = { issuer: ISSUER, token_endpoint: `${ISSUER}/token` };
  const documents = documentsWith({ [`${ISSUER}${AT_SERVER}`]: lacking });
  const { outcome, asked } = await discoverIn(documents);
  t.like(outcome, { authorizationServer: lacking });
  t.is(asked.length, 3);
  t.is((await discoverIn(documents, { grant: 'client-credentials' })).asked.length, 2);
});

for (const servers of [undefined, null, []]) {
  test(`the origin is the authorization server of a server that names none: ${JSON.stringify(servers)}`, async (t) => {
    const own = { ...AUTHORIZATION, issuer: ORIGIN };
    const resource = { ...RESOURCE, authorization_servers: servers, scopes_supported: ['read'] };
    const documents = { [`${ORIGIN}${AT_RESOURCE}/mcp`]: resource, [`${ORIGIN}${AT_SERVER}`]: own };
    t.deepEqual((await discoverIn(documents)).outcome, {
      authorizationServer: own,
      resource: `${ORIGIN}/mcp`,
      scopes: ['read'],
      boundTokens: UNBOUND,
    });
  });
}

test('says which authorization servers were named and what was expected', async (t) => {
  const wayOut = 'Give a token with MCP_PORTAGE_BEARER_TOKEN, --bearer-token-file or --header.';
  const tell = async (servers: readonly string[] | undefined, issuer?: string) => {
    const resource = { ...RESOURCE, authorization_servers: servers };
    return (await discoverIn({ [`${ORIGIN}${AT_RESOURCE}/mcp`]: resource }, { issuer })).outcome;
  };
  const server = `The server at ${ORIGIN}/mcp`;
  const two = ['https://a.example', 'https://b.example'];
  t.is(await tell(undefined), `${server} names no authorization server; expected one with metadata. ${wayOut}`);
  t.is(await tell(two), `${server} names ${two.join(', ')}; expected one with metadata. ${wayOut}`);
  t.is(
    await tell(two, ISSUER),
    `${server} names ${two.join(', ')}; expected ${ISSUER} and its metadata. If you trust it, give --oauth-issuer ${two[0]}.`,
  );
});

test('asks for no token with metadata that is about another server', async (t) => {
  for (const resource of ['https://other.example/mcp', `${ORIGIN}/other`, 'http://mcp.example/mcp']) {
    const place = `${ORIGIN}${AT_RESOURCE}/mcp`;
    const { outcome } = await discoverIn(documentsWith({ [place]: { ...RESOURCE, resource } }));
    const problem = `The metadata at ${place} is about another server than ${ORIGIN}/mcp`;
    t.is(outcome, `${problem}. No token is asked for: it would be for somebody else.`);
  }
});

test('a server is called by its URL, without a slash that means nothing', (t) => {
  for (const [url, uri] of [
    [`${ORIGIN}/`, ORIGIN],
    [`${ORIGIN}/mcp/`, `${ORIGIN}/mcp/`],
    [`${ORIGIN}/mcp?a=1#part`, `${ORIGIN}/mcp?a=1`],
  ] as const) {
    t.is(canonicalUri(new URL(url)), uri);
  }
});
