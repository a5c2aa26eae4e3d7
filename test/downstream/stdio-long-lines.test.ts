/** Lines that a client on stdin and stdout would end its connection at. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { STDIO_DEFAULT_MAX_BUFFER_SIZE } from '@modelcontextprotocol/sdk/shared/stdio.js';
import test from 'ava';
import { MAX_LINE_BYTES } from '../../src/downstream/stdio/endpoint.ts';
import { answerJson } from '../fixtures/http-servers/listen.ts';
import { listenScripted } from '../fixtures/http-servers/scripted.ts';
import { BRIDGE_COMMAND } from '../support/bridge.ts';
import { waitFor } from '../support/wait-for.ts';
import { modern, openEndpoint } from './stdio-endpoint.ts';

const LIMIT = 2000;
/** An answer to 1 whose line has so many bytes, with its break. */
const answerOf = (lineBytes: number): string => {
  const [before, after] = ['{"jsonrpc":"2.0","id":1,"result":{"text":"', '"}}'];
  return `${before}${'x'.repeat(lineBytes - before.length - after.length - 1)}${after}`;
};

test('the default is what the official SDK takes', (t) => {
  t.is(MAX_LINE_BYTES, STDIO_DEFAULT_MAX_BUFFER_SIZE);
});

for (const era of ['legacy', 'modern'] as const) {
  test(`an answer of the limit with its line break passes, a longer one is an error of its ${era} call alone`, async (t) => {
    const { server, say, next, nextLine, handshake, entries } = openEndpoint(t, { maxSentBytes: LIMIT });
    if (era === 'legacy') await handshake();
    const call = () => say(era === 'legacy' ? { id: 1, method: 'tools/call' } : modern(1, 'tools/call', { name: 'a' }));
    call();
    await server.latest.next('tools/call');
    server.latest.say(answerOf(LIMIT));
    t.is((await nextLine()).length, LIMIT - 1);
    call();
    await server.latest.next('tools/call');
    server.latest.say(answerOf(LIMIT + 1));
    const { error } = await next();
    t.like(error, { data: { bridge: { reason: 'ERR_UPSTREAM_TOO_LARGE' } } });
    t.regex(error?.message ?? '', /answer of 2001 bytes .* 2000 at most.*--max-message-bytes/);
    t.true(entries.some(({ code }) => code === 'ERR_UPSTREAM_TOO_LARGE'));
    say(era === 'legacy' ? { id: 2, method: 'ping' } : modern(2, 'tools/list'));
    await server.latest.next(era === 'legacy' ? 'ping' : 'tools/list');
    server.latest.say('{"jsonrpc":"2.0","id":2,"result":{}}');
    t.like(await next(), { id: 2, result: {} });
  });
}

test('a question that is too long is refused to the server, a notification is dropped', async (t) => {
  const { server, say, next, handshake } = openEndpoint(t, { maxSentBytes: LIMIT });
  await handshake();
  const text = 'x'.repeat(LIMIT);
  server.latest.notify('notifications/message', { level: 'info', data: text });
  server.latest.ask('q', 'sampling/createMessage', { text });
  await waitFor(() => server.latest.received.some(({ id }) => id === 'q'));
  t.like(server.latest.received.at(-1)?.json(), {
    id: 'q',
    error: { data: { bridge: { reason: 'ERR_UPSTREAM_TOO_LARGE' } } },
  });
  say({ id: 1, method: 'ping' });
  await server.latest.next('ping');
  server.latest.say('{"jsonrpc":"2.0","id":1,"result":{}}');
  t.like(await next(), { id: 1, result: {} });
});

test('an SDK client goes on after an answer of 12 MiB, which is an error of its call', async (t) => {
  const server = await listenScripted({
    'tools/call': ({ message }, response) => {
      const data = 'A'.repeat(message.params?.name === 'big' ? 12 * 1024 * 1024 : 4);
      const result = { content: [{ type: 'image', mimeType: 'image/png', data }] };
      answerJson(response, { jsonrpc: '2.0', id: message.id, result });
    },
  });
  const client = new Client({ name: 'sdk', version: '1' });
  let isClosed = false;
  client.onclose = () => {
    isClosed = true;
  };
  const [command, ...args] = [...BRIDGE_COMMAND, 'connect', server.url.href];
  await client.connect(new StdioClientTransport({ command, args, stderr: 'ignore' }));
  t.teardown(async () => {
    await client.close();
    await server.close();
  });
  await t.throwsAsync(client.callTool({ name: 'big' }), { message: /answer of 125\d+ bytes .* 10485760 at most/ });
  const { content } = await client.callTool({ name: 'small' });
  t.like(content, [{ data: 'AAAA' }]);
  t.false(isClosed);
});
