import { waitFor } from '../../support/wait-for.ts';
import { seenByServer } from '../cell.ts';
import type { MatrixClient } from '../matrix-client.ts';
import type { Scenario } from '../scenario.ts';

const SAMPLING = 'sampling/createMessage';
const ELICITATION = 'elicitation/create';
const ROOTS = 'roots/list';

interface Asked {
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: Readonly<Record<string, unknown>>;
}

/** Lets the server ask during a call; resolves with what the server was answered. */
async function asked(
  client: MatrixClient,
  method: string,
  params: Readonly<Record<string, unknown>>,
  timeoutMs?: number,
): Promise<Asked> {
  return JSON.parse((await client.callTool('ask', { method, params, ...(timeoutMs && { timeoutMs }) })).text);
}

export const samplingOf = (prompt: string) => ({
  messages: [{ role: 'user', content: { type: 'text', text: prompt } }],
  maxTokens: 10,
});

export const spoken = (text: string) => ({ role: 'assistant', model: 'm', content: { type: 'text', text } });

const FORM = { message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } };

export const QUESTIONS: readonly Scenario[] = [
  {
    title: 'sampling asks the client, and its answer reaches the server',
    needs: ['questions'],
    async run(t, cell) {
      const client = await cell.main();
      const prompts: unknown[] = [];
      client.answer(SAMPLING, (params) => {
        prompts.push(params);
        return { ...spoken('the model speaks: ¿qué?'), _meta: { 'example.com/cost': 1 } };
      });
      const { result } = await asked(client, SAMPLING, samplingOf('be brief'));
      t.like(prompts, [samplingOf('be brief')]);
      t.deepEqual(result, { ...spoken('the model speaks: ¿qué?'), _meta: { 'example.com/cost': 1 } });
    },
  },
  {
    title: 'elicitation is accepted, declined and cancelled',
    needs: ['questions'],
    async run(t, cell) {
      const client = await cell.main();
      const answers = [{ action: 'accept', content: { name: 'Ada' } }, { action: 'decline' }, { action: 'cancel' }];
      for (const answer of answers) {
        client.answer(ELICITATION, () => answer);
        t.deepEqual((await asked(client, ELICITATION, FORM)).result, answer);
      }
    },
  },
  {
    title: 'roots are listed during a call',
    needs: ['questions'],
    async run(t, cell) {
      const client = await cell.main();
      const roots = [{ uri: 'file:///tmp/a%20b', name: 'ein Verzeichnis' }];
      client.answer(ROOTS, () => ({ roots }));
      t.deepEqual((await asked(client, ROOTS, {})).result, { roots });
    },
  },
  {
    title: 'changed roots are told to the server, which asks for them when no call runs',
    needs: ['questions', 'between-calls'],
    async run(t, cell) {
      const client = await cell.main();
      const roots = [{ uri: `file:///changed/${encodeURIComponent(cell.title)}` }];
      client.answer(ROOTS, () => ({ roots }));
      await client.rootsChanged();
      const isIt = (value: unknown) => (value as { readonly marker?: unknown } | undefined)?.marker === 'roots';
      const { value } = await seenByServer(client, 'the roots', (entry) => isIt(entry.value));
      t.like(value, { answer: { result: { roots } } });
    },
  },
  {
    title: 'a question nobody knows passes with its _meta, and so does its answer',
    needs: ['questions'],
    async run(t, cell) {
      const client = await cell.main();
      client.answer('custom/ask', (params) => ({ heard: params, _meta: { 'example.com/a': [1] } }));
      const params = { deep: [{ er: null }], _meta: { 'example.com/q': 'ü' } };
      t.deepEqual((await asked(client, 'custom/ask', params)).result, {
        heard: params,
        _meta: { 'example.com/a': [1] },
      });
    },
  },
  {
    title: 'an error of the client reaches the server with code and data',
    needs: ['questions'],
    async run(t, cell) {
      const client = await cell.main();
      client.answer('custom/refuse', () => {
        throw Object.assign(new Error('not now'), { code: -31999, data: { retry: false } });
      });
      const { error } = await asked(client, 'custom/refuse', {});
      t.like(error, { code: -31999, data: { retry: false } });
      t.regex(String(error?.message), /not now/);
      t.like((await asked(client, 'custom/unheard-of', {})).error, { code: -32601 });
    },
  },
  {
    title: 'the server pings the client, during a call and between calls',
    needs: ['questions', 'between-calls'],
    async run(t, cell) {
      const client = await cell.main();
      t.deepEqual((await asked(client, 'ping', {})).result, {});
      await client.callTool('askLater', { method: 'ping', params: {}, marker: 'pinged' });
      const isIt = (value: unknown) => (value as { readonly marker?: unknown } | undefined)?.marker === 'pinged';
      const { value } = await seenByServer(client, 'the answer', (entry) => isIt(entry.value));
      t.like(value, { answer: { result: {} } });
    },
  },
  {
    title: 'questions of concurrent calls get the answers meant for them',
    needs: ['questions'],
    async run(t, cell) {
      const client = await cell.main();
      // The first asked is the last answered.
      let open = 0;
      client.answer(SAMPLING, async (params) => {
        const place = open++;
        await waitFor(() => open >= 8, { message: 'all questions' });
        await new Promise((resolve) => setTimeout(resolve, 5 * (8 - place)));
        return spoken(`about ${JSON.stringify(params.messages)}`);
      });
      const prompts = Array.from({ length: 8 }, (_, index) => `prompt ${index}`);
      const answers = await Promise.all(prompts.map((prompt) => asked(client, SAMPLING, samplingOf(prompt))));
      for (const [index, { result }] of answers.entries()) {
        t.true(JSON.stringify(result).includes(`prompt ${index}\\`), `answer ${index}`);
      }
    },
  },
  {
    title: 'a question whose answer cannot come back ends in an error, not in silence',
    without: 'questions',
    async run(t, cell) {
      const client = await cell.main();
      client.answer(SAMPLING, () => spoken('into the void'));
      const { error } = await asked(client, SAMPLING, samplingOf('anybody?'), 300);
      t.regex(String(error?.message), /timed out/);
      t.is((await client.callTool('echo', { value: 'still there' })).text, 'still there');
    },
  },
];
