/** Modern clients of the official SDK before a legacy server that does not say which call its questions belong to. */
import test, { type ExecutionContext } from 'ava';
import { startBehindAggregate } from '../aggregate/behind-aggregate.ts';
import type { ClientName } from '../matrix/clients.ts';
import { type Front, startFront } from '../matrix/fronts.ts';
import type { MatrixClient } from '../matrix/matrix-client.ts';
import { ASKER } from './servers/commands.ts';

const ROUNDS = 15;
const KINDS = ['sampling', 'elicitation', 'roots'];

interface Person {
  readonly name: string;
  readonly client: MatrixClient;
  /** What this client was asked, but for roots, of which nothing can be told. */
  readonly asked: string[];
  tool(name: string, args?: object): Promise<unknown>;
}

async function startServer(t: ExecutionContext, client: ClientName, options: readonly string[] = []): Promise<Front> {
  const front = await startFront(client, [...options, '--', ...ASKER]);
  t.teardown(() => front.stop());
  return front;
}

async function startAggregate(t: ExecutionContext): Promise<Front> {
  const front = await startBehindAggregate('modernStdio', ['--', ...ASKER]);
  t.teardown(() => front.stop());
  return front;
}

/** Somebody who answers in their own way; all use the same program. */
async function connect(t: ExecutionContext, front: Front, name: string, program = 'editor'): Promise<Person> {
  const client = await front.connect({
    name: program,
    capabilities: { sampling: {}, elicitation: { form: {} }, roots: {} },
  });
  t.teardown(() => client.close());
  const asked: string[] = [];
  client.answer('sampling/createMessage', ({ messages }) => {
    const [{ content }] = messages as [{ content: { text: string } }];
    asked.push(content.text);
    return { role: 'assistant', model: 'm', content: { type: 'text', text: `${name} on ${content.text}` } };
  });
  client.answer('elicitation/create', ({ message }) => {
    asked.push(String(message));
    return { action: 'accept', content: { answer: `${name} on ${message}` } };
  });
  client.answer('roots/list', () => ({ roots: [{ uri: `file:///${name}`, name }] }));
  const tool = async (tool: string, args = {}) => JSON.parse((await client.callTool(tool, { ...args })).text);
  return { name, client, asked, tool };
}

/** What a person must get who calls with this marker. */
const own = (name: string, marker: string) => [`${name} on ${marker}`, `${name} on ${marker}`, name];

/** Questions that came with the answer to another call than the one they are about. */
function misplaced({ trace }: MatrixClient): unknown[] {
  const marked = new Map<unknown, string>();
  const found: unknown[] = [];
  for (const { from, message } of trace) {
    const { marker } = (message.params?.arguments ?? {}) as { marker?: string };
    if (from === 'client' && marker !== undefined) marked.set(message.id, marker);
    const asked = JSON.stringify(message.result?.inputRequests ?? {});
    const expected = marked.get(message.id);
    const isOther = [...marked.values()].some((other) => other !== expected && asked.includes(`"${other}"`));
    if (from === 'server' && isOther) found.push({ expected, asked });
  }
  return found;
}

test.serial('modern clients that call a legacy server at once are each asked about their own calls only', async (t) => {
  const front = await startServer(t, 'modernHttp');
  const people = await Promise.all(['ada', 'bob'].map((name) => connect(t, front, name)));
  for (let round = 0; round < ROUNDS; round += 1) {
    const outcomes = await Promise.all(
      people.flatMap(({ name, tool }) =>
        [1, 2].map(async (call) => {
          const marker = `${name} ${round} ${call}`;
          return { marker, name, answers: await tool('ask', { marker, kinds: KINDS }) };
        }),
      ),
    );
    for (const { marker, name, answers } of outcomes) t.deepEqual(answers, own(name, marker), marker);
  }
  for (const { name, asked } of people)
    t.deepEqual(
      asked.filter((marker) => !marker.startsWith(name)),
      [],
    );
});

test.serial('calls that a modern client makes at once over a pipe each get their own answers', async (t) => {
  const front = await startServer(t, 'modernStdio');
  const { name, client, tool } = await connect(t, front, 'ada');
  for (let round = 0; round < ROUNDS; round += 1) {
    const markers = [1, 2, 3].map((call) => `${round} ${call}`);
    const answers = await Promise.all(markers.map((marker) => tool('ask', { marker, kinds: KINDS })));
    t.deepEqual(misplaced(client), []);
    t.deepEqual(
      answers,
      markers.map((marker) => own(name, marker)),
    );
  }
});

test.serial('calls one after the other meet the same process, though others have run beside them', async (t) => {
  const front = await startServer(t, 'modernHttp');
  const { tool } = await connect(t, front, 'ada');
  const state = async () => (await tool('state')) as { pid: number; calls: number };
  const { pid } = await state();
  await Promise.all([1, 2, 3].map(() => tool('ask', { marker: 'm', kinds: KINDS })));
  const { calls } = await state();
  for (const n of [1, 2, 3]) t.deepEqual(await state().then((now) => [now.pid, now.calls]), [pid, calls + n]);
});

test.serial('with one process calls wait for each other, and each gets its own answers', async (t) => {
  const front = await startServer(t, 'modernHttp', ['--pool-size', '1']);
  const people = await Promise.all(['ada', 'bob'].map((name) => connect(t, front, name)));
  const before = front.processes().length;
  const answers = await Promise.all(
    people.flatMap(({ name, tool }) => [1, 2, 3].map((n) => tool('ask', { marker: `${name} ${n}`, kinds: KINDS }))),
  );
  t.deepEqual(
    answers,
    people.flatMap(({ name }) => [1, 2, 3].map((n) => own(name, `${name} ${n}`))),
  );
  t.is(front.processes().length, before);
});

test.serial('what a call asks after its client gave it up is asked of nobody else', async (t) => {
  const front = await startServer(t, 'modernHttp');
  const ada = await connect(t, front, 'ada');
  const bob = await connect(t, front, 'bob');
  await ada.tool('ask', { marker: 'ada', kinds: ['sampling'] });
  const abort = new AbortController();
  const onProgress = () => abort.abort();
  await t.throwsAsync(ada.client.callTool('late', { marker: 'late' }, { signal: abort.signal, onProgress }));
  for (let n = 0; n < 10; n += 1) {
    t.deepEqual(await bob.tool('ask', { marker: `bob ${n}`, kinds: KINDS }), own('bob', `bob ${n}`));
  }
  t.false(bob.asked.includes('late'));
});

for (const [title, start] of [
  ['one server', (t: ExecutionContext) => startServer(t, 'modernStdio')],
  ['one of several servers', startAggregate],
] as const) {
  test.serial(`a client on a pipe before ${title} keeps its session, whatever it has canceled`, async (t) => {
    const ada = await connect(t, await start(t), 'ada');
    const { pid } = (await ada.tool('state')) as { readonly pid: number };
    const abort = new AbortController();
    const onProgress = () => abort.abort();
    await t.throwsAsync(ada.client.callTool('late', { marker: 'late' }, { signal: abort.signal, onProgress }));
    t.like(await ada.tool('state'), { pid });
    t.deepEqual(await ada.tool('ask', { marker: 'next', kinds: ['elicitation'] }), ['ada on next']);
  });
}

test.serial('the server is told who calls, and keeps clients of different programs apart', async (t) => {
  const front = await startServer(t, 'modernHttp');
  const editor = await connect(t, front, 'ada', 'editor');
  const shell = await connect(t, front, 'bob', 'shell');
  const states = [await editor.tool('state'), await shell.tool('state'), await editor.tool('state')];
  t.like(states, [{ client: { name: 'editor', version: '4.5.6' } }, { client: { name: 'shell' } }, { calls: 2 }]);
});
