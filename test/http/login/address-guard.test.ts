import test from 'ava';
import { isPrivateAddress } from '../../../src/http/addresses.ts';
import { AddressGuard } from '../../../src/http/login/address-guard.ts';
import { createLoginFetch } from '../../../src/http/login/login-fetch.ts';
import { startLoginWorld } from '../../support/login-world.ts';
import { closeAfter, createClient } from '../recorded-call.ts';

test('knows the addresses that only we can reach', (t) => {
  const near = ['127.0.0.1', '10.1.2.3', '192.168.0.1', '172.31.0.1', '169.254.169.254', '100.64.0.1', '0.0.0.0'];
  const nearToo = ['::1', '::', 'fe80::1', 'fd00::1', '::ffff:10.0.0.1', '::ffff:a9fe:a9fe'];
  for (const address of [...near, ...nearToo]) t.true(isPrivateAddress(address), address);
  for (const address of ['93.184.216.34', '172.32.0.1', '2606:2800:220:1::1', '::ffff:8.8.8.8', 'example.com']) {
    t.false(isPrivateAddress(address), address);
  }
});

test('a server out there cannot send us to machines near us', async (t) => {
  // Addresses for documentation: nobody is asked.
  const guard = new AddressGuard(new URL('https://203.0.113.1/mcp'));
  const near = [
    'https://127.0.0.1/',
    'http://localhost/',
    'https://169.254.169.254/latest',
    'https://[::ffff:10.0.0.1]/',
  ];
  for (const url of [...near, 'https://[fd00::1]/', 'https://2130706433/']) {
    await t.throwsAsync(guard.check(new URL(url)), { message: /lies in a private network, unlike the server/ }, url);
  }
  await t.notThrowsAsync(guard.check(new URL('https://203.0.113.2/')));
});

test('a server near us may name its neighbours', async (t) => {
  const guard = new AddressGuard(new URL('https://192.168.0.1/mcp'));
  await t.notThrowsAsync(guard.check(new URL('https://192.168.0.2/')));
  await t.notThrowsAsync(guard.check(new URL('https://203.0.113.2/')));
});

test('nothing is asked over http beyond this machine', async (t) => {
  const guard = new AddressGuard(new URL('http://127.0.0.1/mcp'));
  await t.notThrowsAsync(guard.check(new URL('http://127.0.0.1:1/')));
  for (const url of ['http://203.0.113.2/', 'http://192.168.0.1/', 'ftp://127.0.0.1/', 'file:///etc/passwd']) {
    await t.throwsAsync(guard.check(new URL(url)), { message: /not over https/ }, url);
  }
});

test('a name that leads to a private address is refused when it is connected to, not before', async (t) => {
  const world = await startLoginWorld(t);
  const http = createClient();
  closeAfter(t, http);
  const guard = new AddressGuard(new URL('https://203.0.113.1/mcp'));
  const fetch = createLoginFetch(http, { check: async () => {}, lookupFor: (url: URL) => guard.lookupFor(url) });
  const { port } = new URL(world.issuer);
  const url = new URL(`http://localhost:${port}/.well-known/oauth-authorization-server`);
  await t.throwsAsync(fetch(url, { method: 'GET', headers: {} }), { message: /lies in a private network/ });
  t.is(world.asked.length, 0);
});

test('a document may move within its origin and nowhere else', async (t) => {
  const world = await startLoginWorld(t);
  const http = createClient();
  closeAfter(t, http);
  const fetch = createLoginFetch(http, new AddressGuard(world.url));
  world.tokens.add('x');
  const goTo = (location: string) => {
    world.serve = (request, response) => {
      if (request.url === '/moved') response.end('here');
      else response.writeHead(302, { location }).end();
    };
    return fetch(world.url, { method: 'GET', headers: { authorization: 'Bearer x' } });
  };
  t.is(await (await goTo('/moved')).text(), 'here');
  await t.throwsAsync(goTo('https://203.0.113.1/'), { message: /a redirect to another origin/ });
  await t.throwsAsync(goTo('/again'), { message: /more than 3 redirects/ });
});

test('an answer that is too long is cut off', async (t) => {
  const world = await startLoginWorld(t);
  const http = createClient();
  closeAfter(t, http);
  const fetch = createLoginFetch(http, new AddressGuard(world.url));
  world.tokens.add('x');
  world.serve = (_, response) => void response.end(Buffer.alloc(2 * 1024 * 1024, 'a'));
  const asked = fetch(world.url, { method: 'GET', headers: { authorization: 'Bearer x' } });
  await t.throwsAsync(asked, { message: /longer than 1048576 bytes/ });
});
