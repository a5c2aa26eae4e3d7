import test from 'ava';
import { answerJson, listen } from '../fixtures/http-servers/listen.ts';
import { closeAfter, createClient, RecordedCall } from './recorded-call.ts';

for (const status of [307, 308]) {
  test(`follows a redirect with ${status} within the origin with method and body`, async (t) => {
    const server = await listen(({ path }, response) => {
      if (path === '/mcp') response.writeHead(status, { Location: '/v2/mcp' }).end('moved');
      else answerJson(response, {});
    });
    const client = createClient();
    closeAfter(t, client, server);
    t.is((await new RecordedCall(client, server.url, { body: Buffer.from('hello') }).finished()).head?.status, 200);
    const { method, path, body } = server.received[1] ?? {};
    t.deepEqual({ method, path, body }, { method: 'POST', path: '/v2/mcp', body: 'hello' });
  });
}

test('follows as many redirects as official clients do', async (t) => {
  const server = await listen(({ path }, response) => {
    const step = Number(path.slice(1));
    if (step < 5) response.writeHead(307, { Location: `/${step + 1}` }).end();
    else answerJson(response, {});
  });
  const client = createClient();
  closeAfter(t, client, server);
  t.is((await new RecordedCall(client, new URL('/0', server.url)).finished()).head?.status, 200);
});

for (const status of [301, 302, 303]) {
  test(`a message answered with ${status} is not sent again, not even to the same path with a slash`, async (t) => {
    const server = await listen(({ path }, response) => {
      if (path === '/mcp') response.writeHead(status, { Location: '/mcp/?session=1' }).end();
      else answerJson(response, {});
    });
    const client = createClient();
    closeAfter(t, client, server);
    const { failure } = await new RecordedCall(client, server.url).finished();
    t.is(failure?.code, 'ERR_UPSTREAM_HTTP');
    t.deepEqual(failure?.data, { status });
    t.is(
      failure?.message,
      `The server at ${server.url} answered ${status}: a redirect to ${server.url}/, with which a POST is not sent again; use that URL.`,
    );
    t.is(server.received.length, 1);
  });
}

test('a redirect of a message to another origin is named by the origin alone, whatever its status', async (t) => {
  const other = await listen((_, response) => answerJson(response, {}));
  const server = await listen(({ path }, response) => {
    const target = new URL('/inner/page?token=secret', other.url);
    response.writeHead(Number(path.slice(1)), { Location: target.href }).end();
  });
  const client = createClient({ headers: new Map([['authorization', 'Bearer secret']]) });
  closeAfter(t, client, server, other);
  for (const status of [301, 302, 303, 307, 308]) {
    const { failure } = await new RecordedCall(client, new URL(`/${status}`, server.url)).finished();
    const said = `answered ${status}: a redirect to another origin, ${other.url.origin}; if the server has moved, use its URL there.`;
    t.true(failure?.message.endsWith(said), failure?.message);
  }
  t.is(other.received.length, 0);
});

test('refuses redirects to another origin, to another path without the method, and round in circles', async (t) => {
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
  t.regex(messages[0] ?? '', /another origin, http:\/\/127\.0\.0\.1:\d+;/);
  t.regex(messages[1] ?? '', /with which a POST is not sent again/);
  t.regex(messages[2] ?? '', /more than 5 redirects/);
  t.is(other.received.length, 0);
});
