import { type Cell, recordOf, seenByServer } from '../cell.ts';
import { HOST_EXTENSIONS, type TracedMessage } from '../matrix-client.ts';
import type { Scenario } from '../scenario.ts';
import { bigText, EXTENSIONS, INSTRUCTIONS } from '../servers/content.js';

const MEBIBYTE = 1024 * 1024;

/** What encoders, line splitters and event parsers get wrong. */
const AWKWARD = 'naïve 日本語 🦊👩‍👩‍👧 \u2028\u2029\u0085 \u0000 \ufeff "\\" \r\n\t data: id: \n\n \ud800 end';

export const CALLS: readonly Scenario[] = [
  {
    title: 'the client speaks the era it is there for',
    needs: ['handshake'],
    async run(t, cell) {
      t.is((await cell.main()).era, cell.clientEra);
    },
  },
  {
    title: 'the handshake shows the server itself',
    needs: ['handshake'],
    async run(t, cell) {
      const client = await cell.main();
      const name = `matrix-${cell.serverEra}`;
      t.like(client.serverInfo(), { name, version: '1.2.3', instructions: INSTRUCTIONS });
      t.like(client.serverInfo().capabilities, {
        resources: { subscribe: true, listChanged: true },
        experimental: { 'example.com/matrix': { yes: true } },
      });
    },
  },
  {
    title: 'each side learns the extensions of the other, with all their settings',
    needs: ['extensions'],
    async run(t, cell) {
      const { capabilities } = (await cell.main()).serverInfo() as Introduction;
      t.deepEqual(capabilities?.extensions, EXTENSIONS);
      t.deepEqual((await introductionOf(cell)).capabilities?.extensions, HOST_EXTENSIONS);
    },
  },
  {
    title: 'the server learns what the client can be asked for',
    needs: ['clientCapabilities'],
    async run(t, cell) {
      const { capabilities } = await introductionOf(cell);
      for (const capability of ['sampling', 'elicitation', 'roots']) t.truthy(capabilities?.[capability], capability);
      t.deepEqual(capabilities?.experimental, { 'example.com/x': {} });
      const isTold = cell.clientEra === 'legacy' && cell.serverEra === 'legacy';
      t.deepEqual(capabilities?.roots, isTold ? { listChanged: true } : {});
    },
  },
  {
    title: 'the server learns the name of the client',
    needs: ['clientName'],
    async run(t, cell) {
      t.like((await introductionOf(cell)).clientInfo, { name: 'main', version: '4.5.6' });
    },
  },
  {
    title: 'a tool is called and answers with text, structured content and _meta',
    needs: ['calls'],
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
    needs: ['calls'],
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
    needs: ['calls'],
    async run(t, cell) {
      const client = await cell.main();
      t.is((await client.callTool('echo', { value: AWKWARD })).text, AWKWARD);
    },
  },
  {
    title: 'a result and arguments of one mebibyte arrive whole',
    needs: ['calls'],
    async run(t, cell) {
      const client = await cell.main();
      // Not t.is: a difference would print both.
      t.true((await client.callTool('big', { bytes: MEBIBYTE })).text === bigText(MEBIBYTE));
      const value = bigText(MEBIBYTE);
      t.true((await client.callTool('echo', { value })).text === value);
    },
  },
  {
    title: 'an error of the server keeps code, message and data',
    needs: ['errors'],
    async run(t, cell) {
      const client = await cell.main();
      const data = { hints: ['a', { b: 1e-7 }], text: 'ü' };
      const fail = (code: number, more: object) => client.callTool('fail', { code, message: 'señor, no', ...more });
      await rejects(t, fail(-31000, { data }), { code: -31000, message: /señor, no/, data });
      await rejects(t, fail(4242, {}), { code: 4242, message: /señor, no/, data: undefined });
      const unknown = { code: -32602, message: /no tool no-such-tool/, data: undefined };
      await rejects(t, client.callTool('no-such-tool'), unknown);
    },
  },
  {
    title:
      'an error that only the other era knows, or that is not the server’s to use, is said in the words of the client’s',
    needs: ['errors'],
    async run(t, cell) {
      const client = await cell.main();
      const uri = 'test://nowhere';
      const code = cell.clientEra === 'legacy' ? -32002 : -32602;
      await rejects(t, client.readResource(uri), { code, message: /no such resource/i, data: { uri } });
      const data = { hint: 'ü' };
      const isReserved = cell.serverEra === 'legacy' && cell.clientEra === 'modern';
      await rejects(t, client.callTool('fail', { code: -32050, message: 'no', data }), {
        code: isReserved ? -32603 : -32050,
        message: /no/,
        data: isReserved ? { ...data, bridge: { originalCode: -32050 } } : data,
      });
    },
  },
  {
    title: 'methods of extensions pass with their _meta, and so does what is answered',
    needs: ['ownMethods'],
    async run(t, cell) {
      const client = await cell.main();
      const params = { deep: [{ er: null }, 1e-7], _meta: { 'example.com/trace': 'abc' } };
      for (const method of ['custom/do', 'skills/get', 'resources/directory/read', 'tasks/pause', 'server/x']) {
        const { ttlMs: _, cacheScope: __, ...result } = await client.request(method, params);
        t.deepEqual(result, { method, params, _meta: { 'example.com/custom': true } });
      }
      const method = 'no/such/method';
      await rejects(t, client.request(method), { code: -32601, message: /no method/, data: { method } });
    },
  },
  {
    title: 'notifications of extensions reach the server',
    needs: ['ownNotificationsUp'],
    async run(t, cell) {
      const client = await cell.main();
      const params = { from: cell.title, _meta: { 'example.com/n': 1 } };
      for (const method of ['custom/told', 'notifications/roots/moved']) {
        await client.notify(method, params);
        const isIt = (value: unknown) => methodOf(value) === method;
        const { value } = await seenByServer(client, method, (entry) => isIt(entry.value));
        t.like(value, { params });
      }
    },
  },
  {
    title: 'each of fifty concurrent calls gets its own answer',
    needs: ['calls'],
    async run(t, cell) {
      // A modern one that can be asked something has a session, and maybe a process, for each of its calls: see questions.ts.
      const hasSessionForEachCall = cell.clientEra === 'modern' && cell.serverEra === 'legacy';
      const client = hasSessionForEachCall
        ? await cell.connected('incapable', { capabilities: {} })
        : await cell.main();
      const values = Array.from({ length: 50 }, (_, index) => `value ${index}`);
      // The first asked is the last answered.
      const answers = await Promise.all(
        values.map((value, index) => client.callTool('later', { value, ms: 3 * (values.length - index) })),
      );
      t.deepEqual(
        answers.map(({ text }) => text),
        values,
      );
    },
  },
  {
    title: 'ping is answered',
    needs: ['ping'],
    async run(t, cell) {
      const client = await cell.main();
      await t.notThrowsAsync(client.ping());
    },
  },
];

/** More than any buffer on the path holds, and almost more than servers of the SDK take. */
export const LARGE_PAYLOADS: readonly Scenario[] = [
  {
    title: 'a result of eight mebibytes arrives whole',
    needs: ['calls'],
    async run(t, cell) {
      const client = await cell.main();
      const { text } = await client.callTool('big', { bytes: 8 * MEBIBYTE });
      t.true(text === bigText(8 * MEBIBYTE));
    },
  },
  {
    title: 'arguments of three mebibytes arrive whole',
    needs: ['calls'],
    async run(t, cell) {
      const client = await cell.main();
      const value = bigText(3 * MEBIBYTE);
      t.true((await client.callTool('echo', { value })).text === value);
    },
  },
];

export const methodOf = (message: unknown): unknown => (message as { readonly method?: unknown } | undefined)?.method;

interface Introduction {
  readonly clientInfo?: unknown;
  readonly capabilities?: Readonly<Record<string, unknown>>;
}

/** What the server was told: at the start of the session, or with each request. */
async function introductionOf(cell: Cell): Promise<Introduction> {
  const client = await cell.main();
  await client.callTool('echo', { value: 'seen' });
  const { session, entries } = await recordOf(client);
  const messages = entries.map((entry) => ({ ...entry, message: entry.value as TracedMessage | undefined }));
  if (cell.serverEra === 'legacy') {
    const initializations = messages.filter(({ message }) => message?.method === 'initialize');
    // Without sessions the one that asks now was never introduced.
    const [own = initializations[0]] = initializations.filter((entry) => entry.session === session);
    return (own?.message?.params ?? {}) as Introduction;
  }
  const call = messages.find(({ message }) => message?.method === 'tools/call');
  const meta = call?.message?.params?._meta as Envelope;
  return {
    clientInfo: meta['io.modelcontextprotocol/clientInfo'],
    capabilities: meta['io.modelcontextprotocol/clientCapabilities'],
  };
}

interface Envelope {
  readonly 'io.modelcontextprotocol/clientInfo': unknown;
  readonly 'io.modelcontextprotocol/clientCapabilities': NonNullable<Introduction['capabilities']>;
}

interface Expected {
  readonly code: number;
  readonly message: RegExp;
  readonly data: unknown;
}

async function rejects(
  t: Parameters<Scenario['run']>[0],
  call: Promise<unknown>,
  { code, message, data }: Expected,
): Promise<void> {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  t.like(error, { code });
  t.regex(String(error), message);
  t.deepEqual((error as { readonly data?: unknown } | undefined)?.data, data);
}
