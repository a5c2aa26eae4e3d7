import { McpError } from '@modelcontextprotocol/sdk/types.js';
import test from 'ava';
import { z } from 'zod';
import { waitFor } from '../support/wait-for.ts';
import { ask, type RecordedMessage, received } from './recorded.ts';
import { RECORDER } from './servers/commands.ts';
import { bridgeForEach, SESSION_VARIANTS, VARIANTS } from './variants.ts';

const bridgeOf = bridgeForEach(test, RECORDER);

const CustomRequest = z.object({ method: z.literal('custom/ask'), params: z.looseObject({}) });

for (const variant of VARIANTS) {
  test.serial(`${variant.title}: a method nobody knows reaches the server with its _meta`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant));
    t.teardown(close);
    const params = { deep: [{ er: null }, 1e-7], _meta: { 'example.com/trace': 'abc' } };
    const { request } = await ask(client, 'test/echo', params);
    t.like(request, { jsonrpc: '2.0', method: 'test/echo' });
    t.deepEqual((request as RecordedMessage).params, params);
  });

  test.serial(`${variant.title}: a notification nobody knows reaches the server`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant));
    t.teardown(close);
    const notification = { method: 'notifications/custom', params: { from: variant.title } };
    await client.notification(notification);
    await waitFor(async () => (await received(client)).some(({ params }) => params?.from === variant.title), {
      message: 'the notification to be received',
    });
    t.pass();
  });

  test.serial(`${variant.title}: code, message and data of an error pass`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant));
    t.teardown(close);
    const wanted = { code: 4242, message: 'señor, no', data: { hints: ['a', { b: 1 }] } };
    const error = await t.throwsAsync(ask(client, 'test/error', { error: wanted }), { instanceOf: McpError });
    t.is(error?.code, wanted.code);
    t.regex(error?.message ?? '', /señor, no/);
    t.deepEqual(error?.data, wanted.data);
    const unknown = await t.throwsAsync(ask(client, 'no/such'), { instanceOf: McpError });
    t.like(unknown, { code: -32601, data: { method: 'no/such' } });
  });

  test.serial(`${variant.title}: a request nobody knows reaches the client, and its answer the server`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant), {
      handlers: (sdk) => sdk.setRequestHandler(CustomRequest, ({ params }) => ({ heard: params })),
    });
    t.teardown(close);
    const request = { method: 'custom/ask', params: { question: '¿qué?' } };
    const { answer } = await ask(client, 'test/ask', { request });
    t.deepEqual(answer, { jsonrpc: '2.0', result: { heard: { question: '¿qué?' } } });
  });

  test.serial(`${variant.title}: an error of the client reaches the server`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant), {
      handlers: (sdk) =>
        sdk.setRequestHandler(CustomRequest, () => {
          throw new McpError(-31999, 'not now', { retry: false });
        }),
    });
    t.teardown(close);
    const { answer } = await ask(client, 'test/ask', { request: { method: 'custom/ask', params: {} } });
    t.like((answer as RecordedMessage).error, { code: -31999, data: { retry: false } });
  });
}

// Last, for a call that was canceled and not answered keeps others on a shared server from being asked for some seconds.
for (const variant of VARIANTS) {
  test.serial(`${variant.title}: canceling a call tells the server which one`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant));
    t.teardown(close);
    const marker = `held by ${variant.title}`;
    const abort = new AbortController();
    const held = ask(client, 'test/hold', { marker }, { signal: abort.signal });
    const request = await waitFor(
      async () => (await received(client)).find(({ params }) => params?.marker === marker),
      { message: 'the call to be received' },
    );
    abort.abort('changed my mind');
    await t.throwsAsync(held);
    const canceled = await waitFor(
      async () =>
        (await received(client)).find(
          ({ method, params }) => method === 'notifications/cancelled' && params?.requestId === request.id,
        ),
      { message: 'the cancellation to be received' },
    );
    t.is(canceled.params?.reason, 'changed my mind');
  });
}

for (const variant of SESSION_VARIANTS) {
  test.serial(`${variant.title}: the server sees the client's own handshake and ids`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant), {
      name: 'somebody',
      capabilities: { sampling: {}, experimental: { 'example.com/x': { on: true } } },
    });
    t.teardown(close);
    const [initialize, initialized, call] = await received(client);
    t.like(initialize?.params, {
      clientInfo: { name: 'somebody', version: '1.0.0' },
      capabilities: { sampling: {}, experimental: { 'example.com/x': { on: true } } },
    });
    t.is(initialized?.method, 'notifications/initialized');
    t.deepEqual([initialize?.id, call?.id], [0, 1]);
  });

  test.serial(`${variant.title}: a notification nobody knows reaches the client`, async (t) => {
    const { client, notifications, close } = await variant.connect(bridgeOf(variant));
    t.teardown(close);
    const during = { method: 'notifications/custom', params: { when: 'during a call' } };
    const later = { method: 'notifications/custom', params: { when: 'after it' } };
    await ask(client, 'test/notify', { notification: during });
    await ask(client, 'test/notifyLater', { notification: later, afterMs: 100 });
    await waitFor(() => notifications.length === 2, { message: 'both notifications' });
    t.like(notifications[0], during);
    t.like(notifications[1], later);
  });
}
