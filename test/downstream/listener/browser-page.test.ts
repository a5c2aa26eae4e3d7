import test from 'ava';
import { callHttp, type HttpCall } from '../../support/http-call.ts';
import { startHttpHarness } from '../../support/http-harness.ts';
import { openStreamable } from '../../support/legacy-clients.ts';

const CHROME = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';
const TYPED = { 'Sec-Fetch-Site': 'none', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' };

const VISITS: Readonly<Record<string, NonNullable<HttpCall['headers']>>> = {
  'a browser of today': { ...TYPED, Accept: CHROME },
  'a browser that does not say what for it asks': { Accept: CHROME },
  'a browser without graphics': { Accept: 'text/html, text/plain;q=0.8, */*;q=0.1' },
  'a browser that takes anything': { ...TYPED, Accept: '*/*' },
};

for (const [visitor, headers] of Object.entries(VISITS)) {
  test(`${visitor} gets a short text with the addresses for clients, and starts nothing`, async (t) => {
    const { port, server, sessions } = await startHttpHarness(t);
    for (const path of ['/', '/mcp', '/mcp/', '/sse', '/mcp?x=1']) {
      const answer = await callHttp({ port, path, headers });
      t.is(answer.status, 200, path);
      t.is(answer.headers['content-type'], 'text/plain; charset=utf-8');
      t.is(answer.headers['x-content-type-options'], 'nosniff');
      t.is(answer.headers['cache-control'], 'no-store');
      const text = await answer.text();
      t.true(text.length < 600);
      t.regex(text, /^This is mcp-portage/);
      t.regex(text, new RegExp(`Streamable HTTP +http://127.0.0.1:${port}/mcp\n`));
      t.regex(text, new RegExp(`HTTP\\+SSE +http://127.0.0.1:${port}/sse\n`));
      t.regex(text, /--help/);
      const head = await callHttp({ port, path, headers, method: 'HEAD' });
      t.is(head.status, 200, path);
      t.is(head.headers['content-length'], `${Buffer.byteLength(text)}`);
      t.is(await head.text(), '');
    }
    for (const path of ['/favicon.ico', '/messages/', '/x', '/mcp/x']) {
      t.not((await callHttp({ port, path, headers })).status, 200, path);
    }
    t.is((await callHttp({ port, path: '/favicon.ico', headers })).status, 404);
    t.is(server.connections.length, 0);
    t.is(sessions.size, 0);
  });
}

test('the addresses are those behind a reverse proxy, and only of what is served', async (t) => {
  const { port } = await startHttpHarness(t, { baseUrl: new URL('https://a.example/tools/'), httpSse: 'off' });
  const text = await (await callHttp({ port, path: '/', headers: { Accept: CHROME } })).text();
  t.regex(text, /Streamable HTTP +https:\/\/a\.example\/tools\/mcp\n/);
  t.notRegex(text, /SSE/);
  t.is((await callHttp({ port, path: '/sse', headers: { Accept: CHROME } })).status, 404);
});

test('it needs no token, as a browser has none to show', async (t) => {
  const { port } = await startHttpHarness(t, {
    authenticator: { authenticate: () => t.fail('nobody is asked') },
  });
  t.is((await callHttp({ port, path: '/mcp', headers: { Accept: CHROME } })).status, 200);
});

test('clients get what they always get, whatever else they accept', async (t) => {
  const harness = await startHttpHarness(t);
  const { port } = harness;
  for (const accept of ['text/event-stream', 'text/html, text/event-stream', '*/*', undefined]) {
    const headers = { Accept: accept };
    t.true((await callHttp({ port, path: '/sse', headers })).isEventStream, `${accept} /sse`);
    t.is((await callHttp({ port, path: '/', headers })).status, 404, `${accept} /`);
  }
  const session = await openStreamable(harness);
  const headers = { Accept: `text/event-stream, ${CHROME}`, 'Mcp-Session-Id': session.id };
  t.true((await callHttp({ port, headers })).isEventStream);
  t.is((await callHttp({ port, method: 'POST', path: '/', headers: { Accept: CHROME } })).status, 404);
});
