import test, { type ExecutionContext } from 'ava';
import { AddressGuard } from '../../../src/http/login/address-guard.ts';
import { authorizeInBrowser, type BrowserLogin } from '../../../src/http/login/authorize-in-browser.ts';
import { CallbackListener } from '../../../src/http/login/callback-listener.ts';
import { LOGIN_TIMEOUT_MS } from '../../../src/http/login/patience.ts';
import { collectLog } from '../../process/collected-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';

for (const page of ['http://127.0.0.1:1/authorize', 'https://10.0.0.1/authorize', 'https://[fd00::1]/authorize']) {
  test(`no browser is opened where a server on the Internet names ${page} as the page to log in at`, async (t) => {
    const listener = new CallbackListener(new URL('http://127.0.0.1:0/callback'));
    t.teardown(() => listener.close());
    const { log, entries } = collectLog();
    const login = authorizeInBrowser({
      server: new URL('https://8.8.8.8/mcp'),
      authorizationServer: {
        issuer: 'https://auth.example',
        authorization_endpoint: page,
        code_challenge_methods_supported: ['S256'],
      },
      ...{
        clientId: 'us',
        listener,
        callback: (await listener.listen()).href,
        parameters: { resource: 'https://8.8.8.8/mcp', extra: new Map(), binding: undefined },
      },
      ...{ scopes: [], assumesPkce: false, findNewerLogin: () => undefined, clock: new FakeClock(), log },
      guard: new AddressGuard(new URL('https://8.8.8.8/mcp')),
      openBrowser: () => t.fail('a browser was opened'),
      askToPaste: undefined,
      signal: new AbortController().signal,
    });
    await t.throwsAsync(login, {
      code: 'ERR_UPSTREAM_AUTH',
      message: /is to be opened in the browser for a login, but lies where the Internet does not lead to/,
    });
    t.deepEqual(entries, []);
  });
}

const SERVER = {
  issuer: 'https://auth.example',
  authorization_endpoint: 'https://8.8.8.8/authorize',
  code_challenge_methods_supported: ['S256'],
};

/** Begins a login; `start` resolves with the address that the browser is opened with. */
async function begin(t: ExecutionContext, changes: Partial<BrowserLogin> = {}) {
  const listener = new CallbackListener(new URL('http://127.0.0.1:0/callback'));
  t.teardown(() => listener.close());
  const callback = (await listener.listen()).href;
  const clock = new FakeClock();
  let open = (_: URL): void => {};
  const start = new Promise<URL>((resolve) => {
    open = resolve;
  });
  const outcome = authorizeInBrowser({
    server: new URL('https://8.8.8.8/mcp'),
    authorizationServer: SERVER,
    ...{
      clientId: 'us',
      listener,
      callback,
      parameters: { resource: 'https://8.8.8.8/mcp', extra: new Map(), binding: undefined },
      scopes: [],
      clock,
    },
    assumesPkce: false,
    findNewerLogin: () => undefined,
    guard: { checkPage: async () => {} },
    openBrowser: (url) => open(url),
    askToPaste: undefined,
    log: collectLog().log,
    signal: new AbortController().signal,
    ...changes,
  });
  return { outcome, start, clock, callback };
}

test('a login that nobody completes ends with what to do, and leaves no timer', async (t) => {
  const { outcome, start, clock, callback } = await begin(t);
  await start;
  clock.advance(LOGIN_TIMEOUT_MS - 1);
  t.true(clock.pendingTimers > 0);
  clock.advance(1);
  await t.throwsAsync(outcome, {
    message:
      'Nobody has logged in within 4 minutes. The next call asks again; the address to open is in the log. ' +
      `If ${callback} was refused, give another address with --oauth-callback, such as ${callback.replace('127.0.0.1', 'localhost')}.`,
  });
  t.is(clock.pendingTimers, 0);
});

test('a login ends with the reason of whoever ends it, and leaves no timer', async (t) => {
  const ending = new AbortController();
  const { outcome, start, clock } = await begin(t, { signal: ending.signal });
  await start;
  ending.abort(new Error('shutting down'));
  await t.throwsAsync(outcome, { message: 'shutting down' });
  t.is(clock.pendingTimers, 0);
});

test('a refused login is told with the words of the authorization server', async (t) => {
  const { outcome, start, callback } = await begin(t);
  const begun = await fetch(await start, { redirect: 'manual' });
  const page = new URL(begun.headers.get('location') ?? '');
  const cookie = begun.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
  const back = new URL(callback);
  back.search = String(new URLSearchParams({ error: 'access_denied', state: page.searchParams.get('state') ?? '' }));
  t.is((await fetch(back, { headers: { cookie } })).status, 400);
  const refused = await outcome;
  if (refused.kind !== 'refused') return t.fail();
  t.is(refused.code, 'access_denied');
  const message = 'The login at https://auth.example was refused (access_denied). The next call asks again.';
  t.is(refused.error.message, message);
});

test('no page is opened without PKCE, without a page, or with an address that is too long', async (t) => {
  const failureOf = async (changes: Partial<BrowserLogin>) => {
    const openBrowser = () => t.fail('a browser was opened');
    const { outcome } = await begin(t, { openBrowser, ...changes });
    return (await t.throwsAsync(outcome))?.message;
  };
  const { issuer, authorization_endpoint: page } = SERVER;
  t.is(
    await failureOf({ authorizationServer: { issuer, authorization_endpoint: page } }),
    `${issuer} does not say that it supports PKCE with S256: its metadata has no code_challenge_methods_supported. ` +
      'Without it the code that it sends could be used by others; if you know that it supports PKCE, give --oauth-assume-pkce.',
  );
  t.is(
    await failureOf({ authorizationServer: { issuer } }),
    `${issuer} has no page to log in at. Expected an authorization_endpoint.`,
  );
  const tooLong = await failureOf({
    parameters: { resource: `https://8.8.8.8/${'x'.repeat(16 * 1024)}`, extra: new Map(), binding: undefined },
  });
  t.is(
    tooLong?.replace(/\d{5} characters/, 'N characters'),
    `The page to log in at, of ${issuer}, would have an address of N characters. ` +
      'Expected at most 16384; tell the operators of the server.',
  );
});
