import test from 'ava';
import { downgradeResult, downgradeTools } from '../../../src/mcp/translate/downgrade-results.ts';
import type { RevisionId } from '../../../src/mcp/vocabulary/revisions.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';
import { schemaFaults } from '../../support/schema.ts';

const revisions: readonly RevisionId[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
const answer = (result: string) => serverFrame(`{"jsonrpc":"2.0","id":1,"result":${result}}`);

interface Case {
  readonly title: string;
  readonly method: string;
  readonly result: string;
  readonly isWrapped?: boolean;
  /** What clients get, from the oldest revision on; a missing one gets what was sent. */
  readonly expected: Partial<Record<RevisionId, string>>;
}

const audio = '{"type":"audio","data":"QQ==","mimeType":"audio/wav","annotations":{"priority":1}}';
const resource =
  '{"type":"resource","resource":{"uri":"embedded:audio-1","mimeType":"audio/wav","blob":"QQ=="},"annotations":{"priority":1}}';
const link = '{"type":"resource_link","uri":"a:b","name":"n","description":"d"}';
const linkText = '{"type":"text","text":"n: a:b\\nd"}';
const objectSchema = '{"type":"object","properties":{"n":{"maximum":9223372036854775807}}}';
const listSchema = '{"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{}}}';
const wrappedSchema =
  '{"type":"object","properties":{"result":{"type":"array","items":{"$ref":"#/properties/result/$defs/a"},"$defs":{"a":{}}}},"required":["result"]}';

const cases: readonly Case[] = [
  {
    title: 'audio',
    method: 'tools/call',
    result: `{"content":[${audio}]}`,
    expected: { '2024-11-05': `{"content":[${resource}]}` },
  },
  {
    title: 'a link between others',
    method: 'tools/call',
    result: `{"content":[{"type":"text","text":"x","n":1e400}, ${link} ],"isError":false}`,
    expected: {
      '2024-11-05': `{"content":[{"type":"text","text":"x","n":1e400}, ${linkText} ],"isError":false}`,
      '2025-03-26': `{"content":[{"type":"text","text":"x","n":1e400}, ${linkText} ],"isError":false}`,
    },
  },
  {
    title: 'a link without description and with a title',
    method: 'tools/call',
    result: '{"content":[{"type":"resource_link","uri":"a:b","name":"n","title":"T","annotations":{}}]}',
    expected: {
      '2024-11-05': '{"content":[{"type":"text","text":"T: a:b","annotations":{}}]}',
      '2025-03-26': '{"content":[{"type":"text","text":"T: a:b","annotations":{}}]}',
    },
  },
  {
    title: 'a prompt with audio and a link',
    method: 'prompts/get',
    result: `{"messages":[{"role":"user","content":${audio}},{"role":"user","content":${link}}]}`,
    expected: {
      '2024-11-05': `{"messages":[{"role":"user","content":${resource}},{"role":"user","content":${linkText}}]}`,
      '2025-03-26': `{"messages":[{"role":"user","content":${audio}},{"role":"user","content":${linkText}}]}`,
    },
  },
  {
    title: 'structured output beside a text',
    method: 'tools/call',
    result: '{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":1e400}}',
    expected: {
      '2024-11-05': '{"content":[{"type":"text","text":"x"}]}',
      '2025-03-26': '{"content":[{"type":"text","text":"x"}]}',
    },
  },
  {
    title: 'structured output beside nothing',
    method: 'tools/call',
    result: '{"content":[],"structuredContent":{"a":1e400}}',
    expected: {
      '2024-11-05': '{"content":[{"type":"text","text":"{\\"a\\":1e400}"}]}',
      '2025-03-26': '{"content":[{"type":"text","text":"{\\"a\\":1e400}"}]}',
    },
  },
  {
    title: 'structured output beside audio',
    method: 'tools/call',
    result: `{"content":[${audio}],"structuredContent":[1]}`,
    expected: {
      '2024-11-05': `{"content":[${resource},{"type":"text","text":"[1]"}]}`,
      '2025-03-26': `{"content":[${audio},{"type":"text","text":"[1]"}]}`,
      '2025-06-18': `{"content":[${audio}],"structuredContent":{"result":[1]}}`,
      '2025-11-25': `{"content":[${audio}],"structuredContent":{"result":[1]}}`,
    },
  },
  {
    title: 'an object of a tool whose output is not always one',
    method: 'tools/call',
    isWrapped: true,
    result: '{"content":[{"type":"text","text":""}],"structuredContent":{"a":1e400}}',
    expected: {
      '2024-11-05': '{"content":[{"type":"text","text":""}]}',
      '2025-03-26': '{"content":[{"type":"text","text":""}]}',
      '2025-06-18': '{"content":[{"type":"text","text":""}],"structuredContent":{"result":{"a":1e400}}}',
      '2025-11-25': '{"content":[{"type":"text","text":""}],"structuredContent":{"result":{"a":1e400}}}',
    },
  },
  {
    title: 'structured output that is null',
    method: 'tools/call',
    result: '{"content":[{"type":"text","text":""}],"structuredContent":null}',
    expected: {
      '2024-11-05': '{"content":[{"type":"text","text":""}]}',
      '2025-03-26': '{"content":[{"type":"text","text":""}]}',
      '2025-06-18': '{"content":[{"type":"text","text":""}],"structuredContent":{"result":null}}',
      '2025-11-25': '{"content":[{"type":"text","text":""}],"structuredContent":{"result":null}}',
    },
  },
  {
    title: 'a list of tools with outputs',
    method: 'tools/list',
    result:
      `{"tools":[{"name":"a","inputSchema":{"type":"object"},"outputSchema":${objectSchema}},` +
      `{"name":"b","outputSchema":${listSchema},"inputSchema":{"type":"object"}}],"nextCursor":"c"}`,
    expected: {
      '2024-11-05':
        '{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}],"nextCursor":"c"}',
      '2025-03-26':
        '{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}],"nextCursor":"c"}',
      '2025-06-18':
        `{"tools":[{"name":"a","inputSchema":{"type":"object"},"outputSchema":${objectSchema}},` +
        `{"name":"b","outputSchema":${wrappedSchema},"inputSchema":{"type":"object"}}],"nextCursor":"c"}`,
      '2025-11-25':
        `{"tools":[{"name":"a","inputSchema":{"type":"object"},"outputSchema":${objectSchema}},` +
        `{"name":"b","outputSchema":${wrappedSchema},"inputSchema":{"type":"object"}}],"nextCursor":"c"}`,
    },
  },
  {
    title: 'an output schema that is none',
    method: 'tools/list',
    result: '{"tools":[{"name":"a","inputSchema":{"type":"object"},"outputSchema":null}]}',
    expected: Object.fromEntries(
      revisions.map((revision) => [revision, '{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}']),
    ),
  },
];

const types: Readonly<Record<string, string>> = {
  'tools/call': 'CallToolResult',
  'tools/list': 'ListToolsResult',
  'prompts/get': 'GetPromptResult',
};

for (const { title, method, result, isWrapped, expected } of cases) {
  for (const clientRevision of revisions) {
    test(`gives a client of ${clientRevision} ${title} in words it knows`, (t) => {
      const frame = answer(result);
      const told = downgradeResult(frame, { method, clientRevision, isWrapped });
      t.is(told.bytes.toString(), answer(expected[clientRevision] ?? result).bytes.toString());
      t.deepEqual(told, clientFrame(told.bytes.toString()));
      if (expected[clientRevision] === undefined) t.is(told, frame);
      const sent = (told.json() as { result: unknown }).result;
      t.deepEqual(schemaFaults(clientRevision, types[method] ?? '', sent), []);
      t.is(downgradeResult(told, { method, clientRevision, isWrapped: false }), told, 'once is enough');
    });
  }
}

test('makes a text of structured output that comes without any content', (t) => {
  const told = downgradeResult(answer('{"structuredContent":{}}'), {
    method: 'tools/call',
    clientRevision: '2025-03-26',
  });
  t.deepEqual(told, answer('{"content":[{"type":"text","text":"{}"}]}'));
});

test('leaves alone what is no result of these methods, or not what it should be', (t) => {
  for (const [method, result] of [
    ['resources/read', `{"contents":[${audio}]}`],
    ['vendor/x', `{"content":[${audio}]}`],
    ['tools/call', '[]'],
    ['tools/call', '{"content":{"type":"audio"}}'],
    ['tools/call', '{"content":["audio",null]}'],
    ['tools/list', '{"tools":{"outputSchema":1}}'],
    ['prompts/get', '{"messages":[{"content":[]}]}'],
  ] as const) {
    const frame = answer(result);
    t.is(downgradeResult(frame, { method, clientRevision: '2024-11-05' }), frame, result);
  }
  const error = serverFrame({ id: 1, error: { code: 1, message: '', structuredContent: 1 } });
  t.is(downgradeResult(error, { method: 'tools/call', clientRevision: '2024-11-05' }), error);
});

test('survives blocks and schemas that nest without end', (t) => {
  const deep = `${'{"items":'.repeat(50_000)}1${'}'.repeat(50_000)}`;
  const list = answer(`{"tools":[{"name":"a","outputSchema":${deep}}]}`);
  const told = downgradeResult(list, { method: 'tools/list', clientRevision: '2025-11-25' });
  t.deepEqual(told.json(), { jsonrpc: '2.0', id: 1, result: { tools: [{ name: 'a' }] } });
  const block = answer(`{"content":[{"type":"audio","data":${deep}}]}`);
  t.is(downgradeResult(block, { method: 'tools/call', clientRevision: '2024-11-05' }), block);
});

test('knows which tools have their output wrapped', (t) => {
  const tools = `[{"name":"a","outputSchema":${objectSchema}},{"name":"b","outputSchema":{"anyOf":[]}},{"name":"c"},{}]`;
  t.deepEqual(downgradeTools(answer(`{"tools":${tools}}`), '2025-11-25').wrapped, ['b']);
  t.deepEqual(downgradeTools(answer('{}'), '2025-11-25').wrapped, []);
  for (const schema of [{}, { type: 'array' }, { type: ['object'] }, { anyOf: [{ type: 'object' }] }]) {
    const text = JSON.stringify({ tools: [{ name: 'a', outputSchema: schema }] });
    t.deepEqual(downgradeTools(answer(text), '2025-11-25').wrapped, ['a'], text);
  }
});
