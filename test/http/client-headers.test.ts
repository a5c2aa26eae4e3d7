import { rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { SessionCookies } from '../../src/http/client/cookies.ts';
import { forwardedHeaders } from '../../src/http/headers.ts';
import { answerJson, listen } from '../fixtures/http-servers/listen.ts';
import { closeAfter, createClient, RecordedCall } from './recorded-call.ts';

test('sends configured headers, but none that belong to HTTP framing or MCP', async (t) => {
  const server = await listen((_, response) => answerJson(response, {}));
  const client = createClient({
    headers: new Map([
      ['x-api-key', 'k'],
      ['mcp-session-id', 'forged'],
      ['transfer-encoding', 'chunked'],
      ['content-length', '999'],
      ['user-agent', 'mine'],
    ]),
  });
  closeAfter(t, client, server);
  await new RecordedCall(client, server.url, { headers: { 'Mcp-Session-Id': 'ours' } }).finished();
  const headers = server.received[0]?.headers ?? {};
  t.like(headers, { 'x-api-key': 'k', 'mcp-session-id': 'ours', 'content-length': '2', 'user-agent': 'mine' });
});

test('lets headers of the client pass only if they cannot do harm', async (t) => {
  const server = await listen((_, response) => answerJson(response, {}));
  const client = createClient({ headers: new Map([['x-tenant', 'configured']]) });
  closeAfter(t, client, server);
  const forwarded = {
    'x-request-id': '7',
    'x-tenant': 'forged',
    cookie: 'a=b',
    'mcp-session-id': 'of-the-client',
    connection: 'close',
    host: 'elsewhere',
  };
  await new RecordedCall(client, server.url, { forwarded }).finished();
  const headers = server.received[0]?.headers ?? {};
  t.like(headers, { 'x-request-id': '7', 'x-tenant': 'configured', host: server.url.host, connection: 'keep-alive' });
  for (const name of ['cookie', 'mcp-session-id']) t.is(headers[name], undefined);
});

test('what a client shows the bridge becomes a header of the server under another name only', (t) => {
  const request = {
    headers: { authorization: 'Bearer of-the-client', 'x-api-key': 'k' },
  } as unknown as IncomingMessage;
  const passed = (name: string, sentAs: string) => forwardedHeaders(request, [{ name, sentAs }]);
  t.is(passed('authorization', 'authorization'), undefined);
  t.deepEqual(passed('authorization', 'x-caller'), { 'x-caller': 'Bearer of-the-client' });
  t.deepEqual(passed('x-api-key', 'authorization'), { authorization: 'k' });
  t.is(passed('x-api-key', 'cookie'), undefined);
});

test('re-reads the bearer token when its file changes; errors name the file and not its content', async (t) => {
  const server = await listen((_, response) => answerJson(response, {}));
  const file = join(tmpdir(), `mcp-portage-token-${process.pid}-${Date.now()}`);
  writeFileSync(file, 'first\n');
  const client = createClient({ bearerTokenFile: file });
  t.teardown(() => rmSync(file, { force: true }));
  closeAfter(t, client, server);
  await new RecordedCall(client, server.url).finished();
  writeFileSync(file, 'second-token');
  await new RecordedCall(client, server.url).finished();
  t.deepEqual(
    server.received.map(({ headers }) => headers.authorization),
    ['Bearer first', 'Bearer second-token'],
  );
  writeFileSync(file, 'se cret\r\nX: y');
  const invalid = await new RecordedCall(client, server.url).finished();
  t.is(invalid.failure?.code, 'ERR_UPSTREAM_AUTH');
  t.true(invalid.failure?.message.includes(file));
  t.notRegex(invalid.failure?.message ?? '', /cret/);
  rmSync(file);
  t.regex((await new RecordedCall(client, server.url).finished()).failure?.message ?? '', /Cannot read.*ENOENT/);
  t.is(server.received.length, 2);
});

test('keeps the cookies of a session apart from those of others', async (t) => {
  const server = await listen((_, response) =>
    answerJson(response, {}, { 'Set-Cookie': 'route=node-3; Path=/; HttpOnly' }),
  );
  const client = createClient({ headers: new Map([['cookie', 'mine=1']]) });
  closeAfter(t, client, server);
  const [one, other] = [new SessionCookies(), new SessionCookies()];
  await new RecordedCall(client, server.url, { cookies: one }).finished();
  await new RecordedCall(client, server.url, { cookies: one }).finished();
  await new RecordedCall(client, server.url, { cookies: other }).finished();
  t.deepEqual(
    server.received.map(({ headers }) => headers.cookie),
    ['mine=1', 'mine=1; route=node-3', 'mine=1'],
  );
});

test('a header that cannot be sent fails its call without showing the value', async (t) => {
  const server = await listen((_, response) => answerJson(response, {}));
  const client = createClient();
  closeAfter(t, client, server);
  const { failure } = await new RecordedCall(client, server.url, { forwarded: { 'x-a': 'se\ncret' } }).finished();
  t.is(failure?.code, 'ERR_UPSTREAM_HTTP');
  t.notRegex(failure?.message ?? '', /cret/);
});
