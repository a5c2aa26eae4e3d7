import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import test from 'ava';
import { EVERYTHING } from './servers/commands.ts';
import { textOf } from './text-of.ts';
import { bridgeForEach, VARIANTS } from './variants.ts';

const bridgeOf = bridgeForEach(test, EVERYTHING);

const tokenOf = (progress: object): unknown => Reflect.get(progress, 'progressToken');

for (const variant of VARIANTS) {
  test.serial(`${variant.title}: the handshake shows the server itself`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant));
    t.teardown(close);
    t.is(client.getServerVersion()?.name, 'mcp-servers/everything');
    t.true((client.getInstructions() ?? '').length > 0);
    t.true(client.getServerCapabilities()?.resources?.subscribe);
  });

  test.serial(`${variant.title}: lists and calls tools`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant));
    t.teardown(close);
    const { tools } = await client.listTools();
    t.true(tools.some((tool) => tool.name === 'echo'));
    const sum = await client.callTool({ name: 'get-sum', arguments: { a: 2, b: 40 } });
    t.regex(textOf(sum), /\b42\b/);
    const structured = await client.callTool({ name: 'get-structured-content', arguments: { location: 'New York' } });
    t.deepEqual(Object.keys(structured.structuredContent ?? {}).sort(), ['conditions', 'humidity', 'temperature']);
  });

  test.serial(`${variant.title}: text outside ASCII arrives unharmed`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant));
    t.teardown(close);
    const message = 'naïve 日本語 🦊👩‍👩‍👧 \u2028\u2029\u0085 \u0000 \ufeff "\\" \r\n\t end';
    t.is(textOf(await client.callTool({ name: 'echo', arguments: { message } })), `Echo: ${message}`);
  });

  test.serial(`${variant.title}: four megabytes pass in both directions`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant));
    t.teardown(close);
    const message = 'é0123456789abcd\n'.repeat((4 * 1024 * 1024) / 16);
    const echoed = textOf(await client.callTool({ name: 'echo', arguments: { message } }));
    // Not t.is: a difference would print both.
    t.true(echoed === `Echo: ${message}`);
  });

  test.serial(`${variant.title}: each of fifty concurrent calls gets its own answer`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant));
    t.teardown(close);
    const messages = Array.from({ length: 50 }, (_, index) => `call ${index}`);
    const answers = await Promise.all(
      messages.map((message) => client.callTool({ name: 'echo', arguments: { message } })),
    );
    t.deepEqual(
      answers.map(textOf),
      messages.map((message) => `Echo: ${message}`),
    );
  });

  test.serial(`${variant.title}: progress arrives in order at the call it belongs to`, async (t) => {
    const { client, progress, close } = await variant.connect(bridgeOf(variant));
    t.teardown(close);
    const run = async (steps: number) => {
      const call = { name: 'trigger-long-running-operation', arguments: { duration: 0.4, steps } };
      await client.callTool(call, undefined, { onprogress: () => undefined });
      const own = progress.filter(({ total }) => total === steps);
      return { tokens: new Set(own.map(tokenOf)).size, steps: own.map((step) => step.progress) };
    };
    const outcomes = await Promise.all([run(4), run(5)]);
    t.deepEqual(outcomes, [
      { tokens: 1, steps: [1, 2, 3, 4] },
      { tokens: 1, steps: [1, 2, 3, 4, 5] },
    ]);
    t.is(new Set(progress.map(tokenOf)).size, 2);
  });

  test.serial(`${variant.title}: resources, prompts and completions pass`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant));
    t.teardown(close);
    const uri = 'demo://resource/dynamic/text/7';
    t.is((await client.readResource({ uri })).contents[0]?.uri, uri);
    t.true((await client.listResources()).resources.length > 0);
    t.true((await client.listResourceTemplates()).resourceTemplates.length > 0);

    t.true((await client.listPrompts()).prompts.some((prompt) => prompt.name === 'args-prompt'));
    const prompt = await client.getPrompt({ name: 'args-prompt', arguments: { city: 'Reykjavík' } });
    t.deepEqual(prompt.messages[0]?.content, { type: 'text', text: "What's weather in Reykjavík?" });

    const { completion } = await client.complete({
      ref: { type: 'ref/prompt', name: 'completable-prompt' },
      argument: { name: 'name', value: 'A' },
      context: { arguments: { department: 'Engineering' } },
    });
    t.deepEqual(completion.values, ['Alice']);
  });

  test.serial(`${variant.title}: an error of the server stays the error of the server`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant));
    t.teardown(close);
    const error = await t.throwsAsync(client.getPrompt({ name: 'no-such-prompt' }), { instanceOf: McpError });
    t.is(error?.code, ErrorCode.InvalidParams);
    t.regex(error?.message ?? '', /no-such-prompt/);
  });

  test.serial(`${variant.title}: answers ping`, async (t) => {
    const { client, close } = await variant.connect(bridgeOf(variant));
    t.teardown(close);
    t.deepEqual(await client.ping(), {});
  });
}
