import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import test from 'ava';
import { connectSse, connectStreamable, type SdkClient } from '../support/sdk-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { ask, received } from './recorded.ts';
import { RECORDER } from './servers/commands.ts';
import { bridgeForEach, ISOLATIONS, SESSION_VARIANTS, SHARED_VARIANTS, VARIANTS, type Variant } from './variants.ts';

// SDK clients count their request ids from 0 and use them as progress tokens: any two clients collide in both.

const bridgeOf = bridgeForEach(test, RECORDER);

/** Calls with progress, and what came of it: of a client that has made no other such call. */
async function stepThrough({ client, progress }: SdkClient, label: string) {
  const params = { steps: 5, everyMs: 20, label };
  const result = await ask(client, 'test/steps', params, { onprogress: () => undefined });
  return { label: result.label, progress: progress.map(({ message }) => message) };
}

const expected = (label: string) => ({ label, progress: Array<string>(5).fill(label) });

for (const variant of VARIANTS) {
  test.serial(`${variant.title}: clients with the same ids and tokens get only what is theirs`, async (t) => {
    const labels = ['a', 'b', 'c', 'd'];
    const clients = await Promise.all(labels.map(() => variant.connect(bridgeOf(variant))));
    t.teardown(async () => void (await Promise.all(clients.map(({ close }) => close()))));
    const outcomes = await Promise.all(clients.map((client, index) => stepThrough(client, labels[index] ?? '')));
    t.deepEqual(outcomes, labels.map(expected));
    t.deepEqual(
      clients.map(({ notifications }) => notifications),
      [[], [], [], []],
    );
  });

  test.serial(`${variant.title}: canceling a call leaves the same id of another client alone`, async (t) => {
    const one = await variant.connect(bridgeOf(variant));
    t.teardown(one.close);
    const other = await variant.connect(bridgeOf(variant));
    t.teardown(other.close);
    const abort = new AbortController();
    const marker = `canceled by ${variant.title}`;
    const held = ask(one.client, 'test/hold', { marker }, { signal: abort.signal });
    const running = stepThrough(other, 'unharmed');
    await waitFor(async () => (await received(one.client)).some(({ params }) => params?.marker === marker));
    abort.abort();
    await t.throwsAsync(held);
    t.deepEqual(await running, expected('unharmed'));
  });
}

for (const variant of SHARED_VARIANTS) {
  test.serial(`${variant.title}: one server sees different ids and tokens for equal ones`, async (t) => {
    const clients = await Promise.all([variant.connect(bridgeOf(variant)), variant.connect(bridgeOf(variant))]);
    t.teardown(async () => void (await Promise.all(clients.map(({ close }) => close()))));
    const label = `tokens of ${variant.title}`;
    await Promise.all(clients.map((client) => stepThrough(client, label)));
    const calls = (await received(clients[0].client)).filter(({ params }) => params?.label === label);
    t.is(calls.length, 2);
    t.is(new Set(calls.map(({ id }) => id)).size, 2);
    t.is(new Set(calls.map(({ params }) => params?._meta?.progressToken)).size, 2);
  });

  test.serial(`${variant.title}: the server is initialized once for all`, async (t) => {
    const one = await variant.connect(bridgeOf(variant));
    t.teardown(one.close);
    const other = await variant.connect(bridgeOf(variant));
    t.teardown(other.close);
    const methods = (await received(other.client)).map(({ method }) => method);
    t.is(methods.filter((method) => method === 'initialize').length, 1);
    t.is(methods.filter((method) => method === 'notifications/initialized').length, 1);
  });
}

/** A sampling request that can be told from others. */
const sampling = (text: string) => ({
  method: 'sampling/createMessage',
  params: { maxTokens: 1, messages: [{ role: 'user', content: { type: 'text', text } }] },
});

/** A client that notes what it is asked and answers when allowed to. */
async function connectNoting(variant: Variant, answerWhen: Promise<unknown>) {
  const asked: unknown[] = [];
  const client = await variant.connect(bridgeOf(variant), {
    capabilities: { sampling: {} },
    handlers: (sdk) =>
      sdk.setRequestHandler(CreateMessageRequestSchema, async ({ params }) => {
        asked.push(params.messages[0]?.content);
        await answerWhen;
        return { role: 'assistant', model: 'fake', content: { type: 'text', text: 'answered' } };
      }),
  });
  return { ...client, asked };
}

for (const variant of SHARED_VARIANTS) {
  test.serial(`${variant.title}: a second question of one call is not shown to another caller`, async (t) => {
    let release: (() => void) | undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const asking = await connectNoting(variant, released);
    t.teardown(asking.close);
    const other = await connectNoting(variant, Promise.resolve());
    t.teardown(other.close);

    // The calls that the tests above canceled may still be asking: for some seconds nobody is asked in their stead.
    const early = { name: 'test/ask', arguments: { request: sampling('early') } };
    await waitFor(async () => {
      await ask(other.client, 'tools/call', early);
      return other.asked.length > 0;
    });
    other.asked.length = 0;
    const requests = [sampling('first secret'), sampling('second secret')];
    const call = ask(asking.client, 'tools/call', { name: 'test/askTwice', arguments: { requests } });
    await waitFor(() => asking.asked.length === 1, { message: 'the first question' });
    const abort = new AbortController();
    const marker = `bystander of ${variant.title}`;
    const held = { name: 'test/hold', arguments: {}, marker };
    const holding = t.throwsAsync(ask(other.client, 'tools/call', held, { signal: abort.signal }));
    await waitFor(async () => (await received(other.client)).some(({ params }) => params?.marker === marker));

    const refusals = async () => (await received(other.client)).filter(({ error }) => error !== undefined).length;
    const before = await refusals();
    await other.client.notification({ method: 'notifications/test/goOn' });
    // Put to its caller or refused: either will do. Only then may the first be answered, or it would not be open.
    await waitFor(async () => asking.asked.length + other.asked.length === 2 || (await refusals()) > before, {
      message: 'the second question to be put or refused',
    });
    release?.();
    await call;
    abort.abort();
    await holding;
    t.deepEqual(other.asked, []);
  });
}

for (const variant of SESSION_VARIANTS) {
  test.serial(`${variant.title}: every session has a server of its own`, async (t) => {
    const one = await variant.connect(bridgeOf(variant));
    t.teardown(one.close);
    const other = await variant.connect(bridgeOf(variant));
    t.teardown(other.close);
    const [first, second] = await Promise.all([ask(one.client, 'test/pid'), ask(other.client, 'test/pid')]);
    t.not(first.pid, second.pid);
  });
}

for (const isolation of ISOLATIONS) {
  test.serial(`--isolation ${isolation}: an SSE and a Streamable HTTP client are served side by side`, async (t) => {
    const bridge = bridgeOf({ isolation });
    const old = await connectSse(bridge.sseUrl);
    t.teardown(old.close);
    const current = await connectStreamable(bridge.url);
    t.teardown(current.close);
    const outcomes = await Promise.all([stepThrough(old, 'old'), stepThrough(current, 'current')]);
    t.deepEqual(outcomes, [expected('old'), expected('current')]);
  });
}
