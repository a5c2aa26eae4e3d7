import { once } from 'node:events';
import { request } from 'node:https';
import test from 'ava';
import { fixtureCertificate, type HttpHarness, startHttpHarness } from '../../support/http-harness.ts';
import { initialize, textOf } from '../../support/legacy-clients.ts';
import { RawSocket } from '../../support/raw-socket.ts';
import { waitFor } from '../../support/wait-for.ts';
import { headersOf, modernCall } from '../streamable-stateless/modern-posts.ts';

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

const head = (path: string, headers: Readonly<Record<string, string>> = {}): string => {
  const lines = Object.entries({ Host: '127.0.0.1', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
};
const statusesOf = (text: string): readonly string[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status ?? '');

for (const [what, first] of [
  ['a request', head('/healthz')],
  ['one that Node answers itself', head('/healthz', { Expect: 'a miracle' })],
] as const) {
  test(`completes a handshake that came with ${what} in one packet, after its answer`, async (t) => {
    const raw = await connect(await startHttpHarness(t));
    raw.write(first + head('/ws', HANDSHAKE));
    const answers = statusesOf(await raw.until(/HTTP\/1\.1 101 .*\r\n\r\n/s));
    t.is(answers.length, 2);
    raw.destroy();
  });
}

test('refuses a handshake that came with other requests in one packet, after their answers', async (t) => {
  const raw = await connect(await startHttpHarness(t));
  raw.write(head('/healthz') + head('/readyz') + head('/ws', { ...HANDSHAKE, 'Sec-WebSocket-Version': '8' }));
  t.deepEqual(statusesOf(await raw.all()), ['200', '200', '426']);
});

for (const cut of ['in one packet', 'byte by byte'] as const) {
  test(`answers every request around those that wish for h2c, in their order, ${cut}`, async (t) => {
    const raw = await connect(await startHttpHarness(t));
    const paths = ['/healthz', '/readyz', '/nothing', '/healthz', '/readyz', '/nothing', '/healthz', '/nothing'];
    const text = paths.map((path, index) => head(path, index % 3 === 0 ? {} : H2C)).join('');
    if (cut === 'in one packet') raw.write(text);
    else {
      raw.socket.setNoDelay(true);
      for (const byte of text) {
        raw.write(byte);
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
    }
    await waitFor(() => statusesOf(raw.received).length === paths.length, { message: () => raw.received });
    const expected = paths.map((path) => (path === '/nothing' ? '404' : '200'));
    t.deepEqual(statusesOf(raw.received), expected);
    t.false(raw.isClosed);
    raw.destroy();
  });
}

// Masked, with the text "hi".
const PING = Buffer.from([0x89, 0x82, 0, 0, 0, 0, 0x68, 0x69]);
const PONG = '\x8a\x02hi';

function postCall(raw: RawSocket, id: number): void {
  const message = modernCall(id);
  raw.request('POST', '/mcp', headersOf(message) as Record<string, string>, JSON.stringify(message));
}

test('a handshake behind a call waits for its answer, and what follows it meanwhile is not lost', async (t) => {
  const harness = await startHttpHarness(t);
  const raw = await connect(harness);
  postCall(raw, 1);
  raw.write(head('/ws', HANDSHAKE));
  await waitFor(() => harness.modernCalls.size === 1, { message: 'the call' });
  raw.socket.write(PING);
  t.is(raw.received, '');
  const called = harness.server.latest;
  called.answer(await called.next('tools/call'), {});
  await waitFor(() => raw.received.endsWith(PONG), { message: 'the pong' });
  t.deepEqual(statusesOf(raw.received), ['200', '101']);
  raw.destroy();
});

test('answers that are read slowly arrive whole, whatever upgrade was asked for behind them', async (t) => {
  const harness = await startHttpHarness(t);
  const raw = await RawSocket.connect(harness.port);
  postCall(raw, 1);
  await waitFor(() => harness.modernCalls.size === 1, { message: 'the call' });
  const first = harness.server.latest;
  first.answer(await first.next('tools/call'), { large: 'x'.repeat(12 * 1024 * 1024) });
  await waitFor(() => harness.live.unsentBytes > 0, { message: 'the connection to be full' });
  postCall(raw, 2);
  raw.write(head('/healthz', H2C) + head('/healthz') + head('/ws', HANDSHAKE));
  raw.socket.write(PING);
  await waitFor(() => harness.server.latest !== first, { message: 'the second call' });
  const second = harness.server.latest;
  second.answer(await second.next('tools/call'), {});
  raw.read();
  await waitFor(() => raw.received.endsWith(PONG), { message: 'the pong' });
  t.deepEqual(statusesOf(raw.received), ['200', '200', '200', '200', '101']);
  raw.destroy();
});

test('a call is canceled when its client leaves with an upgrade asked for behind it', async (t) => {
  const harness = await startHttpHarness(t);
  for (const behind of [head('/ws', HANDSHAKE), head('/healthz', H2C), head('/healthz', H2C) + head('/readyz')]) {
    const raw = await connect(harness);
    postCall(raw, 1);
    raw.write(behind);
    await waitFor(() => harness.modernCalls.size === 1, { message: 'the call' });
    raw.socket.resetAndDestroy();
    await waitFor(() => harness.modernCalls.size === 0, { message: 'the end of the call' });
  }
  t.is((await fetch(`http://127.0.0.1:${harness.port}/healthz`)).status, 200);
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
