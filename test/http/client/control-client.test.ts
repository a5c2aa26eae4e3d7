import test from 'ava';
import { ControlClient, type ControlRequest } from '../../../src/http/client/control-client.ts';
import { SessionCookies } from '../../../src/http/client/cookies.ts';
import { answerJson, listen } from '../../fixtures/http-servers/listen.ts';
import { closeAfter, createClient } from '../recorded-call.ts';

function controlRequest(url: URL, request: Partial<ControlRequest> = {}): ControlRequest {
  return { method: 'GET', url, headers: {}, cookies: new SessionCookies(), timeoutMs: 60_000, ...request };
}

test('resolves with any status, with the configured headers and without following redirects', async (t) => {
  const server = await listen(({ method }, response) => {
    if (method === 'POST') response.writeHead(405).end();
    else response.writeHead(302, { Location: 'http://elsewhere.example/' }).end('moved');
  });
  const http = createClient({ headers: new Map([['x-api-key', 'k']]) });
  closeAfter(t, http, server);
  const control = new ControlClient(http);
  const ended = await control.request(controlRequest(server.url, { method: 'POST', headers: { accept: 'text/x' } }));
  t.is(ended.status, 405);
  t.like(server.received[0]?.headers, { 'x-api-key': 'k', accept: 'text/x' });
  const moved = await control.request(controlRequest(server.url));
  t.is(moved.status, 302);
  t.is(moved.body.toString(), 'moved');
});

test('rejects in plain words when nobody answers, answers late or too much', async (t) => {
  const server = await listen(({ path }, response) => {
    if (path === '/big') response.writeHead(200).end(Buffer.alloc(2 * 1024 * 1024));
    else if (path === '/mcp') answerJson(response, {});
  });
  const http = createClient();
  closeAfter(t, http, server);
  const control = new ControlClient(http);
  const late = controlRequest(new URL('/never', server.url), { timeoutMs: 100 });
  t.like(await t.throwsAsync(control.request(late)), { code: 'ERR_UPSTREAM_TIMEOUT' });
  const big = controlRequest(new URL('/big', server.url));
  t.like(await t.throwsAsync(control.request(big)), { code: 'ERR_UPSTREAM_HTTP' });
  await server.close();
  t.like(await t.throwsAsync(control.request(controlRequest(server.url))), { code: 'ERR_UPSTREAM_CONNECT' });
});
