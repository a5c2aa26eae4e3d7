import { once } from 'node:events';
import { request } from 'node:https';
import test from 'ava';
import { fixtureCertificate, type HttpHarness, startHttpHarness } from '../../support/http-harness.ts';
import { initialize, textOf } from '../../support/legacy-clients.ts';
import { RawSocket } from '../../support/raw-socket.ts';

const H2C = { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABkAAQCAAAAAAIAAAAA' };
const JSON_POST = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
const INITIALIZE = JSON.stringify(JSON.parse(String(textOf(initialize()))));
const HANDSHAKE = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

async function connect(harness: HttpHarness): Promise<RawSocket> {
  return (await RawSocket.connect(harness.port)).read();
}

test('serves a POST that wishes for h2c as if it did not, as those of Java do', async (t) => {
  const harness = await startHttpHarness(t);
  const raw = await connect(harness);
  raw.request('POST', '/mcp', { ...H2C, ...JSON_POST }, INITIALIZE);
  const answer = await raw.until(/"protocolVersion"/);
  t.regex(answer, /^HTTP\/1\.1 200 OK\r\n/);
  t.regex(answer, /mcp-session-id: /i);
});

test('serves further requests on the connection of one that wished for h2c', async (t) => {
  const harness = await startHttpHarness(t);
  const raw = await connect(harness);
  raw.request('GET', '/healthz', H2C);
  await raw.until(/"status":"ok"/);
  raw.request('GET', '/readyz', H2C);
  await raw.until(/"status":"ready"/);
  raw.request('POST', '/mcp', JSON_POST, INITIALIZE);
  await raw.until(/"protocolVersion"/);
  t.is(raw.received.match(/HTTP\/1\.1 200 OK/g)?.length, 3);
});

test('reads the body of a request that wishes for another protocol, however it is cut', async (t) => {
  const harness = await startHttpHarness(t);
  const raw = await connect(harness);
  const body = INITIALIZE;
  const head = Object.entries({ Host: '127.0.0.1', 'Transfer-Encoding': 'chunked', ...H2C, ...JSON_POST })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  raw.write(`POST /mcp HTTP/1.1\r\n${head}\r\n${body.length.toString(16)}\r\n${body.slice(0, 10)}`);
  raw.write(`${body.slice(10)}\r\n0\r\n\r\n`);
  await raw.until(/"protocolVersion"/);
  t.pass();
});

test('serves it over TLS, too', async (t) => {
  const harness = await startHttpHarness(t, { certificate: fixtureCertificate() });
  const asking = request({
    port: harness.port,
    host: '127.0.0.1',
    path: '/healthz',
    headers: H2C,
    rejectUnauthorized: false,
  });
  asking.end();
  const [response] = await once(asking, 'response');
  t.is(response.statusCode, 200);
  response.destroy();
});

for (const [what, headers, status] of [
  ['no upgrade at all', {}, 426],
  ['another version of WebSocket', { ...HANDSHAKE, 'Sec-WebSocket-Version': '8' }, 426],
  ['no key', { ...HANDSHAKE, 'Sec-WebSocket-Key': '' }, 400],
  ['a key that is too short', { ...HANDSHAKE, 'Sec-WebSocket-Key': 'abc' }, 400],
] as const) {
  test(`refuses a handshake with ${what} over HTTP, and says why`, async (t) => {
    const raw = await connect(await startHttpHarness(t));
    raw.request('GET', '/ws', headers);
    const answer = await raw.until(/"reason":"ERR_HTTP_\w+"/);
    t.regex(answer, new RegExp(`^HTTP/1\\.1 ${status} `));
    raw.destroy();
  });
}

test('answers a WebSocket handshake elsewhere as any other request there', async (t) => {
  const raw = await connect(await startHttpHarness(t));
  raw.request('GET', '/mcp', HANDSHAKE);
  const answer = await raw.all();
  t.regex(answer, /^HTTP\/1\.1 405 /);
  t.regex(answer, /Connection: close/i);
});

test('answers the handshake of the specification as it says', async (t) => {
  const raw = await connect(await startHttpHarness(t));
  raw.request('GET', '/ws', { ...HANDSHAKE, 'Sec-WebSocket-Protocol': 'chat, mcp' });
  const answer = await raw.until(/\r\n\r\n/);
  t.regex(answer, /^HTTP\/1\.1 101 /);
  t.regex(answer, /Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/);
  t.regex(answer, /Sec-WebSocket-Protocol: mcp\r\n/);
  t.notRegex(answer, /Sec-WebSocket-Extensions/);
  raw.destroy();
});

test('chooses no subprotocol where MCP is not offered', async (t) => {
  const raw = await connect(await startHttpHarness(t));
  raw.request('GET', '/ws', { ...HANDSHAKE, 'Sec-WebSocket-Protocol': 'chat' });
  const answer = await raw.until(/\r\n\r\n/);
  t.regex(answer, /^HTTP\/1\.1 101 /);
  t.notRegex(answer, /Sec-WebSocket-Protocol/i);
  raw.destroy();
});

test('refuses a list of subprotocols that is none', async (t) => {
  const raw = await connect(await startHttpHarness(t));
  raw.request('GET', '/ws', { ...HANDSHAKE, 'Sec-WebSocket-Protocol': 'mcp,,' });
  t.regex(await raw.all(), /^HTTP\/1\.1 400 /);
});
