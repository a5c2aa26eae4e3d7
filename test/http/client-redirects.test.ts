import test from 'ava';
import { answerJson, listen } from '../fixtures/http-servers/listen.ts';
import { closeAfter, createClient, RecordedCall } from './recorded-call.ts';

test('follows a redirect within the origin with method and body', async (t) => {
  const server = await listen(({ path }, response) => {
    if (path === '/mcp') response.writeHead(308, { Location: '/v2/mcp' }).end('moved');
    else if (path === '/plain') response.writeHead(301, { Location: '/plain/' }).end();
    else answerJson(response, {});
  });
  const client = createClient();
  closeAfter(t, client, server);
  t.is((await new RecordedCall(client, server.url, { body: Buffer.from('hello') }).finished()).head?.status, 200);
  const { method, path, body } = server.received[1] ?? {};
  t.deepEqual({ method, path, body }, { method: 'POST', path: '/v2/mcp', body: 'hello' });
  await new RecordedCall(client, new URL('/plain', server.url), { body: Buffer.from('again') }).finished();
  t.is(server.received.at(-1)?.method, 'POST');
  t.is(server.received.at(-1)?.body, 'again');
});

test('SEC-02: refuses redirects to another origin, to another path without the method, and round in circles', async (t) => {
  const other = await listen((_, response) => answerJson(response, {}));
  const server = await listen(({ path }, response) => {
    const targets: Record<string, [number, string]> = {
      '/other': [307, `${other.url}?token=secret`],
      '/moved': [302, '/login'],
      '/circle': [307, '/circle'],
    };
    const [status, location] = targets[path] ?? [200, ''];
    response.writeHead(status, { Location: location }).end();
  });
  const client = createClient({ headers: new Map([['authorization', 'Bearer secret']]) });
  closeAfter(t, client, server, other);
  const messages = [];
  for (const path of ['/other', '/moved', '/circle']) {
    const { failure } = await new RecordedCall(client, new URL(path, server.url)).finished();
    t.is(failure?.code, 'ERR_UPSTREAM_HTTP');
    messages.push(failure?.message);
  }
  t.regex(messages[0] ?? '', /another origin, http:\/\/127\.0\.0\.1:\d+\/mcp;/);
  t.regex(messages[1] ?? '', /does not keep the method/);
  t.regex(messages[2] ?? '', /more than 3 redirects/);
  t.is(other.received.length, 0);
});
