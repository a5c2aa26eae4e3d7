import test from 'ava';
import { RecordingScript, request, result, toolCall } from '../../support/recording-script.ts';
import { replay } from './replay.ts';

interface Refusal {
  readonly code: number;
  readonly message: string;
  readonly data: { readonly bridge: { readonly reason: string } };
}

function refusalIn(answer: Readonly<Record<string, unknown>>): Refusal {
  return answer.error as Refusal;
}

const WEATHER = new RecordingScript()
  .handshake()
  .sent(toolCall(1, 'weather', { city: 'Rome', days: 1 }))
  .received(result(1, 'sunny'))
  .sent(toolCall(2, 'weather', { city: 'Oslo', days: 5, unit: 'K' }))
  .received(result(2, 'cold'))
  .sent(toolCall(3, 'news', { city: 'Bern' }))
  .received(result(3, 'none'))
  .exchange(4, 'tools/list', undefined, { tools: [] });

const DIFFERENCES: Readonly<Record<string, readonly [name: string, args: object, said: RegExp]>> = {
  'another value': ['weather', { city: 'Bern', days: 1 }, /arguments\.city is "Rome" in the nearest one/],
  'a member too few': ['weather', { city: 'Rome' }, /arguments\.days is 1 in the nearest one/],
  'a member too many': [
    'weather',
    { city: 'Rome', days: 1, lang: 'it' },
    /there is no arguments\.lang in the nearest one/,
  ],
  'another name, however like the rest is': ['fortune', { city: 'Bern' }, /name is "news" in the nearest one/],
};

for (const [title, [name, args, said]] of Object.entries(DIFFERENCES)) {
  test(`an unknown request with ${title} is told where it differs from the nearest recorded one`, async (t) => {
    const { code, message, data } = refusalIn(
      await replay(t, WEATHER)
        .connect()
        .ask(toolCall(9, name, args)),
    );
    t.is(code, -32602);
    t.is(data.bridge.reason, 'ERR_REPLAY_PARAMS');
    t.regex(message, /^The recording has no tools\/call with these parameters\. It has 3 others: /);
    t.regex(message, said);
  });
}

test('an unknown method is told the nearest one, and all that were recorded', async (t) => {
  const { connect, entries } = replay(t, WEATHER);
  const { code, message, data } = refusalIn(await connect().ask(request(9, 'tools/lists')));
  t.is(code, -32601);
  t.is(data.bridge.reason, 'ERR_REPLAY_METHOD');
  t.is(
    message,
    'The recording has no request of this method. The nearest method is tools/list. It has tools/call, tools/list.',
  );
  t.true(entries.some((entry) => entry.code === 'ERR_REPLAY_METHOD'));
});

test('the log has no parameters of a request that is refused', async (t) => {
  const { connect, entries } = replay(t, WEATHER);
  await connect().ask(toolCall(9, 'weather', { city: 'Rome', days: 31415 }));
  t.notRegex(JSON.stringify(entries), /31415|Rome/);
});

// ---- hidden values

const HIDDEN = new RecordingScript()
  .handshake()
  .sent(toolCall(1, 'login', { user: 'ann', password: '[hidden]', header: 'Bearer [hidden] (v2)' }), { hidden: 2 })
  .received(result(1, 'token [hidden]'), { hidden: 1 });

test('a hidden value matches any value, and a hidden part of a text any text', async (t) => {
  const client = replay(t, HIDDEN).connect();
  const call = (id: number, password: unknown, header: string) =>
    toolCall(id, 'login', { user: 'ann', password, header });
  t.deepEqual(await client.ask(call(1, 'x', 'Bearer abc (v2)')), result(1, 'token [hidden]'));
  t.deepEqual(await client.ask(call(2, { any: [1] }, 'Bearer  (v2)')), result(2, 'token [hidden]'));
  t.truthy(refusalIn(await client.ask(call(3, 'x', 'Basic abc (v2)'))));
  t.truthy(refusalIn(await client.ask(call(4, 'x', 'Bearer (v2)'))));
  t.truthy(refusalIn(await client.ask(toolCall(5, 'login', { user: 'ann', header: 'Bearer abc (v2)' }))));
});

test('a text that was written as [hidden] and is not hidden matches only itself', async (t) => {
  const script = new RecordingScript()
    .handshake()
    .sent(toolCall(1, 'echo', { text: '[hidden]' }))
    .received(result(1, 'x'));
  const client = replay(t, script).connect();
  t.truthy(refusalIn(await client.ask(toolCall(1, 'echo', { text: 'other' }))));
  t.deepEqual(await client.ask(toolCall(2, 'echo', { text: '[hidden]' })), result(2, 'x'));
});

test('the log says once that values are hidden, and how they would be recorded', (t) => {
  const { connect, entries } = replay(t, HIDDEN);
  connect();
  connect();
  const said = entries.filter(({ msg }) => /hides/.test(String(msg)));
  t.is(said.length, 1);
  t.regex(String(said[0]?.msg), /hides 3 values.*--record-secrets/);
});

test('no error shows that a value is hidden as the difference', async (t) => {
  const client = replay(t, HIDDEN).connect();
  const { message } = refusalIn(await client.ask(toolCall(1, 'login', { user: 'bob', password: 'p', header: 'none' })));
  t.regex(message, /arguments\.user is "ann"/);
  const header = refusalIn(await client.ask(toolCall(2, 'login', { user: 'ann', password: 'p', header: 'none' })));
  t.regex(header.message, /arguments\.header is another value in the nearest one/);
});

// ---- cut messages

const CUT = new RecordingScript()
  .handshake()
  .sent(toolCall(1, 'big'))
  .received({ jsonrpc: '2.0', id: 1, result: '{"content":[{"type":"te' }, { cut: true })
  .sent(
    { jsonrpc: '2.0', id: 2, method: 'tools/call', params: '{"name":"upload","arguments":{"data":"AAAA' },
    { cut: true },
  )
  .received(result(2, 'uploaded'));

test('a cut answer is an error that says how it is recorded whole', async (t) => {
  const { code, message, data } = refusalIn(await replay(t, CUT).connect().ask(toolCall(1, 'big')));
  t.is(code, -32603);
  t.is(data.bridge.reason, 'ERR_REPLAY_ANSWER');
  t.regex(message, /Only the beginning .* --record-max-message/);
});

test('a cut request is found by its beginning', async (t) => {
  const client = replay(t, CUT).connect();
  t.deepEqual(await client.ask(toolCall(1, 'upload', { data: `AAAA${'B'.repeat(1000)}` })), result(1, 'uploaded'));
  const { message } = refusalIn(await client.ask(toolCall(2, 'upload', { data: 'CCCC' })));
  t.regex(message, /--record-max-message/);
});
