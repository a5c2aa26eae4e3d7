/** Modern clients over HTTP of one process of a modern server: only the transport is another. */
import test, { type ExecutionContext } from 'ava';
import { headersOf, listen, modern, postModern } from '../../../downstream/streamable-stateless/modern-posts.ts';
import { callHttp } from '../../../support/http-call.ts';
import { startHttpHarness } from '../../../support/http-harness.ts';
import { waitFor } from '../../../support/wait-for.ts';
import type { Message } from '../legacy/shared-bridge.ts';
import { acknowledgment, change, ModernBridge, subscriptionOf } from './modern-bridge.ts';

async function startHarness(t: ExecutionContext) {
  const bridge = new ModernBridge();
  const harness = await startHttpHarness(t, { modernDialer: bridge.server });
  /** The texts of what the process has been sent, once there are so many. */
  const heard = async (count: number): Promise<readonly string[]> => {
    await waitFor(() => bridge.dialer.dialed.length > 0 && bridge.link.sent.length >= count);
    return bridge.link.take().map(({ frame }) => frame.bytes.toString());
  };
  return { bridge, harness, heard };
}

const parse = (text: string | undefined): Message => JSON.parse(text ?? '');

test('what a server asks for and its state pass over HTTP byte for byte, both ways', async (t) => {
  const { bridge, harness, heard } = await startHarness(t);
  const state = '"\\u0061\\/ opaque é \\ud83d\\ude00"';
  const call = modern('mine', 'tools/call', { name: 'ask', arguments: {} });
  const pending = postModern(harness, call);
  const { id } = parse((await heard(1))[0]);
  const result = `{"resultType":"input_required", "inputRequests":{"who":{"method":"roots/list"}},"requestState" : ${state}}`;
  bridge.says(`{"jsonrpc":"2.0","id":${id},"result":${result}}`);
  t.is(await (await pending).text(), `{"jsonrpc":"2.0","id":"mine","result":${result}}`);

  const body = JSON.stringify(call).replace(
    '"arguments":{}',
    `"arguments":{},"inputResponses":{"who":{"roots":[ ]}},"requestState":${state}`,
  );
  const again = callHttp({ port: harness.port, method: 'POST', headers: headersOf(call), body });
  const [retry] = await heard(1);
  t.is(retry, body.replace('"id":"mine"', `"id":${parse(retry).id}`));
  t.not(parse(retry).id, id);
  bridge.says({ id: parse(retry).id, result: { resultType: 'complete', content: [] } });
  t.like(await (await again).json(), { id: 'mine', result: { resultType: 'complete' } });
});

test('a client that leaves its call has it canceled under the id it has at the server', async (t) => {
  const { harness, heard } = await startHarness(t);
  const abort = new AbortController();
  const left = t.throwsAsync(postModern(harness, modern('mine', 'tools/call', { name: 'x' }), {}, abort.signal));
  const { id } = parse((await heard(1))[0]);
  abort.abort();
  await left;
  const canceled = parse((await heard(1))[0]);
  t.is(canceled.method, 'notifications/cancelled');
  t.is(canceled.params?.requestId, id);
});

test('two clients that listen under one id are two subscriptions at the server, each told of under its own', async (t) => {
  const { bridge, harness, heard } = await startHarness(t);
  const pending = [postModern(harness, listen(1)), postModern(harness, listen(1))];
  const ids = (await heard(2)).map((text) => parse(text).id);
  t.is(new Set(ids).size, 2);
  for (const id of ids) bridge.says(acknowledgment(id));
  const streams = await Promise.all(pending.map(async (answer) => (await answer).events()));
  for (const id of ids) bridge.says(change(id));
  for (const stream of streams) {
    const told = [await stream.message<Message>(), await stream.message<Message>()];
    t.deepEqual(
      told.map((message) => [message.method, subscriptionOf(message)]),
      [
        ['notifications/subscriptions/acknowledged', 1],
        ['notifications/tools/list_changed', 1],
      ],
    );
    t.deepEqual(stream.unread, []);
  }
});
