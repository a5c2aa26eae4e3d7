import test from 'ava';
import { toLegacyInput } from '../../../src/mcp/translate/downgrade-inputs.ts';
import type { RevisionId } from '../../../src/mcp/vocabulary/revisions.ts';
import { schemaFaults } from '../../support/schema.ts';

const ask = (method: string, params: string | undefined, clientRevision: RevisionId) => {
  const read = toLegacyInput(
    { method, params: params === undefined ? undefined : Buffer.from(params) },
    { clientRevision, elicitationId: 'e-1' },
  );
  return 'fault' in read ? read : read.params?.toString();
};

const form = (properties: object) =>
  JSON.stringify({ mode: 'form', message: '?', requestedSchema: { type: 'object', properties, required: ['a'] } });

test('asks a client of the latest legacy revision in the very words of the server', (t) => {
  const params = '{"mode":"form","message":"?","requestedSchema":{"maximum":1e400}}';
  t.is(ask('elicitation/create', params, '2025-11-25'), params);
  const sampling = '{"messages":[{"content":[]}],"tools":[],"n":1e400}';
  t.is(ask('sampling/createMessage', sampling, '2025-11-25'), sampling);
  t.is(ask('roots/list', undefined, '2024-11-05'), undefined);
  t.is(ask('roots/list', '{"_meta":{}}', '2024-11-05'), '{"_meta":{}}');
});

test('gives a URL the id that the revision wants', (t) => {
  const told = ask('elicitation/create', '{"mode":"url","message":"?","url":"a:b"}', '2025-11-25');
  t.is(told, '{"mode":"url","message":"?","url":"a:b","elicitationId":"e-1"}');
  const params = JSON.parse(String(told));
  t.deepEqual(
    schemaFaults('2025-11-25', 'ElicitRequest', { jsonrpc: '2.0', id: 1, method: 'elicitation/create', params }),
    [],
  );
});

test('turns a form into one of a revision without modes and titled choices', (t) => {
  const told = ask(
    'elicitation/create',
    form({
      a: { type: 'string', oneOf: [{ const: 'x', title: 'X' }, { const: 'y' }], description: 'd', default: 'x' },
      b: { type: 'string', enum: ['x'] },
      c: { type: 'integer', minimum: 1 },
      __proto__x: { type: 'boolean' },
    }),
    '2025-06-18',
  );
  const params = JSON.parse(String(told));
  t.deepEqual(params, {
    message: '?',
    requestedSchema: {
      type: 'object',
      properties: {
        a: { type: 'string', description: 'd', default: 'x', enum: ['x', 'y'], enumNames: ['X', 'y'] },
        b: { type: 'string', enum: ['x'] },
        c: { type: 'integer', minimum: 1 },
        __proto__x: { type: 'boolean' },
      },
      required: ['a'],
    },
  });
  t.deepEqual(schemaFaults('2025-06-18', 'ElicitRequest', { method: 'elicitation/create', params }), []);
});

for (const [title, method, params, revision, fault] of [
  [
    'a choice of several values',
    'elicitation/create',
    form({ colors: { type: 'array', items: { enum: ['x'] } } }),
    '2025-06-18',
    'the client has no form for the field "colors"',
  ],
  [
    'choices that are no texts',
    'elicitation/create',
    form({ a: { oneOf: [{ const: 1 }] } }),
    '2025-06-18',
    'the client has no form for the field "a"',
  ],
  ['a URL', 'elicitation/create', '{"mode":"url","url":"a:b"}', '2025-06-18', 'the client cannot open URLs'],
  [
    'a form before there were any',
    'elicitation/create',
    form({}),
    '2025-03-26',
    'the revision of the client has no elicitation',
  ],
  ['tools', 'sampling/createMessage', '{"messages":[],"tools":[]}', '2025-06-18', 'the client cannot use tools'],
  [
    'the use of a tool',
    'sampling/createMessage',
    '{"messages":[{"content":[{"type":"tool_use"}]}]}',
    '2025-06-18',
    'the other side cannot use tools',
  ],
  [
    'audio before there was any',
    'sampling/createMessage',
    '{"messages":[{"content":{"type":"audio"}}]}',
    '2024-11-05',
    'the other side cannot take audio',
  ],
  [
    'a text and an image',
    'sampling/createMessage',
    '{"messages":[{"content":[{"type":"text","text":"x"},{"type":"image"}]}]}',
    '2025-06-18',
    'the other side takes one block of content',
  ],
  [
    'nothing at all',
    'sampling/createMessage',
    '{"messages":[{"content":[]}]}',
    '2025-06-18',
    'the other side takes one block of content',
  ],
] as const) {
  test(`does not ask an older client for ${title}`, (t) => {
    t.deepEqual(ask(method, params, revision), { fault });
  });
}

test('asks an older client for a sample with one block in each message', (t) => {
  const message = (content: unknown) => ({ role: 'user', content });
  const told = ask(
    'sampling/createMessage',
    JSON.stringify({
      maxTokens: 5,
      messages: [
        message({ type: 'audio', data: '', mimeType: 'x' }),
        message([{ type: 'image', data: '', mimeType: 'x' }]),
        message([
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ]),
      ],
    }),
    '2025-06-18',
  );
  const params = JSON.parse(String(told));
  t.deepEqual(params, {
    maxTokens: 5,
    messages: [
      message({ type: 'audio', data: '', mimeType: 'x' }),
      message({ type: 'image', data: '', mimeType: 'x' }),
      message({ type: 'text', text: 'a\n\nb' }),
    ],
  });
  t.deepEqual(schemaFaults('2025-06-18', 'CreateMessageRequest', { method: 'sampling/createMessage', params }), []);
});
