import callbackDns, { type LookupAddress } from 'node:dns';
import dns from 'node:dns/promises';
import { syncBuiltinESMExports } from 'node:module';
import test from 'ava';
import { isPrivateAddress } from '../../../src/http/addresses.ts';
import { AddressGuard } from '../../../src/http/login/address-guard.ts';
import { createLoginFetch } from '../../../src/http/login/login-fetch.ts';
import { startLoginWorld } from '../../support/login-world.ts';
import { closeAfter, createClient } from '../recorded-call.ts';

test('knows the addresses that only we can reach', (t) => {
  const near = ['127.0.0.1', '10.1.2.3', '192.168.0.1', '172.31.0.1', '169.254.169.254', '100.64.0.1', '0.0.0.0'];
  const nearToo = ['::1', '::', 'fe80::1', 'fd00::1', '::ffff:10.0.0.1', '::ffff:a9fe:a9fe'];
  const translated = ['64:ff9b::10.0.0.1', '64:ff9b::a9fe:a9fe', '64:ff9b:1::1'];
  for (const address of [...near, ...nearToo, ...translated]) t.true(isPrivateAddress(address), address);
  for (const address of [
    '93.184.216.34',
    '172.32.0.1',
    '2606:2800:220:1::1',
    '::ffff:8.8.8.8',
    '64:ff9b::8.8.8.8',
    'example.com',
  ]) {
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

test.serial(
  'a name that leads both near and far is that of a server out there: its owner may have added an address of ours',
  async (t) => {
    const { lookup } = dns;
    t.teardown(() => restore(lookup));
    const answerWith = (...addresses: string[]) =>
      restore((async () => addresses.map((address) => ({ address, family: 4 }))) as unknown as typeof lookup);
    const neighbour = new URL('https://10.0.0.2/');
    answerWith('203.0.113.1', '10.0.0.1');
    const message = /lies in a private network, unlike the server/;
    await t.throwsAsync(new AddressGuard(new URL('https://both.example/')).check(neighbour), { message });
    answerWith();
    await t.throwsAsync(new AddressGuard(new URL('https://nowhere.example/')).check(neighbour), { message });
    answerWith('10.0.0.1', '10.0.0.3');
    await t.notThrowsAsync(new AddressGuard(new URL('https://near.example/')).check(neighbour));
  },
);

function restore(lookup: typeof dns.lookup): void {
  dns.lookup = lookup;
  syncBuiltinESMExports();
}

for (const status of ['700', '099', '000', '101']) {
  test(`an answer with a status that is none, ${status}, is an error with words`, async (t) => {
    const world = await startLoginWorld(t);
    const http = createClient();
    closeAfter(t, http);
    const fetch = createLoginFetch(http, new AddressGuard(world.url));
    world.tokens.add('x');
    // Node's own server sends no such status.
    world.serve = (_, { socket }) => void socket?.end(`HTTP/1.1 ${status} Odd\r\nContent-Length: 0\r\n\r\n`);
    const asked = fetch(world.url, { method: 'GET', headers: { authorization: 'Bearer x' } });
    await t.throwsAsync(asked, { message: /answered \d+, which is no final status of HTTP/ });
  });
}

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

test.serial('of a name that leads both near and far only the far addresses are connected to', async (t) => {
  const { lookup } = callbackDns;
  t.teardown(() => {
    callbackDns.lookup = lookup;
    syncBuiltinESMExports();
  });
  const found = [
    { address: '10.0.0.1', family: 4 },
    { address: '2001:db8::1', family: 6 },
    { address: '203.0.113.1', family: 4 },
  ];
  type Told = (error: null, addresses: readonly LookupAddress[]) => void;
  callbackDns.lookup = ((_host: string, _options: unknown, told: Told) => told(null, found)) as never;
  syncBuiltinESMExports();
  const guard = new AddressGuard(new URL('https://203.0.113.9/mcp'));
  const find = await guard.lookupFor(new URL('https://both.example/'));
  t.plan(2);
  find?.('both.example', { all: true }, (_error, addresses) => t.deepEqual(addresses, found.slice(1)));
  find?.('both.example', {}, (_error, address) => t.is(address, '2001:db8::1'));
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
