import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { ControlClient } from '../../src/http/client/control-client.ts';
import { SessionCookies } from '../../src/http/client/cookies.ts';
import { answerJson, listen } from '../fixtures/http-servers/listen.ts';
import { startProxy } from '../fixtures/http-servers/proxy.ts';
import { closeAfter, createClient, RecordedCall } from './recorded-call.ts';

const tlsFile = (name: string): string => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url));
const serverTls = { cert: readFileSync(tlsFile('server.pem')), key: readFileSync(tlsFile('server-key.pem')) };
const ca = { caFile: tlsFile('ca.pem'), certFile: undefined, keyFile: undefined };

test('trusts the authority it was given, and shows a client certificate', async (t) => {
  const server = await listen((_, response) => answerJson(response, {}), {
    tls: { ...serverTls, ca: readFileSync(ca.caFile), requestCert: true, rejectUnauthorized: true },
  });
  const client = createClient({ tls: { ...ca, certFile: tlsFile('client.pem'), keyFile: tlsFile('client-key.pem') } });
  closeAfter(t, client, server);
  for (const _ of [1, 2]) t.is((await new RecordedCall(client, server.url).finished()).head?.status, 200);
  t.is(server.received[1]?.connection, 1, 'the connection is kept');
});

test('refuses a certificate nobody vouches for, and says what to do', async (t) => {
  const server = await listen((_, response) => answerJson(response, {}), { tls: serverTls });
  const client = createClient();
  closeAfter(t, client, server);
  const { failure } = await new RecordedCall(client, server.url).finished();
  t.is(failure?.code, 'ERR_UPSTREAM_CONNECT');
  t.regex(failure?.message ?? '', /not trusted here.*--ca/);
  t.is(server.received.length, 0);
});

test.serial(
  'refuses it also where the environment has Node accept everything, through a proxy and for metadata',
  async (t) => {
    const { NODE_TLS_REJECT_UNAUTHORIZED: before = '' } = process.env;
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    t.teardown(() => {
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
    });
    const server = await listen((_, response) => answerJson(response, {}), { tls: serverTls });
    const proxy = await startProxy();
    const direct = createClient();
    const proxied = createClient({ proxyEnv: { HTTPS_PROXY: proxy.url } });
    closeAfter(t, direct, proxied, proxy, server);
    const named = new URL(`https://server.test:${server.port}/mcp`);
    for (const [client, url] of [
      [direct, server.url],
      [proxied, named],
    ] as const) {
      t.is((await new RecordedCall(client, url).finished()).failure?.code, 'ERR_UPSTREAM_CONNECT');
      const asked = { method: 'GET', url, headers: {}, cookies: new SessionCookies(), timeoutMs: 60_000 } as const;
      await t.throwsAsync(new ControlClient(client).request(asked), { message: /not trusted here/ });
    }
    t.is(server.received.length, 0);
  },
);

test('https asked of a plain server says so', async (t) => {
  const server = await listen((_, response) => answerJson(response, {}));
  const client = createClient();
  closeAfter(t, client, server);
  const url = new URL(server.url.href.replace('http:', 'https:'));
  t.regex((await new RecordedCall(client, url).finished()).failure?.message ?? '', /does not speak TLS/);
});

test('http asked of a server that speaks TLS says what to try, https does not', async (t) => {
  const server = await listen((_, response) => void response.socket?.destroy(), { tls: serverTls });
  const client = createClient({ tls: ca });
  closeAfter(t, client, server);
  const messageOf = async (url: URL) => (await new RecordedCall(client, url).finished()).failure?.message ?? '';
  const plain = new URL(server.url.href.replace('https:', 'http:'));
  t.regex(await messageOf(plain), /before an answer came.* If it speaks TLS on this port, use https:\/\/\.$/);
  t.regex(await messageOf(server.url), /before an answer came.*\(ECONNRESET\)\.$/);
});

test('certificate files that cannot be used are an error of the configuration', (t) => {
  const missing = t.throws(() => createClient({ tls: { ...ca, caFile: '/no/such.pem' } }));
  t.like(missing, { code: 'ERR_CONFIG_OPTION' });
  t.regex(missing?.message ?? '', /--ca: \/no\/such\.pem/);
});
