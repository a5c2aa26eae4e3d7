import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { createAuthentication } from '../../src/bridge/create-authentication.ts';
import { HttpListener } from '../../src/bridge/http-listener.ts';
import { createSystemDeps } from '../../src/cli/system-deps.ts';
import { QueueSizes } from '../../src/collections/queue-sizes.ts';
import type { AuthConfig } from '../../src/config/access.ts';
import type { Listing, ServerConfig } from '../../src/config/server.ts';
import { BridgeError } from '../../src/errors.ts';
import { BodyCapacity } from '../../src/http/server/read-body.ts';
import { createCalls } from '../support/calls.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { createIssuerKey, inSeconds, startIssuer } from '../support/fake-issuer.ts';
import { FakeServer } from '../support/fake-server.ts';
import { callHttp, type HttpAnswer, type HttpCall } from '../support/http-call.ts';
import { portOf } from '../support/http-harness.ts';
import { call, initialize, POST_HEADERS } from '../support/legacy-clients.ts';
import { waitFor } from '../support/wait-for.ts';
import { configOf } from './config-of.ts';

const BROWSER = { Accept: 'text/html,*/*;q=0.8' };

interface ListOptions {
  readonly auth?: AuthConfig;
  readonly baseUrl?: URL;
  readonly httpSse?: 'served' | 'off';
}

/** A listener with a list of fake servers, each under the name of its entry. */
async function startList(
  t: ExecutionContext,
  servers: readonly ServerConfig[],
  { auth, baseUrl, httpSse }: ListOptions = {},
) {
  const clock = new FakeClock();
  const log = pino({ level: 'silent' });
  const deps = { ...createSystemDeps(log), clock };
  const defaults = configOf('--', 'server').listener;
  if (defaults.kind !== 'http') throw new Error('serve listens for HTTP');
  const listener = {
    ...defaults,
    addresses: [{ kind: 'tcp', host: '127.0.0.1', port: 0 } as const],
    endpoints: { ...defaults.endpoints, baseUrl, ...(httpSse && { httpSse }) },
    access: { ...defaults.access, auth },
  };
  const fakes = new Map<string, FakeServer[]>();
  const closed: string[] = [];
  const noted: string[] = [];
  let failure: BridgeError | undefined;
  let held: Promise<void> | undefined;
  const authentication = await createAuthentication(listener, deps);
  const http = new HttpListener({
    ownMarks: () => ['mark'],
    listener,
    authentication,
    certificate: undefined,
    onRefused: undefined,
    looking: new Map(),
    replica: undefined,
    deps,
    async dial({ listing }) {
      await held;
      if (failure !== undefined) throw failure;
      const name = listing?.name ?? '';
      const fake = new FakeServer();
      fake.scripts.set('tools/call', (request, connection) => {
        const { params } = request.json() as { params: { name: string } };
        if (params.name !== 'held') connection.answer(request, { content: [] });
      });
      fakes.set(name, [...(fakes.get(name) ?? []), fake]);
      return {
        sessionDialers: fake,
        callDialers: fake,
        callerTokens: { note: ({ caller }) => void noted.push(`${name}: ${caller}`), areOptional: true },
        calls: createCalls(clock),
        ownMarks: () => ['mark'],
        bodies: new BodyCapacity(1024).share(undefined),
        processes: { running: 0, failed: 0 },
        replicated: undefined,
        queues: new QueueSizes(),
        close: async () => void closed.push(name),
      };
    },
  });
  http.servers.update(servers as [ServerConfig]);
  const port = portOf(await http.http.listen());
  t.teardown(() => {
    void http.servers.close(new BridgeError('ERR_SESSION_CLOSED', 'the test is over'));
    http.close();
    authentication.close();
  });
  const get = (path: string, headers: HttpCall['headers'] = {}) => callHttp({ port, path, headers });
  const post = (path: string, body: object, headers: HttpCall['headers'] = {}): Promise<HttpAnswer> =>
    callHttp({ port, path, method: 'POST', headers: { ...POST_HEADERS, ...headers }, body: JSON.stringify(body) });
  return {
    port,
    clock,
    servers: http.servers,
    fakes,
    closed,
    noted,
    get,
    post,
    fail: (error: BridgeError | undefined) => {
      failure = error;
    },
    /** Whoever is dialed from now on is there when the returned function is called. */
    hold: () => {
      let release = (): void => {};
      held = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
  };
}

const DEFAULT = configOf('--', 'server').servers[0];

function listed(name: string, more: Partial<Listing> = {}, maxSessions = 10): ServerConfig {
  const sessions = { ...DEFAULT.sessions, maxSessions, maxCallerSessions: maxSessions };
  const listing = {
    name,
    segment: name.replaceAll(' ', '-'),
    isRequired: false,
    callers: undefined,
    membership: undefined,
    ...more,
  };
  return { ...DEFAULT, sessions, listing };
}

async function reasonOf(answer: HttpAnswer): Promise<string> {
  const { error } = await answer.json<{ error: { message: string } }>();
  return error.message;
}

const sessionOf = ({ headers }: HttpAnswer) => ({ 'Mcp-Session-Id': String(headers['mcp-session-id']) });

test('each server has its own addresses, and nothing is made for one that nobody has come for', async (t) => {
  const { get, post, fakes } = await startList(t, [listed('one'), listed('two words')]);
  t.is(fakes.size, 0);
  const answer = await post('/two-words/mcp', initialize());
  t.is(answer.status, 200);
  t.deepEqual([...fakes.keys()], ['two words']);
  const session = sessionOf(answer);
  t.is((await post('/two-words/mcp', call(1), session)).status, 200);
  t.is((await post('/one/mcp', call(1), session)).status, 404, 'a session is known to its own server only');
  const stream = await get('/one/sse', { Accept: 'text/event-stream' });
  const { data } = await stream.events().next();
  t.regex(data, /^\/one\/messages\?sessionId=/);
  stream.leave();
});

test('the server of the command line keeps its paths beside those of a file', async (t) => {
  const { post, fakes, servers } = await startList(t, [DEFAULT, listed('one')]);
  await servers.unnamed?.start();
  t.is((await post('/mcp', initialize())).status, 200);
  t.is((await post('/one/mcp', initialize())).status, 200);
  t.deepEqual([...fakes.keys()], ['', 'one']);
});

test('a wrong name is 404 with the right ones', async (t) => {
  const { get, post } = await startList(t, [listed('one'), listed('two')]);
  for (const path of ['/three/mcp', '/mcp', '/one', '/one/x', '/one/mcp/x', '//mcp', '/__proto__/mcp']) {
    const answer = await post(path, initialize());
    t.is(answer.status, 404, path);
    t.regex(await reasonOf(answer), /try \/one\/mcp, \/two\/mcp\.$/, path);
  }
  t.is((await get('/three/readyz')).status, 404);
});

test('of very many names so many are told, and how many more there are', async (t) => {
  const { post } = await startList(
    t,
    Array.from({ length: 30 }, (_, index) => listed(`s${index}`)),
  );
  t.regex(await reasonOf(await post('/x/mcp', initialize())), /\/s19\/mcp and 10 more\.$/);
});

test('GET / lists them, for programs and for people', async (t) => {
  const { get, port } = await startList(t, [listed('one'), listed('two')]);
  const base = `http://127.0.0.1:${port}`;
  t.deepEqual(await (await get('/')).json(), {
    servers: ['one', 'two'].map((name) => ({
      name,
      url: `${base}/${name}/mcp`,
      sseUrl: `${base}/${name}/sse`,
      ready: true,
    })),
  });
  const page = await get('/', BROWSER);
  t.is(page.headers['content-type'], 'text/plain; charset=utf-8');
  const text = await page.text();
  for (const name of ['one', 'two']) t.regex(text, new RegExp(`${name} +${base}/${name}/mcp\n`));
  t.regex(await (await get('/one/mcp', BROWSER)).text(), /HTTP\+SSE +http:.*\/one\/sse\n/);
});

test('a server that cannot be started says why to who comes for it, and changes nothing for others', async (t) => {
  const { post, get, fail } = await startList(t, [
    listed('bad'),
    listed('good'),
    listed('needed', { isRequired: true }),
  ]);
  t.is((await post('/good/mcp', initialize())).status, 200);
  fail(new BridgeError('ERR_UPSTREAM_SPAWN', 'There is no such program.'));
  const answer = await post('/bad/mcp', initialize());
  t.is(answer.status, 502);
  t.regex(await reasonOf(answer), /no such program/);
  t.is((await get('/bad/readyz')).status, 503);
  t.is((await get('/good/readyz')).status, 200);
  t.is((await get('/readyz')).status, 200, 'it is none of those that the process needs');
  await post('/needed/mcp', initialize());
  t.is((await get('/readyz')).status, 503);
  fail(undefined);
  t.is((await post('/needed/mcp', initialize())).status, 200, 'it is tried again');
  t.is((await get('/readyz')).status, 200);
});

test('the limits of one server are not those of another', async (t) => {
  const { get, post } = await startList(t, [listed('small', {}, 1), listed('other', {}, 1)]);
  const session = sessionOf(await post('/small/mcp', initialize()));
  const stream = await get('/small/mcp', { Accept: 'text/event-stream', ...session });
  t.is((await post('/small/mcp', initialize())).status, 503);
  t.is((await post('/other/mcp', initialize())).status, 200);
  stream.leave();
});

// ---- who may call

const TOKENS: AuthConfig = {
  tokens: [
    { kind: 'value', principal: 'token:alice', token: 'of-alice' },
    { kind: 'value', principal: 'token:bob', token: 'of-bob' },
  ],
  oauth: undefined,
};
const AS_ALICE = { Authorization: 'Bearer of-alice' };
const AS_BOB = { Authorization: 'Bearer of-bob' };
const FOR_ALICE = { callers: ['token:alice'] };

test('for who is not named as a caller a server does not exist', async (t) => {
  const { get, post, fakes } = await startList(t, [listed('hers', FOR_ALICE), listed('both')], { auth: TOKENS });
  t.is((await post('/hers/mcp', initialize(), AS_ALICE)).status, 200);
  const refused = await post('/hers/mcp', initialize(), AS_BOB);
  const absent = await post('/none/mcp', initialize(), AS_BOB);
  t.is(refused.status, 404);
  t.is((await reasonOf(refused)).replace('hers', 'none'), await reasonOf(absent), 'in the words for any other name');
  t.is((await get('/hers/sse', { ...AS_BOB, Accept: 'text/event-stream' })).status, 404);
  t.is((await get('/hers/readyz', AS_BOB)).status, 404);
  t.is((await get('/hers/readyz')).status, 401);
  t.is((await get('/hers/readyz', AS_ALICE)).status, 200);
  t.is(fakes.get('hers')?.length, 1);
  const namesFor = async (headers: HttpCall['headers']) => {
    const { servers } = await (await get('/', headers)).json<{ servers: { name: string }[] }>();
    return servers.map(({ name }) => name);
  };
  t.deepEqual(await namesFor(AS_ALICE), ['hers', 'both']);
  t.deepEqual(await namesFor(AS_BOB), ['both']);
});

test('who shows no token learns no names: every one is answered alike', async (t) => {
  const { get, post } = await startList(t, [listed('hers', FOR_ALICE), listed('both')], { auth: TOKENS });
  for (const path of ['/hers/mcp', '/both/mcp', '/none/mcp', '/none/sse', '/']) {
    const answer = path === '/' ? await get(path) : await post(path, initialize());
    t.is(answer.status, 401, path);
    t.notRegex(await answer.text(), /hers|both/, path);
  }
  t.notRegex(await (await get('/', BROWSER)).text(), /hers|both/);
});

/** What an answer says, without the name that was asked for. */
async function shapeOf(answer: HttpAnswer, name: string): Promise<string> {
  const { date: _date, 'content-length': _length, ...others } = answer.headers;
  return `${answer.status} ${JSON.stringify(others)} ${await answer.text()}`.replaceAll(name, 'NAME');
}

test('no page, readiness or refusal tells who shows no token, or another one, which servers there are', async (t) => {
  const { get } = await startList(t, [listed('hers', FOR_ALICE), listed('both')], { auth: TOKENS, httpSse: 'off' });
  const asked: readonly HttpCall['headers'][] = [{}, BROWSER, { 'Sec-Fetch-Mode': 'navigate' }];
  for (const path of ['mcp', 'mcp/', 'sse', 'messages', 'ws', 'readyz', 'readyz/', '']) {
    for (const headers of asked) {
      const absent = await shapeOf(await get(`/none/${path}`, headers), 'none');
      for (const name of ['hers', 'both']) {
        t.is(await shapeOf(await get(`/${name}/${path}`, headers), name), absent, `/${name}/${path}`);
      }
      const bobs = { ...AS_BOB, ...headers };
      const forBob = await shapeOf(await get(`/none/${path}`, bobs), 'none');
      t.is(await shapeOf(await get(`/hers/${path}`, bobs), 'hers'), forBob, `/hers/${path} for Bob`);
    }
  }
});

test('the readiness of the process names no server to who may not call it', async (t) => {
  const { get, post, fail } = await startList(t, [listed('hers', { ...FOR_ALICE, isRequired: true }), listed('both')], {
    auth: TOKENS,
  });
  fail(new BridgeError('ERR_UPSTREAM_SPAWN', 'hers cannot be started'));
  await post('/hers/mcp', initialize(), AS_ALICE);
  t.like(await (await get('/readyz', AS_ALICE)).json(), { reason: 'hers cannot be started' });
  for (const headers of [AS_BOB, {}]) {
    const answer = await get('/readyz', headers);
    t.is(answer.status, 503);
    t.deepEqual(await answer.json(), { status: 'not ready', code: 'ERR_UPSTREAM_SPAWN' });
  }
  t.is((await get('/hers/readyz', AS_ALICE)).status, 503);
  t.is((await get('/hers/readyz', AS_BOB)).status, 404);
});

test('a token of an issuer is for one server: its resource is told at its own path, and others do not take it', async (t) => {
  const key = await createIssuerKey('k');
  const issuer = await startIssuer(t);
  issuer.answers.set('/keys', { status: 200, body: { keys: [key.jwk] } });
  const auth: AuthConfig = {
    tokens: [],
    oauth: {
      issuer: issuer.url,
      audiences: 'own-urls',
      keys: { kind: 'discovered' },
      scopes: [],
    },
  };
  const baseUrl = new URL('https://tools.example/x');
  const { get, post } = await startList(t, [listed('one'), listed('two')], { auth, baseUrl });
  for (const name of ['one', 'two', 'none']) {
    const refused = await post(`/${name}/mcp`, initialize());
    t.is(refused.status, 401);
    const metadata = `https://tools.example/x/.well-known/oauth-protected-resource/${name}/mcp`;
    t.is(refused.headers['www-authenticate'], `Bearer resource_metadata="${metadata}"`);
    for (const prefix of ['', '/x']) {
      const document = await get(`/.well-known/oauth-protected-resource${prefix}/${name}/mcp`);
      t.is(document.status, 200, `${prefix} ${name}`);
      t.like(await document.json(), { resource: `https://tools.example/x/${name}/mcp` });
    }
  }
  const claims = { iss: issuer.url, sub: 'alice', exp: inSeconds(300), aud: 'https://tools.example/x/one/mcp' };
  const token = { Authorization: `Bearer ${await key.sign(claims)}` };
  t.is((await post('/one/mcp', initialize(), token)).status, 200);
  const elsewhere = await post('/two/mcp', initialize(), token);
  t.is(elsewhere.status, 401);
  t.regex(await reasonOf(elsewhere), /another audience/);
  t.is((await get('/', token)).status, 200, 'the list is told to who may use one of them');
});

// ---- another list

test('what has not changed goes on; what has changed is new for who comes, and ends for who is there', async (t) => {
  const { post, servers, fakes, closed, clock } = await startList(t, [
    listed('kept'),
    listed('changed'),
    listed('gone'),
  ]);
  const open = async (name: string) => sessionOf(await post(`/${name}/mcp`, initialize()));
  const [kept, changed, gone] = [await open('kept'), await open('changed'), await open('gone')];
  const running = post('/changed/mcp', call(7, 'held'), changed);
  const [old] = fakes.get('changed') ?? [];
  const request = await old?.latest.next('tools/call');
  t.deepEqual(servers.update([listed('kept'), listed('changed', {}, 20), listed('new')]), {
    added: ['new'],
    changed: ['changed'],
    removed: ['gone'],
    unchanged: 1,
  });
  t.is((await post('/kept/mcp', call(1), kept)).status, 200);
  t.is(fakes.get('kept')?.length, 1);
  t.is((await post('/new/mcp', initialize())).status, 200);
  t.is((await post('/gone/mcp', initialize())).status, 404);
  t.is((await post('/gone/mcp', call(1), gone)).status, 404);
  t.is((await post('/changed/mcp', initialize())).status, 200);
  t.is(fakes.get('changed')?.length, 2);
  t.deepEqual(closed, ['gone']);
  if (request !== undefined) old?.latest.answer(request);
  t.is((await running).status, 200, 'a call that was open is answered');
  clock.advance(1000);
  await waitFor(() => closed.includes('changed'));
  t.is((await post('/changed/mcp', call(8), changed)).status, 404, 'and then its client opens a new session');
});

test('a start under an old configuration ends without touching the one under the new configuration', async (t) => {
  const { post, servers, fakes, closed, clock, hold } = await startList(t, [DEFAULT]);
  const releaseFirst = hold();
  const first = servers.unnamed?.start();
  servers.update([{ ...DEFAULT, sessions: { ...DEFAULT.sessions, maxSessions: 20 } }]);
  const releaseSecond = hold();
  const second = servers.unnamed?.start();
  releaseFirst();
  await first;
  const third = post('/mcp', initialize());
  clock.advance(1000);
  await waitFor(() => closed.length === 1);
  releaseSecond();
  await second;
  t.is((await third).status, 200);
  t.is(fakes.get('')?.length, 2);
});

test('a server that is listed again calls its hubs again, also while its former instance ends', async (t) => {
  const hub = {
    kind: 'websocket' as const,
    url: new URL('ws://127.0.0.1:1/'),
    headers: new Map(),
    token: undefined,
    caFile: undefined,
    proxyEnv: {},
  };
  const atHub = { ...listed('at hub'), hubs: [hub] };
  const { servers, post } = await startList(t, [listed('other'), atHub]);
  const hubsOf = (): readonly number[] => servers.inspect((path) => path).map(({ hubs }) => hubs.length);
  await servers.callHubs();
  t.deepEqual(hubsOf(), [0, 1]);
  t.is((await post('/at-hub/mcp', initialize())).status, 200);
  servers.update([listed('other')]);
  t.deepEqual(hubsOf(), [0]);
  servers.update([listed('other'), atHub]);
  await waitFor(() => hubsOf()[1] === 1);
  t.deepEqual(hubsOf(), [0, 1]);
});

const AGGREGATE: ServerConfig = { ...DEFAULT, target: { kind: 'aggregate', shows: 'all' } };

function member(name: string, maxSessions?: number): ServerConfig {
  return listed(name, { membership: { prefix: name, alwaysShow: [] } }, maxSessions);
}

test('the aggregate has a name in the list, and the paths of the process', async (t) => {
  const { get, post, port, servers } = await startList(t, [AGGREGATE, member('one')]);
  const list = await (await get('/')).json<{ servers: { name: string; url: string }[] }>();
  t.deepEqual(
    list.servers.map(({ name, url }) => ({ name, url })),
    [
      { name: 'aggregate', url: `http://127.0.0.1:${port}/mcp` },
      { name: 'one', url: `http://127.0.0.1:${port}/one/mcp` },
    ],
  );
  t.regex(await (await get('/', BROWSER)).text(), /^ {2}aggregate +http:\S+\/mcp$/m);
  t.is((await post('/mcp', initialize())).status, 200);
  t.like(servers.inspect((path) => path)[0], { name: 'aggregate', kind: 'aggregate', state: 'ready' });
});

test('members are told apart by their configuration, and a change of any is told once', async (t) => {
  const [one, two, three] = [member('one'), member('two'), member('three')];
  const { servers } = await startList(t, [AGGREGATE, one, listed('left'), two]);
  const { members } = servers;
  const namesOf = () => members.all.map(({ name }) => name);
  t.deepEqual(namesOf(), ['one', 'two']);
  const [first, second] = members.all;
  let changes = 0;
  const stop = members.onChange(() => {
    changes += 1;
  });
  servers.update([AGGREGATE, one, listed('left', {}, 7), two]);
  t.is(changes, 0);
  servers.update([AGGREGATE, three, one, member('two', 3)]);
  t.is(changes, 1);
  t.deepEqual(namesOf(), ['three', 'one', 'two'], 'in the order of the file');
  t.is(members.all[1], first);
  t.not(members.all[2], second);
  servers.update([AGGREGATE, one]);
  t.is(changes, 2);
  t.deepEqual(namesOf(), ['one']);
  stop();
  servers.update([AGGREGATE, one, two]);
  t.is(changes, 2);
});

test('a member is started by its first caller, and is the server at its own address', async (t) => {
  const { servers, post, fakes } = await startList(t, [AGGREGATE, member('one')]);
  t.deepEqual([...fakes.keys()], []);
  const started = await servers.members.all[0]?.start();
  t.deepEqual([...fakes.keys()], ['one']);
  t.is((await post('/one/mcp', initialize())).status, 200);
  t.is(started?.sessions.size, 1);
});

test('an aggregate that is switched off in the file is gone, and comes back with it', async (t) => {
  const { servers, get, post } = await startList(t, [AGGREGATE, member('one')]);
  t.is((await post('/mcp', initialize())).status, 200);
  t.deepEqual(servers.update([member('one')]), { added: [], changed: [], removed: ['aggregate'], unchanged: 1 });
  const refused = await post('/mcp', initialize());
  t.is(refused.status, 404);
  t.regex(await reasonOf(refused), /try \/one\/mcp\.$/);
  t.notRegex(JSON.stringify(await (await get('/')).json()), /aggregate/);
  t.deepEqual(servers.update([AGGREGATE, member('one')]).added, ['aggregate']);
  t.is((await post('/mcp', initialize())).status, 200);
});

test('a token that a caller shows at the aggregate is for the members that exchange tokens, also once they start', async (t) => {
  const exchange = { issuer: 'https://issuer.example' } as NonNullable<ServerConfig['remote']['exchange']>;
  const exchanging = (name: string): ServerConfig => {
    const config = member(name);
    return { ...config, remote: { ...config.remote, exchange } };
  };
  const left = { ...listed('left'), remote: { ...DEFAULT.remote, exchange } };
  const { servers, noted } = await startList(t, [
    AGGREGATE,
    exchanging('one'),
    exchanging('two'),
    member('plain'),
    left,
  ]);
  const [one, two, plain] = servers.members.all;
  const note = (caller: string): void => servers.noteToken({ caller, token: 't', issuedAt: 0, endsAtMs: 0 });
  await one?.start();
  await plain?.start();
  note('ann');
  t.deepEqual(noted, ['one: ann']);
  note('bob');
  await two?.start();
  t.deepEqual(noted, ['one: ann', 'one: bob', 'two: ann', 'two: bob']);
  note('ann');
  t.deepEqual(noted.slice(4), ['one: ann', 'two: ann']);
});
