import { recordOf, seenByServer } from '../cell.ts';
import type { MatrixClient } from '../matrix-client.ts';
import type { Scenario } from '../scenario.ts';
import { bigText, INSTRUCTIONS } from '../servers/content.js';

const MEBIBYTE = 1024 * 1024;

/** What encoders, line splitters and event parsers get wrong. */
const AWKWARD = 'naïve 日本語 🦊👩‍👩‍👧 \u2028\u2029\u0085 \u0000 \ufeff "\\" \r\n\t data: id: \n\n \ud800 end';

export const CALLS: readonly Scenario[] = [
  {
    title: 'the handshake shows the server itself',
    async run(t, cell) {
      const client = await cell.main();
      t.like(client.serverInfo(), { name: 'matrix-legacy', version: '1.2.3', instructions: INSTRUCTIONS });
      t.like(client.serverInfo().capabilities, {
        resources: { subscribe: true, listChanged: true },
        experimental: { 'example.com/matrix': { yes: true } },
      });
    },
  },
  {
    title: 'the handshake shows the client itself',
    async run(t, cell) {
      const client = await cell.main();
      const { entries } = await recordOf(client);
      const initialize = entries.find(({ value }) => methodOf(value) === 'initialize');
      t.like(initialize?.value, {
        params: {
          clientInfo: { name: 'main', version: '4.5.6' },
          capabilities: { sampling: {}, roots: { listChanged: true }, experimental: { 'example.com/x': {} } },
        },
      });
    },
  },
  {
    title: 'a tool is called and answers with text, structured content and _meta',
    async run(t, cell) {
      const client = await cell.main();
      const { text, structured } = await client.callTool('sum', { a: 0.1, b: 41.9 });
      t.is(text, '42');
      t.deepEqual(structured, { sum: 42, exact: true });
      const meta = { 'example.com/trace': ['a', { b: null }] };
      const echoed = await client.callTool('echo', { value: 'x' }, { meta });
      t.deepEqual(echoed.meta, { 'example.com/heard': meta });
    },
  },
  {
    title: 'a failed tool stays a result, not an error',
    async run(t, cell) {
      const client = await cell.main();
      t.like(await client.callTool('refuse', { why: 'the model should know' }), {
        text: 'the model should know',
        isError: true,
      });
    },
  },
  {
    title: 'every character arrives unharmed, both ways',
    async run(t, cell) {
      const client = await cell.main();
      t.is((await client.callTool('echo', { value: AWKWARD })).text, AWKWARD);
    },
  },
  {
    title: 'a result of eight mebibytes arrives whole',
    async run(t, cell) {
      const client = await cell.main();
      const { text } = await client.callTool('big', { bytes: 8 * MEBIBYTE });
      // Not t.is: a difference would print both.
      t.true(text === bigText(8 * MEBIBYTE));
    },
  },
  {
    title: 'arguments of three mebibytes arrive whole',
    async run(t, cell) {
      const client = await cell.main();
      const value = bigText(3 * MEBIBYTE);
      t.true((await client.callTool('echo', { value })).text === value);
    },
  },
  {
    title: 'an error of the server keeps code, message and data',
    async run(t, cell) {
      const client = await cell.main();
      const data = { hints: ['a', { b: 1e-7 }], text: 'ü' };
      await rejects(
        t,
        client.callTool('fail', { code: -32050, message: 'señor, no', data }),
        -32050,
        /señor, no/,
        data,
      );
      await rejects(t, client.callTool('fail', { code: 4242, message: 'bare' }), 4242, /bare/, undefined);
      await rejects(t, client.callTool('no-such-tool'), -32602, /no tool no-such-tool/, undefined);
      const uri = 'test://nowhere';
      await rejects(t, client.readResource(uri), -32002, /no such resource/, { uri });
    },
  },
  {
    title: 'methods nobody knows pass with their _meta, and so does what is answered',
    async run(t, cell) {
      const client = await cell.main();
      const params = { deep: [{ er: null }, 1e-7], _meta: { 'example.com/trace': 'abc' } };
      t.deepEqual(await client.request('custom/do', params), {
        method: 'custom/do',
        params,
        _meta: { 'example.com/custom': true },
      });
      const method = 'no/such/method';
      await rejects(t, client.request(method), -32601, /no method/, { method });
    },
  },
  {
    title: 'a notification nobody knows reaches the server',
    async run(t, cell) {
      const client = await cell.main();
      const params = { from: cell.title, _meta: { 'example.com/n': 1 } };
      await client.notify('notifications/custom', params);
      const isIt = (value: unknown) => methodOf(value) === 'notifications/custom';
      const { value } = await seenByServer(client, 'the notification', (entry) => isIt(entry.value));
      t.like(value, { params });
    },
  },
  {
    title: 'each of fifty concurrent calls gets its own answer',
    async run(t, cell) {
      const client = await cell.main();
      const values = Array.from({ length: 50 }, (_, index) => `value ${index}`);
      // The first asked is the last answered.
      const answers = await Promise.all(
        values.map((value, index) => client.callTool('later', { value, ms: 5 * (values.length - index) })),
      );
      t.deepEqual(
        answers.map(({ text }) => text),
        values,
      );
    },
  },
  {
    title: 'ping is answered',
    async run(t, cell) {
      const client = await cell.main();
      await t.notThrowsAsync(client.ping());
    },
  },
];

export const methodOf = (message: unknown): unknown => (message as { readonly method?: unknown } | undefined)?.method;

async function rejects(
  t: Parameters<Scenario['run']>[0],
  call: ReturnType<MatrixClient['request']> | Promise<unknown>,
  code: number,
  message: RegExp,
  data: unknown,
): Promise<void> {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  t.like(error, { code });
  t.regex(String(error), message);
  t.deepEqual((error as { readonly data?: unknown } | undefined)?.data, data);
}
