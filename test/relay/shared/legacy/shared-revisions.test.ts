import test from 'ava';
import { type Message, only, reasonOf, SERVER_RESULT, SharedBridge, type SharedClient } from './shared-bridge.ts';

const OLDEST = '2024-11-05';
const LATEST = '2025-11-25';

const audio = { type: 'audio', data: 'AA==', mimeType: 'audio/wav' };
const link = { type: 'resource_link', uri: 'test://a', name: 'a', description: 'the first' };
const said = { type: 'text', text: 'three' };
const tool = {
  name: 'work',
  title: 'Work',
  inputSchema: { type: 'object' },
  outputSchema: { type: 'object', properties: { sum: { type: 'number' } } },
};

function connect(protocolVersion: string, server: object = SERVER_RESULT, capabilities: object = {}) {
  const bridge = new SharedBridge();
  const client = bridge.connect({ protocolVersion, capabilities });
  client.initialize();
  bridge.answerHandshake(server);
  const initialized = only(client.heard());
  client.says({ method: 'notifications/initialized' });
  bridge.heard();
  return { bridge, client, initialized };
}

/** The server answers the only request it has heard since. */
function answered(bridge: SharedBridge, client: SharedClient, answer: object): Message {
  bridge.says({ id: only(bridge.heard()).id, ...answer });
  return only(client.heard());
}

test('a client of 2024-11-05 lists and calls the tools of a server of 2025-11-25 in its own words', (t) => {
  const { bridge, client } = connect(OLDEST);
  client.call('list', 'tools/list');
  const { outputSchema: _, ...listed } = tool;
  t.deepEqual(answered(bridge, client, { result: { tools: [tool] } }).result?.tools, [listed]);

  client.call('call', 'tools/call', { name: 'work' });
  const result = { content: [audio, link, said], structuredContent: { sum: 3 }, _meta: { kept: 1 } };
  const called = answered(bridge, client, { result });
  t.is(called.id, 'call');
  t.deepEqual(called.result, {
    content: [
      { type: 'resource', resource: { uri: 'embedded:audio-1', mimeType: 'audio/wav', blob: 'AA==' } },
      { type: 'text', text: 'a: test://a\nthe first' },
      said,
    ],
    _meta: { kept: 1 },
  });

  client.call('again', 'tools/call', { name: 'work' });
  const text = { type: 'text', text: '{"sum":3}' };
  t.deepEqual(answered(bridge, client, { result: { content: [], structuredContent: { sum: 3 } } }).result, {
    content: [text],
  });

  client.call('prompt', 'prompts/get', { name: 'p' });
  const messages = [{ role: 'user', content: link }];
  t.deepEqual(answered(bridge, client, { result: { messages } }).result, {
    messages: [{ role: 'user', content: { type: 'text', text: 'a: test://a\nthe first' } }],
  });
});

test('of what lies between, each client gets what its revision has', (t) => {
  const types = ['2025-03-26', '2025-06-18'].map((revision) => {
    const { bridge, client } = connect(revision);
    client.call(1, 'tools/call', { name: 'work' });
    const { result } = answered(bridge, client, { result: { content: [audio, link, said], structuredContent: {} } });
    return [(result?.content as { type: string }[]).map(({ type }) => type), 'structuredContent' in (result ?? {})];
  });
  t.deepEqual(types, [
    [['audio', 'text', 'text'], false],
    [['audio', 'resource_link', 'text'], true],
  ]);
});

for (const [title, client, server] of [
  ['the same', LATEST, LATEST],
  ['an older', LATEST, OLDEST],
  ['an unknown', OLDEST, '2099-01-01'],
] as const) {
  test(`what a server of ${title} revision says passes byte for byte`, (t) => {
    const { bridge, client: connected } = connect(client, { ...SERVER_RESULT, protocolVersion: server });
    connected.call('mine', 'tools/call', { name: 'work' });
    const { id } = only(bridge.heard());
    const result = `{ "content":[${JSON.stringify(audio)}, ${JSON.stringify(link)}],"structuredContent" : [1.0]}`;
    bridge.says(`{"jsonrpc":"2.0","id":${id},"result":${result}}`);
    t.deepEqual(connected.heardTexts(), [`{"jsonrpc":"2.0","id":"mine","result":${result}}`]);
  });
}

test('a client of 2024-11-05 is not told of completions, which it does not ask for by that name', (t) => {
  const server = { ...SERVER_RESULT, capabilities: { completions: {}, tools: {} } };
  t.deepEqual(connect(OLDEST, server).initialized.result?.capabilities, { tools: {} });
  t.deepEqual(connect('2025-03-26', server).initialized.result?.capabilities, { completions: {}, tools: {} });
});

test('a client of 2025-06-18 is asked in the words of its revision, or not at all', (t) => {
  const { bridge, client } = connect('2025-06-18', SERVER_RESULT, { elicitation: {}, sampling: {} });
  client.call(1);
  bridge.heard();
  const ask = (id: number, property: object): void => {
    const requestedSchema = { type: 'object', properties: { field: property } };
    const params = { mode: 'form', message: 'Which?', requestedSchema };
    bridge.says({ id, method: 'elicitation/create', params });
  };
  ask(7, { type: 'string', oneOf: [{ const: 'a', title: 'A' }] });
  const asked = only(client.heard());
  t.deepEqual(asked.params, {
    message: 'Which?',
    requestedSchema: { type: 'object', properties: { field: { type: 'string', enum: ['a'], enumNames: ['A'] } } },
  });
  client.says({ id: asked.id, result: { action: 'decline' } });
  t.deepEqual(only(bridge.heard()), { jsonrpc: '2.0', id: 7, result: { action: 'decline' } });

  ask(8, { type: 'array', items: { type: 'string', enum: ['a', 'b'] } });
  t.deepEqual(client.heard(), []);
  const refused = only(bridge.heard());
  t.is(refused.id, 8);
  t.is(reasonOf(refused), 'ERR_CLIENT_CAPABILITY');

  const messages = [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }];
  bridge.says({ id: 9, method: 'sampling/createMessage', params: { messages, maxTokens: 5 } });
  t.deepEqual(only(client.heard()).params?.messages, [{ role: 'user', content: { type: 'text', text: 'hi' } }]);
});

test('a client that knows no elicitation of URLs gets the error that wants one under a code it knows', (t) => {
  const error = {
    code: -32042,
    message: 'sign in',
    data: { elicitations: [{ elicitationId: 'e', url: 'https://x' }] },
  };
  const urls = { elicitation: { url: {} } };
  for (const [revision, capabilities, code] of [
    ['2025-06-18', urls, -32603],
    [LATEST, { elicitation: {} }, -32603],
    [LATEST, urls, -32042],
  ] as const) {
    const { bridge, client } = connect(revision, SERVER_RESULT, capabilities);
    client.call('mine');
    const refused = answered(bridge, client, { error });
    t.is(refused.id, 'mine');
    t.deepEqual(refused.error as unknown, { ...error, code });
  }
});
