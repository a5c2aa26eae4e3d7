import callbackDns, { type LookupAddress } from 'node:dns';
import dns from 'node:dns/promises';
import { syncBuiltinESMExports } from 'node:module';
import test from 'ava';
import { isSpecialAddress } from '../../../src/http/addresses.ts';
import { AddressGuard } from '../../../src/http/login/address-guard.ts';
import { createLoginFetch } from '../../../src/http/login/login-fetch.ts';
import { startLoginWorld } from '../../support/login-world.ts';
import { closeAfter, createClient } from '../recorded-call.ts';

/** The first and the last address of each range, or one inside it. */
const SPECIAL: Readonly<Record<string, readonly string[]>> = {
  'this network': ['0.0.0.0', '0.255.255.255'],
  'private use': ['10.0.0.0', '10.255.255.255', '172.16.0.0', '172.31.255.255', '192.168.0.0', '192.168.255.255'],
  'shared by customers': ['100.64.0.0', '100.127.255.255'],
  loopback: ['127.0.0.0', '127.255.255.255', '::1'],
  'link-local': ['169.254.0.0', '169.254.169.254', 'fe80::1', 'febf::1', 'fe80::1%eth0'],
  'protocol assignments': ['192.0.0.0', '192.0.0.255', '2001::', '2001:1ff:ffff::', '2001:10::1', '2001:20::1'],
  documentation: ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1', '3fff:fff::1'],
  'relays of 6to4': ['192.88.99.1'],
  benchmarks: ['198.18.0.0', '198.19.255.255', '2001:2::1'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1'],
  'reserved, broadcast': ['240.0.0.0', '255.255.255.255'],
  unspecified: ['::'],
  'IPv4 in IPv6': [
    '::ffff:10.0.0.1',
    '::ffff:a9fe:a9fe',
    '::ffff:224.0.0.1',
    '::10.0.0.1',
    '::8.8.8.8',
    '::ffff:0:8.8.8.8',
  ],
  'IPv4 by way of a translator': ['64:ff9b::10.0.0.1', '64:ff9b::a9fe:a9fe', '64:ff9b:1::1', '64:ff9b:1:ffff::8.8.8.8'],
  '6to4': ['2002:a00:1::1', '2002:7f00:1::', '2002:808:808::1'],
  Teredo: ['2001:0:4136:e378:8000:63bf:3fff:fdd2', '2001:0:a00:1::1'],
  'discard-only': ['100::1'],
  'segment routing': ['5f00::1'],
  'unique local': ['fc00::1', 'fd00::1'],
  'site-local': ['fec0::1'],
  'nobody’s': ['1::1', '4000::1', 'e000::1'],
};

for (const [range, addresses] of Object.entries(SPECIAL)) {
  test(`knows the addresses that the Internet does not lead to: ${range}`, (t) => {
    for (const address of addresses) t.true(isSpecialAddress(address), address);
  });
}

test('knows the addresses that the Internet leads to, those beside special ranges among them', (t) => {
  const ipv4 = ['1.0.0.0', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255'];
  const between = ['128.0.0.0', '169.253.255.255', '172.15.255.255', '172.32.0.1', '192.0.1.0', '192.0.3.0'];
  const more = ['192.167.255.255', '198.17.255.255', '198.20.0.0', '203.0.112.255', '203.0.114.0', '223.255.255.255'];
  const ipv6 = ['2000::1', '2001:200::1', '2606:2800:220:1::1', '2003::1', '3ffe::1', '2001:db9::1', '2620:4f:8000::1'];
  const embedded = ['::ffff:8.8.8.8', '::ffff:808:808', '64:ff9b::8.8.8.8', '64:ff9b::808:808'];
  for (const address of [...ipv4, ...between, ...more, ...ipv6, ...embedded])
    t.false(isSpecialAddress(address), address);
  for (const name of ['example.com', '', '10.0.0', '1.2.3.4.5']) t.false(isSpecialAddress(name), name);
});

const FAR = new URL('https://8.8.8.8/mcp');
const NEAR_REASON = { message: /lies where the Internet does not lead to, unlike the server/ };

/** However a URL spells an address, it is read as the browser reads it. */
const NEAR_URLS = [
  ...['https://127.0.0.1/', 'https://127.1/', 'https://2130706433/', 'https://0x7f.1/', 'https://017700000001/'],
  ...['https://127.0.0.1./', 'https://①②⑦.0.0.1/', 'https://0/', 'http://localhost/', 'https://LOCALHOST./'],
  ...['https://a.localhost/', 'https://[::1]/', 'https://[::ffff:127.0.0.1]/', 'https://[::ffff:10.0.0.1]/'],
  ...[
    'https://169.254.169.254/latest',
    'https://[fd00::1]/',
    'https://[64:ff9b::a9fe:a9fe]/',
    'https://[2002:a00:1::]/',
  ],
  ...['https://224.0.0.1/', 'https://255.255.255.255/', 'https://192.0.2.1/'],
];

test('a server out there cannot send us to machines near us, nor the browser of the user', async (t) => {
  const guard = new AddressGuard(FAR);
  for (const url of NEAR_URLS) {
    await t.throwsAsync(guard.check(new URL(url)), NEAR_REASON, url);
    await t.throwsAsync(guard.checkPage(new URL(url)), NEAR_REASON, url);
  }
  await t.notThrowsAsync(guard.check(new URL('https://8.8.4.4/')));
  await t.notThrowsAsync(guard.checkPage(new URL('https://8.8.4.4/')));
  const end = 'but lies where the Internet does not lead to, unlike the server. ';
  const wayOut = 'The metadata of the server, or of its authorization server, is wrong or hostile; tell its operators.';
  const near = new URL('https://10.0.0.2/x');
  const asked = 'https://10.0.0.2/x is to be asked in a login, ';
  await t.throwsAsync(guard.check(near), { message: asked + end + wayOut });
  const opened = 'https://10.0.0.2/x is to be opened in the browser for a login, ';
  await t.throwsAsync(guard.checkPage(near), { message: opened + end + wayOut });
});

test('a browser is sent to web pages with https only, and without credentials', async (t) => {
  for (const guard of [new AddressGuard(FAR), new AddressGuard(new URL('http://127.0.0.1/mcp'))]) {
    for (const url of [
      'http://8.8.8.8/',
      'file:///etc/passwd',
      'javascript:alert(1)',
      'data:text/html,x',
      'ms-msdt:/id',
      'search-ms:query=x',
    ]) {
      await t.throwsAsync(
        guard.checkPage(new URL(url)),
        { message: /in the browser for a login, but not over https/ },
        url,
      );
    }
    for (const url of ['https://eve:hunter2@8.8.8.8/', 'https://eve@8.8.8.8/', 'https://:hunter2@8.8.8.8/']) {
      const error = await t.throwsAsync(guard.checkPage(new URL(url)), { message: /a user name or a password in its/ });
      t.notRegex(error?.message ?? '', /eve|hunter2/);
      await t.throwsAsync(guard.check(new URL(url)), { message: /a user name or a password in its/ });
    }
  }
});

test('a server that has answered from near is near, and one that has answered from far is not, whatever its name leads to', async (t) => {
  // The name leads to this machine, so asking for it again would tell something else.
  const neighbor = new URL('https://10.0.0.2/');
  const named = new URL('https://mcp.example/');
  await t.notThrowsAsync(new AddressGuard(named, '10.0.0.1').check(neighbor));
  await t.notThrowsAsync(new AddressGuard(named, '::ffff:192.168.0.1').checkPage(neighbor));
  await t.throwsAsync(new AddressGuard(named, '8.8.8.8').check(neighbor), NEAR_REASON);
});

test('a server near us may name its neighbors', async (t) => {
  const guard = new AddressGuard(new URL('https://192.168.0.1/mcp'));
  await t.notThrowsAsync(guard.check(new URL('https://192.168.0.2/')));
  await t.notThrowsAsync(guard.check(new URL('https://8.8.4.4/')));
  t.is(await guard.lookupFor(new URL('https://near.example/')), undefined, 'any address may be connected to');
});

test.serial(
  'a name that leads both near and far is that of a server out there: its owner may have added an address of ours',
  async (t) => {
    const { lookup } = dns;
    t.teardown(() => restore(lookup));
    const answerWith = (...addresses: string[]) =>
      restore((async (_: string, { all }: { all?: boolean }) => {
        const found = addresses.map((address) => ({ address, family: 4 }));
        return all === true ? found : found[0];
      }) as unknown as typeof lookup);
    const neighbor = new URL('https://10.0.0.2/');
    answerWith('8.8.8.8', '10.0.0.1');
    await t.throwsAsync(new AddressGuard(new URL('https://both.example/')).check(neighbor), NEAR_REASON);
    answerWith();
    await t.throwsAsync(new AddressGuard(new URL('https://nowhere.example/')).check(neighbor), NEAR_REASON);
    restore((async () => Promise.reject(new Error('ENOTFOUND'))) as unknown as typeof lookup);
    await t.throwsAsync(new AddressGuard(new URL('https://nowhere.example/')).check(neighbor), NEAR_REASON);
    answerWith('10.0.0.1', '10.0.0.3');
    await t.notThrowsAsync(new AddressGuard(new URL('https://near.example/')).check(neighbor));
  },
);

test.serial('a page whose name leads near is not opened, one that only a proxy can resolve is', async (t) => {
  const { lookup } = dns;
  t.teardown(() => restore(lookup));
  const guard = new AddressGuard(FAR);
  const page = new URL('https://login.example/authorize');
  // A browser picks one by itself.
  for (const addresses of [['10.0.0.1'], ['8.8.8.8', '10.0.0.1'], ['fe80::1%eth0']]) {
    restore((async () => addresses.map((address) => ({ address }))) as unknown as typeof lookup);
    await t.throwsAsync(guard.checkPage(page), NEAR_REASON, addresses.join());
    await t.notThrowsAsync(new AddressGuard(new URL('https://10.0.0.9/mcp')).checkPage(page));
  }
  restore((async () => [{ address: '8.8.8.8' }]) as unknown as typeof lookup);
  await t.notThrowsAsync(guard.checkPage(page));
  restore((async () => Promise.reject(new Error('ENOTFOUND'))) as unknown as typeof lookup);
  await t.notThrowsAsync(guard.checkPage(page));
});

function restore(lookup: typeof dns.lookup): void {
  dns.lookup = lookup;
  syncBuiltinESMExports();
}

for (const status of ['600', '700', '099', '000', '101']) {
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

test('an answer without a body has none, even where its server has sent one', async (t) => {
  const world = await startLoginWorld(t);
  const http = createClient();
  closeAfter(t, http);
  const fetch = createLoginFetch(http, new AddressGuard(world.url));
  world.tokens.add('x');
  for (const [status, sent, body] of [
    [200, 'hi', 'hi'],
    [200, '', ''],
    [204, '', ''],
    [205, 'hi', ''],
    [304, '', ''],
    [599, 'hi', 'hi'],
  ] as const) {
    // Node's own server sends no body with 205.
    world.serve = (_, { socket }) =>
      void socket?.end(`HTTP/1.1 ${status} Odd\r\nConnection: close\r\nContent-Length: ${sent.length}\r\n\r\n${sent}`);
    const answer = await fetch(world.url, { method: 'GET', headers: { authorization: 'Bearer x' } });
    t.is(answer.status, status);
    t.is(await answer.text(), body);
  }
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
  const guard = new AddressGuard(FAR);
  const fetch = createLoginFetch(http, { check: async () => {}, lookupFor: (url: URL) => guard.lookupFor(url) });
  const { port } = new URL(world.issuer);
  const url = new URL(`http://localhost:${port}/.well-known/oauth-authorization-server`);
  await t.throwsAsync(fetch(url, { method: 'GET', headers: {} }), NEAR_REASON);
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
    { address: '2606:2800:220:1::1', family: 6 },
    { address: '8.8.8.8', family: 4 },
  ];
  type Told = (error: Error | null, addresses: readonly LookupAddress[]) => void;
  callbackDns.lookup = ((_host: string, _options: unknown, told: Told) => told(null, found)) as never;
  syncBuiltinESMExports();
  const guard = new AddressGuard(FAR);
  const find = await guard.lookupFor(new URL('https://both.example/'));
  t.plan(4);
  find?.('both.example', { all: true }, (_error, addresses) => t.deepEqual(addresses, found.slice(1)));
  find?.('both.example', {}, (_error, address) => t.is(address, '2606:2800:220:1::1'));
  found.length = 1;
  const refused = /^https:\/\/both\.example\/ is to be asked in a login, but lies where/;
  find?.('both.example', {}, (error) => t.regex(error?.message ?? '', refused));
  const missing = new Error('ENOTFOUND');
  callbackDns.lookup = ((_host: string, _options: unknown, told: Told) => told(missing, [])) as never;
  syncBuiltinESMExports();
  find?.('both.example', {}, (error) => t.is(error, missing));
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
  await t.throwsAsync(goTo('/again'), { message: /more than 5 redirects/ });
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
