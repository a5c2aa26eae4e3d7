import test from 'ava';
import { startLoginWorld } from '../../support/login-world.ts';
import { createUser } from './logged-in.ts';

test('a server that has nothing to do with OAuth is told on as it answered', async (t) => {
  const world = await startLoginWorld(t);
  world.challenge = () => undefined;
  world.resourcePath = '/nowhere';
  const user = createUser(t, world.url);
  const call = await user.call();
  t.is(call.head?.status, 401);
  t.is(call.body, '{}');
  t.true(call.hasEnded);
  t.true(call.head?.offersNoLogin, 'for the words of the error');
});

test('a refusal without a challenge is looked up at the well-known places, the one of the path first', async (t) => {
  for (const path of ['/.well-known/oauth-protected-resource/mcp', '/.well-known/oauth-protected-resource']) {
    const world = await startLoginWorld(t);
    world.challenge = () => undefined;
    world.resourcePath = path;
    t.is((await createUser(t, world.url).call()).body, 'served', path);
  }
});

test('metadata of authorization servers is found where OAuth and OpenID have it, with and without a path', async (t) => {
  const places: readonly [path: string, place: string][] = [
    ['', '/.well-known/openid-configuration'],
    ['/tenant', '/.well-known/oauth-authorization-server/tenant'],
    ['/tenant', '/.well-known/openid-configuration/tenant'],
    ['/tenant', '/tenant/.well-known/openid-configuration'],
  ];
  for (const [path, place] of places) {
    const world = await startLoginWorld(t);
    world.metadataPath = place;
    world.resource = { authorization_servers: [`${world.issuer}${path}`] };
    world.metadata = { issuer: `${world.issuer}${path}` };
    t.is((await createUser(t, world.url).call()).body, 'served', place);
  }
});

test('metadata is about a server if it is about its path or one above it', async (t) => {
  const callWith = async (resource: (origin: string) => string) => {
    const world = await startLoginWorld(t);
    world.resource = { resource: resource(world.origin) };
    const { body, failure } = await createUser(t, world.url).call();
    return { body, failure, asked: world.asked.length };
  };
  for (const path of ['', '/', '/mcp', '/mcp/']) {
    t.is((await callWith((origin) => `${origin}${path}`)).body, 'served', path);
  }
  for (const path of ['/mc', '/mcp2', '/mcp/more', '/other']) {
    const { failure, asked } = await callWith((origin) => `${origin}${path}`);
    t.regex(failure?.message ?? '', /is about another server than/, path);
    t.is(asked, 0, path);
  }
});

test('of the authorization servers that a server names, the first four are looked at', async (t) => {
  const world = await startLoginWorld(t);
  const without = (count: number) => Array.from({ length: count }, (_, index) => `${world.issuer}/none-${index}`);
  world.resource = { authorization_servers: [...without(3), world.issuer] };
  t.is((await createUser(t, world.url).call()).body, 'served');
  world.resource = { authorization_servers: [...without(4), world.issuer] };
  const { failure } = await createUser(t, world.url).call();
  t.regex(failure?.message ?? '', /expected one with metadata/);
});

test('only the issuer that is trusted is used', async (t) => {
  const world = await startLoginWorld(t);
  t.is((await createUser(t, world.url, { issuer: world.issuer }).call()).body, 'served');
  const { failure } = await createUser(t, world.url, { issuer: 'https://auth.example' }).call();
  t.regex(failure?.message ?? '', /expected https:\/\/auth\.example/);
  t.is(world.count('/authorize'), 1);
});

test('the scopes are those of the refusal, else those of the server, or what the user wants', async (t) => {
  const world = await startLoginWorld(t);
  const scopeOf = async (scopes: readonly string[] = []) => {
    await createUser(t, world.url, { scopes }).call();
    return world.latest('/authorize').parameters.get('scope');
  };
  world.resource = { scopes_supported: ['read', 'write'] };
  t.is(await scopeOf(), 'read write');
  t.is(world.latest('/register').json.scope, 'read write');
  t.is(await scopeOf(['mine']), 'mine');
  world.challenge = () => 'Bearer scope="needed"';
  t.is(await scopeOf(), 'needed');
  world.metadata = { scopes_supported: ['needed', 'offline_access'] };
  t.is(await scopeOf(), 'needed offline_access');
  t.is(world.latest('/authorize').parameters.get('prompt'), 'consent');
});

test('one scope more is asked for when the server needs it, and the others are kept', async (t) => {
  const world = await startLoginWorld(t);
  world.challenge = () => 'Bearer scope="read"';
  const user = createUser(t, world.url);
  await user.call();
  world.judge = (token) => (token === 'access-1' ? { status: 403 } : undefined);
  world.challenge = () => 'Bearer error="insufficient_scope", scope="write"';
  t.is((await user.call()).body, 'served');
  t.is(world.latest('/authorize').parameters.get('scope'), 'read write');
  t.is(world.count('/authorize'), 2);
});

test('a scope that was asked for in vain is not asked for again', async (t) => {
  const world = await startLoginWorld(t);
  world.judge = () => ({ status: 403 });
  world.challenge = () => 'Bearer error="insufficient_scope", scope="admin"';
  const user = createUser(t, world.url);
  for (const _ of [1, 2, 3]) {
    const call = await user.call();
    t.is(call.head?.status, 403);
  }
  t.is(world.count('/authorize'), 1);
});

test('a server that names other scopes each time comes to an end', async (t) => {
  const world = await startLoginWorld(t);
  let names = 0;
  world.judge = () => ({ status: 403 });
  world.challenge = () => `Bearer error="insufficient_scope", scope="s${names++}"`;
  const user = createUser(t, world.url);
  t.is((await user.call()).head?.status, 403);
  t.true(world.count('/authorize') <= 3, 'of one call');
  for (let calls = 0; calls < 20; calls += 1) await user.call();
  t.true(world.count('/authorize') <= 17, 'of all calls');
});

test('a refusal that is not about scopes is told on', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url);
  await user.call();
  world.judge = () => ({ status: 403, body: { why: 'not yours' } });
  world.challenge = () => undefined;
  const call = await user.call();
  t.is(call.head?.status, 403);
  t.is(call.body, '{"why":"not yours"}');
  t.is(world.count('/authorize'), 1);
});
