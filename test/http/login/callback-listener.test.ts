import { createServer, request as requestHttp } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { CallbackListener } from '../../../src/http/login/callback-listener.ts';
import { Browser } from '../../support/browser.js';
import { ownPort } from '../../support/own-port.ts';

const PAGE = new URL('https://auth.example/authorize?state=s&a=%22%3B%24(x)');

/** A listener with a login that was offered, and what has come of it. */
async function offer(t: ExecutionContext, callback = 'http://127.0.0.1:0/callback') {
  const listener = new CallbackListener(new URL(callback));
  t.teardown(() => listener.close());
  const back = await listener.listen();
  const came: string[] = [];
  const start = listener.offer({
    server: 'https://server.example/mcp',
    page: PAGE,
    receive: (parameters) => {
      came.push(String(parameters));
      return parameters.has('code') ? 'done' : parameters.has('error') ? 'refused' : 'ignored';
    },
    contested: () => came.push('contested'),
  });
  return { listener, back, start, came };
}

/** What is answered to a request with this Host. */
function askAs(host: string, url: URL): Promise<{ status: number | undefined; location: string | undefined }> {
  return new Promise((resolve, reject) => {
    const request = requestHttp(url, { headers: { host } }, (response) => {
      response.resume();
      resolve({ status: response.statusCode, location: response.headers.location });
    });
    request.on('error', reject).end();
  });
}

test('a port that is taken is an error that says what to do', async (t) => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.teardown(() => void other.close());
  const { port } = other.address() as AddressInfo;
  const listener = new CallbackListener(new URL(`http://127.0.0.1:${port}/callback`));
  t.teardown(() => listener.close());
  await t.throwsAsync(listener.listen(), { code: 'ERR_CONFIG_LISTEN', message: /EADDRINUSE.*--oauth-callback/ });
});

test('the start address leads to the page to log in at, and gives the browser a cookie that only it gets back', async (t) => {
  const { back, start } = await offer(t);
  t.is(start.origin, back.origin);
  t.regex(start.href, /^http:\/\/127\.0\.0\.1:\d+\/callback\/start\/[\w-]{43}$/);
  const begun = await new Browser().open(start);
  t.is(begun.status, 302);
  t.is(begun.headers.get('location'), PAGE.href);
  t.is(begun.headers.get('cache-control'), 'no-store');
  t.is(begun.headers.get('referrer-policy'), 'no-referrer');
  t.regex(
    begun.headers.get('set-cookie') ?? '',
    /^mcp-portage-login-\d+=[\w-]{43}; Path=\/callback; Max-Age=300; HttpOnly; SameSite=Lax$/,
  );
});

test('two logins have nothing in common that could be guessed', async (t) => {
  const [one, other] = [await offer(t), await offer(t)];
  t.not(one.start.pathname, other.start.pathname);
  const cookies = await Promise.all([one, other].map(async ({ start }) => (await new Browser().open(start)).headers));
  const [first, second] = cookies.map((headers) => headers.get('set-cookie'));
  t.not(first?.split(/[=;]/)[1], second?.split(/[=;]/)[1]);
});

test('one browser can take part in several logins at once', async (t) => {
  const [one, other] = [await offer(t), await offer(t)];
  const browser = new Browser();
  for (const { start } of [one, other]) await browser.open(start);
  for (const { back } of [one, other]) t.is((await browser.open(`${back}?code=c`)).status, 200);
});

test('answers with a page that loads nothing and keeps nothing, and never repeats what came', async (t) => {
  const { back, start, came } = await offer(t);
  const browser = new Browser();
  await browser.open(start);
  const failed = await browser.open(`${back}?error=<script>`);
  t.is(failed.status, 400);
  t.false((await failed.text()).includes('script>'));
  await browser.jar.removeAllCookies();
  t.deepEqual(came, ['error=%3Cscript%3E']);
});

test('the page says which server the login is for, to the browser that began and to no other', async (t) => {
  const { back, start } = await offer(t);
  const browser = new Browser();
  await browser.open(start);
  for (const stranger of [start, `${back}?code=evil`]) {
    t.false((await (await new Browser().open(stranger)).text()).includes('server.example'));
  }
  for (const [query, title] of [
    ['nothing=1', 'Nobody is waiting for this answer'],
    ['error=access_denied', 'Access refused'],
  ]) {
    const page = await (await browser.open(`${back}?${query}`)).text();
    t.true(page.includes(`<h1>${title}</h1>`), query);
    t.true(page.includes('<dd>https://server.example/mcp</dd>'), query);
  }
});

test('the browser that began ends the login, and its cookie goes', async (t) => {
  const { back, start, came } = await offer(t);
  const browser = new Browser();
  await browser.open(start);
  t.is((await browser.open(`${back}?nothing=1`)).status, 400);
  const done = await browser.open(`${back}?code=secret-code`);
  t.is(done.status, 200);
  t.is(done.headers.get('cache-control'), 'no-store');
  t.is(done.headers.get('referrer-policy'), 'no-referrer');
  t.is(
    done.headers.get('content-security-policy'),
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  );
  t.is(done.headers.get('x-content-type-options'), 'nosniff');
  t.false((await done.text()).includes('secret-code'));
  t.deepEqual(came, ['nothing=1', 'code=secret-code']);
  t.deepEqual(await browser.jar.getCookies(back.href), []);
});

test('whoever comes back in another browser is told why that is not taken, and the login goes on waiting', async (t) => {
  const { back, start, came } = await offer(t);
  const browser = new Browser();
  const refuse = async (cookie?: string) => {
    const headers = cookie === undefined ? {} : { cookie };
    const refused = await fetch(`${back}?code=evil&state=known`, { headers });
    t.is(refused.status, 403, cookie);
    t.regex(await refused.text(), /not begun in this browser.*The login goes on waiting/);
  };
  await refuse();
  for (const guess of ['', 'undefined']) await refuse(`mcp-portage-login-${back.port}=${guess}`);
  await browser.open(start);
  const [cookie] = await browser.jar.getCookies(back.href);
  const { key = '', value = '' } = cookie ?? {};
  for (const shown of [undefined, `${key}=`, key, `${key}=${value}x`, `${key}=${value.slice(1)}`, `other=${value}`]) {
    await refuse(shown);
  }
  t.deepEqual(came, []);
  const others = { headers: { cookie: `a=b; ${key}=${value}; c=d` } };
  t.is((await fetch(`${back}?code=mine`, others)).status, 200, 'there may be other cookies');
  t.deepEqual(came, ['code=mine']);
});

test('the start address works for one browser; the visit of another says so and ends the login', async (t) => {
  const { start, came } = await offer(t);
  const browser = new Browser();
  await browser.open(start);
  const again = await browser.open(start);
  t.is(again.status, 302, 'a page that was closed can be opened again');
  t.is(again.headers.get('location'), PAGE.href);
  t.is(again.headers.get('set-cookie'), null);
  t.deepEqual(came, []);
  const other = await new Browser().open(start);
  t.is(other.status, 410);
  t.is(other.headers.get('location'), null);
  t.regex(await other.text(), /works once, and another browser has opened it before/);
  t.deepEqual(came, ['contested']);
});

test('nothing but a GET begins or ends a login', async (t) => {
  const { back, start, came } = await offer(t);
  const browser = new Browser();
  for (const method of ['HEAD', 'POST', 'OPTIONS']) {
    const refused = await browser.open(start, { method });
    t.is(refused.status, 405, method);
    t.is(refused.headers.get('allow'), 'GET');
    t.is(refused.headers.get('cache-control'), 'no-store');
  }
  t.is((await browser.open(start)).status, 302, 'they have used nothing up');
  for (const method of ['HEAD', 'POST']) t.is((await browser.open(`${back}?code=c`, { method })).status, 405, method);
  t.deepEqual(came, []);
});

test('only its own names lead to a login, and only its own name ends it', async (t) => {
  const { back, start, came } = await offer(t);
  const { port } = back;
  for (const host of ['evil.example', `evil.example:${port}`, `127.0.0.1.evil.example:${port}`]) {
    t.is((await askAs(host, start)).status, 404, host);
    t.is((await askAs(host, new URL('?code=c', back))).status, 404, host);
  }
  // An editor that forwards the port from another machine calls it so; the cookie is for the name of the callback.
  t.deepEqual(await askAs(`localhost:${port}`, start), { status: 302, location: start.href });
  t.is((await askAs(`localhost:${port}`, new URL('?code=c', back))).status, 404);
  t.deepEqual(await askAs(`127.0.0.1:${port}`, start), { status: 302, location: PAGE.href });
  t.deepEqual(came, []);
});

test('other paths than those two are nobody’s', async (t) => {
  const { back, start } = await offer(t);
  const guessed = start.href.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
  for (const url of [guessed, `${start}/`, `${start}x`, new URL('start/', start).href, `${back}/`, back.origin]) {
    t.is((await fetch(url, { redirect: 'manual' })).status, 404, url);
  }
  t.is((await fetch(start, { redirect: 'manual' })).status, 302);
});

test('a callback at the root, or one that ends in a slash, works alike', async (t) => {
  for (const callback of ['http://127.0.0.1:0/', 'http://127.0.0.1:0/a/b/']) {
    const { back, start, came } = await offer(t, callback);
    const below = callback.endsWith('/a/b/') ? '/a/b' : '';
    t.regex(start.pathname, new RegExp(`^${below}/start/[\\w-]{43}$`));
    const browser = new Browser();
    t.is((await browser.open(start)).headers.get('location'), PAGE.href);
    t.is((await browser.open(`${back}?code=c`)).status, 200);
    t.deepEqual(came, ['code=c']);
  }
});

test('nobody is waited for before a login is offered', async (t) => {
  const listener = new CallbackListener(new URL('http://127.0.0.1:0/callback'));
  t.teardown(() => listener.close());
  t.is((await fetch(`${await listener.listen()}?code=c`)).status, 400);
});

test('listens on this machine only, and not at all when it is closed', async (t) => {
  // What the system chooses may belong to somebody else a moment later.
  const listener = new CallbackListener(new URL(`http://localhost:${await ownPort()}/callback`));
  const url = await listener.listen();
  t.is(url.hostname, 'localhost');
  t.is((await askAs(`127.0.0.1:${url.port}`, new URL(`http://127.0.0.1:${url.port}/callback`))).status, 404);
  await t.throwsAsync(fetch(`http://127.0.0.2:${url.port}/callback`), undefined, 'another address of this machine');
  listener.close();
  listener.close();
  await t.throwsAsync(fetch(`http://127.0.0.1:${url.port}/callback`));
});

test('a request without a name, or for what is no path, leads nowhere', async (t) => {
  const { back, came } = await offer(t);
  const send = async (head: string) => {
    const socket = connect(Number(back.port), '127.0.0.1');
    socket.write(`${head}\r\n\r\n`);
    return (await text(socket)).split('\r\n', 1)[0];
  };
  t.is(await send('GET /callback?code=c HTTP/1.0'), 'HTTP/1.1 404 Not Found');
  for (const target of ['//', 'http://[', '*']) {
    const head = `GET ${target} HTTP/1.1\r\nHost: ${back.host}\r\nConnection: close`;
    t.is(await send(head), 'HTTP/1.1 404 Not Found', target);
  }
  t.deepEqual(came, []);
});

const hasIpv6 = Object.values(networkInterfaces())
  .flat()
  .some((found) => found?.address === '::1');

/** The status of what is answered at this address to a browser that was sent to `localhost`. */
function statusAt(address: string, url: URL): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const { port, pathname } = url;
    const request = requestHttp({ host: address, port, path: pathname, headers: { host: url.host } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on('error', reject).end();
  });
}

test('a browser that was sent to localhost may come by either of its addresses, and IPv4 needs no other', async (t) => {
  for (const port of [0, await ownPort()]) {
    const { start } = await offer(t, `http://localhost:${port}/callback`);
    t.is(await statusAt('127.0.0.1', start), 302);
    if (hasIpv6) t.is(await statusAt('::1', new URL('/other', start)), 404);
    else await t.throwsAsync(statusAt('::1', start));
  }
  const { start } = await offer(t);
  await t.throwsAsync(statusAt('::1', start));
});

const ifIpv6 = hasIpv6 ? test : test.skip;

ifIpv6('a program that has the port at the other address of localhost does not get the end of a login', async (t) => {
  const other = createServer();
  const port = await ownPort();
  await new Promise<void>((resolve) => other.listen(port, '::1', resolve));
  t.teardown(() => void other.close());
  const listener = new CallbackListener(new URL(`http://localhost:${port}/callback`));
  t.teardown(() => listener.close());
  await t.throwsAsync(listener.listen(), {
    code: 'ERR_CONFIG_LISTEN',
    message: `Cannot listen at [::1]:${port} for the end of a login (EADDRINUSE). Choose another port with --oauth-callback, or 0 for any.`,
  });
  t.is(await statusAt('127.0.0.1', new URL(`http://localhost:${port}/callback`)).catch(() => 'refused'), 'refused');
  await new Promise((resolve) => other.close(resolve));
  t.is((await listener.listen()).port, String(port), 'it can be tried again');
});
