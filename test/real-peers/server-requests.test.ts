import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  McpError,
} from '@modelcontextprotocol/sdk/types.js';
import test from 'ava';
import { waitFor } from '../support/wait-for.ts';
import { EVERYTHING } from './servers/commands.ts';
import { textOf } from './text-of.ts';
import { bridgeForEach, SESSION_VARIANTS, VARIANTS } from './variants.ts';

const bridgeOf = bridgeForEach(test, EVERYTHING);

/** A client whose model always says the same. */
const speaker = (sentence: string) => ({
  capabilities: { sampling: {} },
  handlers: (client: Client) =>
    client.setRequestHandler(CreateMessageRequestSchema, () => ({
      role: 'assistant' as const,
      model: 'fake',
      content: { type: 'text' as const, text: sentence },
    })),
});

for (const variant of VARIANTS) {
  test.serial(`${variant.title}: sampling reaches the client and its answer the server`, async (t) => {
    const prompts: unknown[] = [];
    const { client, close } = await variant.connect(bridgeOf(variant), {
      capabilities: { sampling: {} },
      handlers: (sdk) =>
        sdk.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
          prompts.push(params.messages[0]?.content);
          return { role: 'assistant', model: 'fake', content: { type: 'text', text: 'the model speaks' } };
        }),
    });
    t.teardown(close);
    const result = await client.callTool({ name: 'trigger-sampling-request', arguments: { prompt: 'be brief' } });
    t.is(prompts.length, 1);
    t.regex(JSON.stringify(prompts), /be brief/);
    t.regex(textOf(result), /the model speaks/);
  });

  test.serial(`${variant.title}: sampling asks the client whose call it is`, async (t) => {
    const first = await variant.connect(bridgeOf(variant), speaker('first speaks'));
    t.teardown(first.close);
    const second = await variant.connect(bridgeOf(variant), speaker('second speaks'));
    t.teardown(second.close);
    const call = { name: 'trigger-sampling-request', arguments: { prompt: 'who are you' } };
    for (const round of [1, 2]) {
      t.regex(textOf(await first.client.callTool(call)), /first speaks/, `round ${round}`);
      t.regex(textOf(await second.client.callTool(call)), /second speaks/, `round ${round}`);
    }
  });

  test.serial(`${variant.title}: elicitation reaches the client and its answer the server`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant), {
      capabilities: { elicitation: {} },
      handlers: (sdk) =>
        sdk.setRequestHandler(ElicitRequestSchema, () => ({
          action: 'accept',
          content: { name: 'Ada', check: true, integer: 7 },
        })),
    });
    t.teardown(close);
    const text = textOf(await client.callTool({ name: 'trigger-elicitation-request', arguments: {} }));
    t.regex(text, /Name: Ada/);
    t.regex(text, /Favorite Integer: 7/);
  });

  test.serial(`${variant.title}: a declined elicitation is told to the server as declined`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant), {
      capabilities: { elicitation: {} },
      handlers: (sdk) => sdk.setRequestHandler(ElicitRequestSchema, () => ({ action: 'decline' })),
    });
    t.teardown(close);
    t.regex(textOf(await client.callTool({ name: 'trigger-elicitation-request', arguments: {} })), /declined/);
  });
}

for (const variant of SESSION_VARIANTS) {
  test.serial(`${variant.title}: the server learns the client's roots and their changes`, async (t) => {
    let roots = [{ uri: 'file:///first', name: 'first root' }];
    const { client, close } = await variant.connect(bridgeOf(variant), {
      capabilities: { roots: { listChanged: true } },
      handlers: (sdk) => sdk.setRequestHandler(ListRootsRequestSchema, () => ({ roots })),
    });
    t.teardown(close);
    const listed = async () => textOf(await client.callTool({ name: 'get-roots-list', arguments: {} }));
    t.regex(await listed(), /first root/);
    roots = [{ uri: 'file:///second', name: 'second root' }];
    await client.sendRootsListChanged();
    await waitFor(async () => /second root/.test(await listed()), { message: 'the new root to be known' });
    t.pass();
  });

  test.serial(`${variant.title}: the data of error -32042 stays with it`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant), { capabilities: { elicitation: { url: {} } } });
    t.teardown(close);
    const call = { name: 'trigger-url-elicitation', arguments: { url: 'https://example.com/', errorPath: true } };
    const error = await t.throwsAsync(client.callTool(call), { instanceOf: McpError });
    t.is(error?.code, -32042);
    t.like(error?.data, { elicitations: [{ mode: 'url' }] });
  });

  test.serial(`${variant.title}: a client that can do less is offered less`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant));
    t.teardown(close);
    const { tools } = await client.listTools();
    t.false(tools.some((tool) => tool.name === 'trigger-sampling-request'));
  });
}
