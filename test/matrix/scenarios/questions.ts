import { waitFor } from '../../support/wait-for.ts';
import { recordOf, seenByServer } from '../cell.ts';
import { fromServer, type MatrixClient } from '../matrix-client.ts';
import type { Scenario } from '../scenario.ts';
import type { RecordEntry } from '../servers.ts';

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

const formOf = (message: string) => ({ ...FORM, message });

interface Question {
  readonly method: string;
  readonly params: object;
}

const sampling = (prompt: string): Question => ({ method: SAMPLING, params: samplingOf(prompt) });
const elicitation = (message: string): Question => ({ method: ELICITATION, params: formOf(message) });

/** Each round is asked when the one before is answered. */
async function interviewed(
  client: MatrixClient,
  rounds: readonly (readonly Question[])[],
): Promise<readonly unknown[]> {
  const answers: readonly (readonly Asked[])[] = JSON.parse((await client.callTool('interview', { rounds })).text);
  return answers.map((round) => round.map(({ result }) => result));
}

/** How often the server got a call with this in its arguments. */
async function timesCalled(client: MatrixClient, marker: string): Promise<number> {
  const { entries } = await recordOf(client);
  return entries.filter(({ kind, value }) => kind === 'message' && JSON.stringify(value).includes(marker)).length;
}

/** Lets the server ask when no call runs; resolves with what it was answered. */
async function askedLater(client: MatrixClient, { method, params }: Question): Promise<Asked> {
  laterQuestions += 1;
  const marker = `later ${laterQuestions} of ${method}`;
  await client.callTool('askLater', { method, params, marker });
  return answerTo(client, marker);
}

let laterQuestions = 0;

async function answerTo(client: MatrixClient, marker: string): Promise<Asked> {
  const isIt = ({ kind, value }: RecordEntry) =>
    kind === 'answered' && (value as { marker?: unknown }).marker === marker;
  const { value } = await seenByServer(client, 'the answer', isIt);
  return (value as { readonly answer: Asked }).answer;
}

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
    title: 'elicitation is accepted, declined and canceled',
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
    title: 'a call asks for several things at once, and each gets the answer meant for it',
    needs: ['questions'],
    async run(t, cell) {
      const client = await cell.main();
      client.answer(ELICITATION, ({ message }) => ({ action: 'accept', content: { name: `told ${message}` } }));
      client.answer(SAMPLING, ({ messages }) => spoken(`about ${JSON.stringify(messages)}`));
      client.answer(ROOTS, () => ({ roots: [{ uri: 'file:///at/once' }] }));
      const round = [elicitation('one'), sampling('two'), elicitation('three'), { method: ROOTS, params: {} }];
      t.like(await interviewed(client, [round]), [
        [
          { action: 'accept', content: { name: 'told one' } },
          spoken(`about ${JSON.stringify(samplingOf('two').messages)}`),
          { action: 'accept', content: { name: 'told three' } },
          { roots: [{ uri: 'file:///at/once' }] },
        ],
      ]);
    },
  },
  {
    title: 'a call asks in several rounds, and a legacy server runs it once',
    needs: ['questions'],
    async run(t, cell) {
      const client = await cell.main();
      const asked: unknown[] = [];
      client.answer(ELICITATION, ({ message }) => {
        asked.push(message);
        return asked.length === 2
          ? { action: 'decline' }
          : { action: 'accept', content: { name: String(asked.length) } };
      });
      const marker = 'the first of several rounds';
      const rounds = [[elicitation(marker)], [elicitation('second')], [elicitation('third')]];
      t.deepEqual(await interviewed(client, rounds), [
        [{ action: 'accept', content: { name: '1' } }],
        [{ action: 'decline' }],
        [{ action: 'accept', content: { name: '3' } }],
      ]);
      t.deepEqual(asked, [marker, 'second', 'third']);
      t.is(await timesCalled(client, marker), cell.serverEra === 'legacy' ? 1 : 4);
    },
  },
  {
    title: 'a client that cannot be asked is not asked, and the server is told so',
    needs: ['incapable'],
    async run(t, cell) {
      const client = await cell.connected('incapable', { capabilities: {} });
      const answer = asked(client, ELICITATION, FORM);
      // A legacy server may ask all the same; for a modern one there is an error of its own.
      if (cell.serverEra === 'legacy') t.like((await answer).error, { code: -32601 });
      else t.like(await t.throwsAsync(answer), { code: -32021 });
      if (cell.clientEra !== cell.serverEra) t.deepEqual(fromServer(client, ELICITATION), []);
      t.is((await client.callTool('echo', { value: 'still there' })).text, 'still there');
    },
  },
  {
    title: 'changed roots are told to the server, which asks for them when no call runs',
    needs: ['rootsChanged'],
    async run(t, cell) {
      const client = await cell.main();
      const roots = [{ uri: `file:///changed/${encodeURIComponent(cell.title)}` }];
      client.answer(ROOTS, () => ({ roots }));
      await client.rootsChanged();
      t.like(await answerTo(client, 'roots'), { result: { roots } });
    },
  },
  {
    title: 'the news of changed roots ends at the bridge, and the server gets the new ones when it asks',
    needs: ['questions'],
    without: 'rootsChanged',
    async run(t, cell) {
      const client = await cell.main();
      const roots = [{ uri: 'file:///changed/untold' }];
      client.answer(ROOTS, () => ({ roots }));
      await client.rootsChanged();
      t.deepEqual((await asked(client, ROOTS, {})).result, { roots });
      t.is(await timesCalled(client, 'notifications/roots/list_changed'), 0);
    },
  },
  {
    title: 'a question nobody knows passes with its _meta, and so does its answer',
    needs: ['ownQuestions'],
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
    title: 'a question nobody knows is refused, and the call goes on',
    needs: ['questions'],
    without: 'ownQuestions',
    async run(t, cell) {
      const client = await cell.main();
      t.like((await asked(client, 'custom/ask', {})).error, { code: -32601 });
    },
  },
  {
    title: 'an error of the client reaches the server with code and data',
    needs: ['questionErrors'],
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
    title: 'an error of the client ends the call in a failed result that says so',
    needs: ['questions'],
    without: 'questionErrors',
    async run(t, cell) {
      const client = await cell.main();
      client.answer(SAMPLING, () => {
        throw Object.assign(new Error('not now'), { code: -31999 });
      });
      const { text, isError } = await client.callTool('ask', { method: SAMPLING, params: samplingOf('please') });
      t.true(isError);
      t.regex(text, /not now/);
    },
  },
  {
    title: 'the server asks when no call runs',
    needs: ['looseQuestions'],
    async run(t, cell) {
      const client = await cell.main();
      client.answer(SAMPLING, () => spoken('out of the blue'));
      t.like(await askedLater(client, sampling('anybody?')), { result: spoken('out of the blue') });
    },
  },
  {
    title: 'what the server asks when no call runs is refused at once, and nobody is asked',
    needs: ['questions'],
    without: 'looseQuestions',
    async run(t, cell) {
      const client = await cell.main();
      let times = 0;
      client.answer(SAMPLING, () => {
        times += 1;
        return spoken('never');
      });
      t.truthy((await askedLater(client, sampling('anybody?'))).error);
      t.deepEqual((await askedLater(client, elicitation('anybody?'))).result, { action: 'cancel' });
      t.is(times, 0);
    },
  },
  {
    title: 'the server pings the client, during a call and between calls',
    needs: ['serverPing'],
    async run(t, cell) {
      const client = await cell.main();
      t.deepEqual((await asked(client, 'ping', {})).result, {});
      t.deepEqual(await askedLater(client, { method: 'ping', params: {} }), { result: {} });
    },
  },
  {
    title: 'questions of concurrent calls get the answers meant for them',
    needs: ['questions'],
    async run(t, cell) {
      const client = await cell.main();
      // The first asked is the last answered. Not many: each call may have a process to itself.
      const count = 4;
      let open = 0;
      client.answer(SAMPLING, async (params) => {
        const place = open++;
        await waitFor(() => open >= count, { message: 'all questions' });
        await new Promise((resolve) => setTimeout(resolve, 5 * (count - place)));
        return spoken(`about ${JSON.stringify(params.messages)}`);
      });
      const prompts = Array.from({ length: count }, (_, index) => `prompt ${index}`);
      const answers = await Promise.all(prompts.map((prompt) => asked(client, SAMPLING, samplingOf(prompt))));
      for (const [index, { result }] of answers.entries()) {
        t.truthy(result, JSON.stringify(answers[index]));
        t.true(JSON.stringify(result).includes(`prompt ${index}\\`), `answer ${index}`);
      }
    },
  },
  {
    title: 'a question whose answer cannot come back ends in an error, not in silence',
    needs: ['calls'],
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
