import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { FAILURE_PAUSE_MS } from '../../../src/http/login/login.ts';
import { Browser } from '../../support/browser.js';
import { FakeClock } from '../../support/fake-clock.ts';
import { startLoginWorld } from '../../support/login-world.ts';
import { ownPort } from '../../support/own-port.ts';
import { waitFor } from '../../support/wait-for.ts';
import { RecordedCall } from '../recorded-call.ts';
import { createUser } from './logged-in.ts';

interface Mishap {
  readonly title: string;
  readonly spoil: (world: Awaited<ReturnType<typeof startLoginWorld>>) => void;
  readonly message: RegExp;
  /** The token endpoint was asked all the same. */
  readonly isAsked?: boolean;
}

const MISHAPS: readonly Mishap[] = [
  {
    title: 'an authorization server that does not say that it supports PKCE',
    spoil: (world) => {
      world.metadata = { code_challenge_methods_supported: undefined };
    },
    message:
      /does not say that it supports PKCE with S256: its metadata has no code_challenge_methods_supported\..*--oauth-assume-pkce/,
  },
  {
    title: 'an authorization server that supports plain PKCE only',
    spoil: (world) => {
      world.metadata = { code_challenge_methods_supported: ['plain'] };
    },
    message: /^(?!.*--oauth-assume-pkce).*S256: its code_challenge_methods_supported has plain\./,
  },
  {
    title: 'a user who refuses',
    spoil: (world) => {
      world.comeBack = ({ state }) => ({ state, error: 'access_denied', error_description: 'not today' });
    },
    message: /was refused \(access_denied: not today\)/,
  },
  {
    title: 'an answer of another issuer',
    spoil: (world) => {
      world.comeBack = (parameters) => ({ ...parameters, iss: 'https://evil.example' });
    },
    message: /came back from somebody else/,
  },
  {
    title: 'an answer of nobody, where the issuer promised to name itself',
    spoil: (world) => {
      world.metadata = { authorization_response_iss_parameter_supported: true };
    },
    message: /came back from somebody else/,
  },
  {
    title: 'the error of another issuer, which is not shown',
    spoil: (world) => {
      world.comeBack = ({ state }) => ({
        state,
        error: 'hello',
        error_description: 'evil',
        iss: 'https://evil.example',
      });
    },
    message: /^(?!.*(hello|evil)).*came back from somebody else/,
  },
  {
    title: 'a registration that is refused',
    spoil: (world) => {
      world.answerRegistration = () => ({
        status: 400,
        body: { error: 'invalid_redirect_uri', error_description: 'no' },
      });
    },
    message:
      /did not register mcp-portage as a client \(invalid_redirect_uri: no\)\..* --oauth-callback, such as http:\/\/localhost:\d+\/callback\. Register .* --oauth-client-id/,
  },
  {
    title: 'an authorization server that registers nobody',
    spoil: (world) => {
      world.metadata = { registration_endpoint: undefined };
    },
    message: /does not register clients that it does not know.*--oauth-client-id/,
  },
  {
    title: 'a code that is not taken',
    spoil: (world) => {
      world.answerToken = () => ({ status: 400, body: { error: 'invalid_grant' } });
    },
    message: /gave no token \(invalid_grant\)/,
    isAsked: true,
  },
  {
    title: 'a token of a kind we do not know',
    spoil: (world) => {
      world.answerToken = (_, body) => ({ status: 200, body: { ...body, token_type: 'DPoP' } });
    },
    message: /gave a token of another kind/,
    isAsked: true,
  },
  {
    title: 'a token that would break the header',
    spoil: (world) => {
      world.answerToken = (_, body) => ({ status: 200, body: { ...body, access_token: 'a\r\nX-Evil: 1' } });
    },
    message: /The token that the authorization server gave holds something that is no bearer token/,
    isAsked: true,
  },
  {
    title: 'a token that would be sent with each request, and has 900 KB,',
    spoil: (world) => {
      world.answerToken = (_, body) => ({ status: 200, body: { ...body, access_token: 'x'.repeat(900_000) } });
    },
    message: /The token that the authorization server gave has 900000 characters, more than the 16384 that/,
    isAsked: true,
  },
  {
    title: 'a refresh token of 900 KB',
    spoil: (world) => {
      world.answerToken = (_, body) => ({ status: 200, body: { ...body, refresh_token: 'x'.repeat(900_000) } });
    },
    message: /The refresh token that the authorization server gave has 900000 characters. Expected at most 16384/,
    isAsked: true,
  },
  {
    title: 'metadata about another server',
    spoil: (world) => {
      world.resource = { resource: 'https://evil.example/mcp' };
    },
    message: /is about another server/,
  },
  {
    title: 'metadata of another authorization server',
    spoil: (world) => {
      world.metadata = { issuer: 'https://evil.example' };
    },
    message: /cannot be used; its issuer is https:\/\/evil\.example, expected http.*--oauth-issuer http/,
  },
  {
    title: 'an authorization server whose name would forge a log or fill it',
    spoil: (world) => {
      world.resource = { authorization_servers: [`${world.issuer}/\u001b[2J\n\u202eforged${'x'.repeat(10_000)}`] };
    },
    message: /^The server at http\S+ names http:\S+ ?forgedx{400,600}…\. Give a token/,
  },
  {
    title: 'an authorization server that registers nobody, and says so with null,',
    spoil: (world) => {
      world.metadata = { registration_endpoint: null };
    },
    message: /does not register clients that it does not know/,
  },
  {
    title: 'a registration endpoint that is no URL',
    spoil: (world) => {
      world.metadata = { registration_endpoint: 'nowhere' };
    },
    message: /cannot be used; registration_endpoint is no URL/,
  },
  {
    title: 'a list of methods that is none',
    spoil: (world) => {
      world.metadata = { code_challenge_methods_supported: { S256: true } };
    },
    message: /cannot be used; code_challenge_methods_supported is no list of texts/,
  },
  {
    title: 'a text in place of a list of methods, although it holds the right one',
    spoil: (world) => {
      world.metadata = { code_challenge_methods_supported: 'no S256' };
    },
    message: /cannot be used; code_challenge_methods_supported is no list of texts/,
  },
  {
    title: 'a login page whose address no program could be started with',
    spoil: (world) => {
      world.metadata = { authorization_endpoint: `${world.issuer}/authorize?x=${'y'.repeat(300_000)}` };
    },
    message: /would have an address of 300\d{3} characters\. Expected at most 16384/,
  },
  {
    title: 'a login page without https',
    spoil: (world) => {
      world.metadata = { authorization_endpoint: 'http://login.example/authorize' };
    },
    message: /login\.example\/authorize is to be opened in the browser for a login, but not over https/,
  },
  {
    title: 'a login page that is no web page',
    spoil: (world) => {
      world.metadata = { authorization_endpoint: 'file:///etc/passwd' };
    },
    message: /is to be opened in the browser for a login, but not over https/,
  },
  {
    title: 'a login page with credentials in its URL',
    spoil: (world) => {
      world.metadata = { authorization_endpoint: 'https://eve:hunter2@login.example/authorize' };
    },
    message: /^(?!.*(eve|hunter2)).*in the browser for a login, but with a user name or a password in its URL/,
  },
  {
    title: 'an authorization server without a login page',
    spoil: (world) => {
      world.metadata = { authorization_endpoint: undefined };
    },
    message: /has no page to log in at\. Expected an authorization_endpoint/,
  },
  {
    title: 'a token endpoint without https',
    spoil: (world) => {
      world.metadata = { token_endpoint: 'http://token.example/token' };
    },
    message: /not over https/,
  },
  {
    title: 'a token endpoint that sends us to another origin',
    spoil: (world) => {
      world.answerToken = () => ({ status: 307, body: {}, headers: { location: 'https://evil.example/token?a=b' } });
    },
    message: /\/token answered 307 with a redirect to another origin, https:\/\/evil\.example\. Nothing is sent there/,
    isAsked: true,
  },
  {
    title: 'a token endpoint that wants its request as a GET elsewhere',
    spoil: (world) => {
      world.answerToken = () => ({ status: 302, body: {}, headers: { location: '/token/?a=b' } });
    },
    message: /\/token answered 302 with a redirect to http\S+\/token\/, with which a POST is not sent again\. Nothing/,
    isAsked: true,
  },
  {
    title: 'a registration that is sent on with 301',
    spoil: (world) => {
      world.answerRegistration = () => ({ status: 301, body: {}, headers: { location: '/register/' } });
    },
    message: /\/register answered 301 with a redirect to http\S+\/register\/, with which a POST is not sent again/,
  },
  {
    title: 'a token that the server does not take although it was given just now',
    spoil: (world) => {
      world.judge = () => ({ status: 401 });
    },
    message: /does not accept the token of http/,
    isAsked: true,
  },
];

for (const { title, spoil, message, isAsked = false } of MISHAPS) {
  test(`${title} ends the login with a reason`, async (t) => {
    const world = await startLoginWorld(t);
    spoil(world);
    const user = createUser(t, world.url);
    const { failure } = await user.call();
    t.is(failure?.code, 'ERR_UPSTREAM_AUTH');
    t.regex(failure?.message ?? '', message);
    t.is(world.count('/token') > 0, isAsked);
    const secrets = ['access-1', 'refresh-1', 'code-1'].filter((secret) => user.log().includes(secret));
    t.deepEqual(secrets, []);
  });
}

test('a token request that is sent on with 307 goes there, within the origin', async (t) => {
  const world = await startLoginWorld(t);
  world.tokenPath = '/moved/token';
  world.movedFrom = { '/token': [307, '/moved/token'] };
  t.is((await createUser(t, world.url).call()).body, 'served');
  t.is(
    world.latest('/moved/token').parameters.get('code_verifier'),
    world.latest('/token').parameters.get('code_verifier'),
  );
});

test('an answer with another state is nobody’s: the right one may still come', async (t) => {
  const world = await startLoginWorld(t);
  world.comeBack = undefined;
  // What the system chooses may belong to somebody else a moment later.
  const user = createUser(t, world.url, { callback: new URL(`http://127.0.0.1:${await ownPort()}/callback`) });
  const calling = user.call();
  await waitFor(() => world.count('/authorize') === 1);
  const asked = world.latest('/authorize').parameters;
  const back = new URL(asked.get('redirect_uri') ?? '');
  const visit = async (path: string, method = 'GET') =>
    (await user.browser.open(new URL(path, back), { method })).status;
  t.is(await visit(`${back.pathname}?code=evil&state=guessed`), 400);
  t.is(await visit(`${back.pathname}?code=evil`), 400);
  t.is(await visit('/other?code=evil'), 404);
  t.is(await visit(back.pathname, 'POST'), 405);
  t.is(world.count('/token'), 0);
  world.comeBack = (parameters) => parameters;
  await user.browser.visit(`${world.issuer}/authorize?${asked}`);
  t.is((await calling).body, 'served');
  await t.throwsAsync(fetch(back), undefined, 'nobody listens anymore');
});

test('another user of this machine, who knows the address of the page, cannot end the login', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url, { user: 'absent' });
  const calling = user.call();
  const begun = await user.browser.open(await user.startAddress());
  const page = begun.headers.get('location') ?? '';
  const other = await new Browser().visit(page);
  t.is(other.status, 403);
  t.regex(other.text, /The login goes on waiting/);
  t.is(world.count('/token'), 0);
  await user.browser.visit(page);
  t.is((await calling).body, 'served');
  t.is(world.latest('/token').parameters.get('code'), 'code-2');
});

test('a login that two browsers have begun is nobody’s', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url, { user: 'absent' });
  const calling = user.call();
  const start = await user.startAddress();
  await new Browser().open(start);
  t.is((await user.browser.visit(start)).status, 410);
  const { failure } = await calling;
  t.is(failure?.code, 'ERR_UPSTREAM_AUTH');
  t.regex(failure?.message ?? '', /opened in two browsers.*Open its address in one browser only/);
  t.is(world.count('/token'), 0);
});

test('what opens the browser is given the start address, and never the page', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url);
  await user.call();
  t.deepEqual(
    user.opened.map(({ href }) => href),
    [await user.startAddress()],
  );
});

test('a page elsewhere whose name leads here is not answered', async (t) => {
  const world = await startLoginWorld(t);
  world.comeBack = undefined;
  const user = createUser(t, world.url);
  const calling = user.call();
  await waitFor(() => world.count('/authorize') === 1);
  const back = new URL(world.latest('/authorize').parameters.get('redirect_uri') ?? '');
  const { request } = await import('node:http');
  const status = await new Promise((resolve) => {
    request(back, { headers: { host: 'evil.example' } }, (response) => resolve(response.statusCode)).end();
  });
  t.is(status, 404);
  user.login.close();
  t.is((await calling).failure?.code, 'ERR_SESSION_CLOSED');
});

test('a login that nobody completes ends the calls that wait, and says what to do', async (t) => {
  const world = await startLoginWorld(t);
  const clock = new FakeClock();
  const user = createUser(t, world.url, { clock, user: 'absent' });
  const call = new RecordedCall(user.http, world.url, {
    timeouts: { connectMs: 1000, firstByteMs: 1000, idleMs: 1000, callMs: 1000 },
  });
  const callback = (await user.startAddress()).replace(/\/start\/.*/, '');
  clock.advance(3 * 60_000);
  t.is(call.failure, undefined, 'the limits of the server are not those of the user');
  clock.advance(60_000);
  await call.finished();
  t.is(call.failure?.code, 'ERR_UPSTREAM_AUTH');
  t.is(
    call.failure?.message,
    'Nobody has logged in within 4 minutes. The next call asks again; the address to open is in the log. ' +
      `If ${callback} was refused, give another address with --oauth-callback, such as ${callback.replace('127.0.0.1', 'localhost')}.`,
  );
});

test('after a failure calls fail alike for a while instead of opening one page after the other', async (t) => {
  const world = await startLoginWorld(t);
  const clock = new FakeClock();
  world.comeBack = ({ state }) => ({ state, error: 'access_denied' });
  const user = createUser(t, world.url, { clock });
  for (const _ of [1, 2, 3]) t.regex((await user.call()).failure?.message ?? '', /access_denied/);
  t.is(world.count('/authorize'), 1);
  clock.advance(FAILURE_PAUSE_MS);
  world.comeBack = (parameters) => parameters;
  t.is((await user.call()).body, 'served');
  t.is(world.count('/authorize'), 2);
});

test('a call that is given up does not end the login of the others', async (t) => {
  const world = await startLoginWorld(t);
  const comeBack = world.comeBack;
  world.comeBack = undefined;
  const user = createUser(t, world.url);
  const impatient = new RecordedCall(user.http, world.url);
  const patient = new RecordedCall(user.http, world.url);
  await waitFor(() => world.count('/authorize') === 1);
  impatient.call.abort();
  world.comeBack = comeBack;
  await user.browser.visit(`${world.issuer}/authorize?${world.latest('/authorize').parameters}`);
  t.is((await patient.finished()).body, 'served');
  t.deepEqual(impatient.order, ['sent']);
});

test('the end of a session is not worth a login', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url);
  const call = await user.call({ method: 'DELETE', body: undefined });
  t.is(call.head?.status, 401);
  t.is(world.asked.length, 0);
});

test('a refusal whose page never ends keeps nobody from the login', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url);
  await user.call();
  world.tokens.clear();
  // Nothing but the beginning of what was announced.
  const atServer = createServer((request, response) => {
    if (world.tokens.size > 0) return world.atServer(request, response);
    response.writeHead(401, { 'www-authenticate': 'Bearer', 'content-length': 100 }).write('wait');
  });
  await new Promise<void>((resolve) => atServer.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    atServer.close();
    atServer.closeAllConnections();
  });
  const url = new URL(`http://127.0.0.1:${(atServer.address() as AddressInfo).port}/mcp`);
  const call = new RecordedCall(user.http, url);
  t.is((await call.finished()).body, 'served');
});

test('who shuts down while a login is prepared opens no page, and the calls that wait are told', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url);
  const calling = user.call();
  world.answerRegistration = () => {
    user.login.close();
    return { status: 201, body: { client_id: 'late' } };
  };
  t.is((await calling).failure?.code, 'ERR_SESSION_CLOSED');
  t.is(world.count('/authorize'), 0);
  t.false(user.log().includes('if no browser opens'));
});

test('PKCE that is not announced is used all the same where the user says that it is there', async (t) => {
  const world = await startLoginWorld(t);
  world.metadata = { code_challenge_methods_supported: undefined };
  t.is((await createUser(t, world.url, { assumesPkce: true }).call()).body, 'served');
  t.is(world.latest('/authorize').parameters.get('code_challenge_method'), 'S256');
  world.metadata = { code_challenge_methods_supported: ['plain'] };
  const { failure } = await createUser(t, world.url, { assumesPkce: true }).call();
  t.regex(failure?.message ?? '', /code_challenge_methods_supported has plain/);
});

test('the issuer that the browser names is compared as text', async (t) => {
  const world = await startLoginWorld(t);
  world.comeBack = (parameters) => ({ ...parameters, iss: `${world.issuer}/` });
  t.regex((await createUser(t, world.url).call()).failure?.message ?? '', /came back from somebody else/);
  world.metadata = { issuer: `${world.issuer}/` };
  t.is((await createUser(t, world.url).call()).body, 'served');
});
