import type { ServerResponse } from 'node:http';
import test from 'ava';
import { acceptOld, listenOld, type Posted } from '../../fixtures/http-servers/old-server.ts';
import { event } from '../../fixtures/http-servers/scripted.ts';
import { waitFor } from '../../support/wait-for.ts';
import { dialHttpSse } from '../../upstream/remote-dialers.ts';
import { Conversations } from './modern-conversations.ts';

test('a call to a server of 2024-11-05 is answered on its stream; a withdrawn one is withdrawn there', async (t) => {
  const calls: Posted[] = [];
  const say = (stream: ServerResponse, message: object) =>
    stream.write(`event: message\n${event({ jsonrpc: '2.0', ...message })}`);
  const { server, streams, posted } = await listenOld({
    post: (asked, response, stream) => {
      if (asked.message.method !== 'tools/call') return acceptOld(asked, response, stream);
      response.writeHead(202).end('Accepted');
      calls.push(asked);
    },
  });
  t.teardown(() => server.close());
  const client = new Conversations(t, dialHttpSse(server.url));
  const answered = client.open({ capabilities: {} });
  const id = answered.start('tools/call', { name: 'x', arguments: { a: 1 } });
  const call = await waitFor(() => calls[0]);
  t.deepEqual(call.message.params as object, { name: 'x', arguments: { a: 1 } });
  const withdrawn = client.open({ capabilities: {} });
  const other = withdrawn.start('tools/call', { name: 'y' });
  const second = await waitFor(() => calls[1]);
  withdrawn.cancel(other);
  const canceled = await waitFor(() => posted.find(({ message }) => message.method === 'notifications/cancelled'));
  t.like(canceled.message.params, { requestId: second.message.id });
  const [stream] = streams;
  if (stream === undefined) return t.fail('the server has no stream');
  say(stream, { id: second.message.id, result: { content: [] } });
  say(stream, { id: call.message.id, result: { content: [{ type: 'text', text: 'old' }] } });
  t.like((await answered.answer(id)).result, { resultType: 'complete', content: [{ text: 'old' }] });
  t.deepEqual(withdrawn.received, [], 'a late answer goes nowhere');
  t.is(streams.length, 1, 'both calls use one session');
});

test('discover says of a server of 2024-11-05 what it declared', async (t) => {
  const { server } = await listenOld();
  t.teardown(() => server.close());
  const { result } = await new Conversations(t, dialHttpSse(server.url)).request('server/discover');
  t.like(result, { resultType: 'complete', supportedVersions: ['2026-07-28'] });
  t.deepEqual(result?.capabilities, {});
});
