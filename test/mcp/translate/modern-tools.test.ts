import test from 'ava';
import fc from 'fast-check';
import { modernToolEdits } from '../../../src/mcp/translate/modern-tools.ts';
import { replaceSpans } from '../../../src/wire/frame.ts';
import { anyJson, JsonPrinter } from '../../wire/json-text.ts';

function modernTools(text: string): string {
  const bytes = Buffer.from(text);
  return replaceSpans(bytes, modernToolEdits(bytes, 0)).toString();
}

for (const [title, before, after] of [
  [
    'drops execution',
    '[{"name":"a","execution":{"taskSupport":"required"},"inputSchema":{"type":"object"}}]',
    '[{"name":"a","inputSchema":{"type":"object"}}]',
  ],
  ['adds a schema', '[{"name":"a"}]', '[{"name":"a","inputSchema":{"type":"object"}}]'],
  [
    'replaces what is no schema',
    '[{"inputSchema":null}, {"inputSchema":[1]}]',
    '[{"inputSchema":{"type":"object"}}, {"inputSchema":{"type":"object"}}]',
  ],
  ['adds the type of a schema', '[{"inputSchema":{"anyOf":[]}}]', '[{"inputSchema":{"anyOf":[],"type":"object"}}]'],
  [
    'corrects the type of a schema',
    '[{"inputSchema":{"type":["object","null"]}}]',
    '[{"inputSchema":{"type":"object"}}]',
  ],
  [
    'leaves numbers as they are',
    '[{"inputSchema":{"type":"object","maximum":9223372036854775807}}]',
    '[{"inputSchema":{"type":"object","maximum":9223372036854775807}}]',
  ],
  [
    'leaves an escaped type as it is',
    '[{"inputSchema":{"type":"\\u006fbject"}}]',
    '[{"inputSchema":{"type":"\\u006fbject"}}]',
  ],
  ['leaves what is no tool', '[1,null,[]]', '[1,null,[]]'],
  ['leaves what is no list', '{"inputSchema":1}', '{"inputSchema":1}'],
  [
    'drops the only member of a schema and adds its type',
    '[{"inputSchema":{"x-mcp-header":"A"}}]',
    '[{"inputSchema":{"type":"object"}}]',
  ],
] as const) {
  test(`${title} for a modern client`, (t) => {
    t.is(modernTools(before), after);
  });
}

const annotated = { type: 'string', 'x-mcp-header': 'Region' };
const plain = { type: 'string' };

for (const [title, schema, expected] of [
  ['properties', { properties: { a: annotated } }, { properties: { a: plain } }],
  [
    'nested properties',
    { properties: { a: { properties: { b: annotated } } } },
    { properties: { a: { properties: { b: plain } } } },
  ],
  ['lists of schemas', { anyOf: [annotated, plain] }, { anyOf: [plain, plain] }],
  ['items', { items: annotated }, { items: plain }],
  ['definitions', { $defs: { a: annotated } }, { $defs: { a: plain } }],
  ['keywords nobody knows', { vendor: { deeper: [annotated] } }, { vendor: { deeper: [plain] } }],
  ['the root', { 'x-mcp-header': 1 }, {}],
  ['an annotation that looks like a schema', { items: { 'x-mcp-header': annotated } }, { items: {} }],
] as const) {
  test(`takes the names of headers out of ${title}`, (t) => {
    const [tool] = JSON.parse(modernTools(JSON.stringify([{ inputSchema: { type: 'object', ...schema } }])));
    t.deepEqual(tool.inputSchema, { type: 'object', ...expected });
  });
}

for (const [title, schema] of [
  ['a property of that name', { properties: { 'x-mcp-header': plain } }],
  ['values', { enum: [annotated], const: annotated, default: annotated, examples: [annotated] }],
  ['a value deep down', { properties: { a: { default: annotated } } }],
] as const) {
  test(`leaves ${title} alone when it takes out the names of headers`, (t) => {
    const inputSchema = { type: 'object', ...schema };
    const text = JSON.stringify([{ inputSchema }]);
    t.is(modernTools(text), text);
  });
}

test('keeps a property called like a keyword apart from the keyword', (t) => {
  const inputSchema = { type: 'object', properties: { properties: annotated, default: annotated } };
  const [tool] = JSON.parse(modernTools(JSON.stringify([{ inputSchema }])));
  t.deepEqual(tool.inputSchema.properties, { properties: plain, default: plain });
});

test('walks a schema of any depth', (t) => {
  const deep = `${'{"not":'.repeat(100_000)}{"x-mcp-header":"A"}${'}'.repeat(100_000)}`;
  t.is(
    modernTools(`[{"inputSchema":${deep}}]`).length,
    deep.length + '[{"inputSchema":}]'.length + ',"type":"object"'.length,
  );
});

test('takes long lists and schemas of any size', (t) => {
  const tools = Array.from({ length: 20_000 }, () => ({ execution: {}, inputSchema: { type: 'object' } }));
  const modern = JSON.parse(modernTools(JSON.stringify(tools)));
  t.is(modern.length, 20_000);
  t.deepEqual(modern.at(-1), { inputSchema: { type: 'object' } });
  const anyOf = Array.from({ length: 200_000 }, () => annotated);
  const properties = Object.fromEntries(anyOf.map((schema, index) => [`p${index}`, schema]));
  const wide = modernTools(JSON.stringify([{ inputSchema: { type: 'object', anyOf, properties } }]));
  t.false(wide.includes('x-mcp-header'));
});

test('gives any tools the two members that modern clients insist on, and changes no others', (t) => {
  const anySchema = fc.letrec<{ schema: unknown }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4 },
      anyJson,
      fc.dictionary(
        fc.constantFrom('type', 'x-mcp-header', 'properties', '$defs', 'anyOf', 'items', 'default', 'vendor'),
        fc.oneof(tie('schema'), fc.array(tie('schema'), { maxLength: 3 }), fc.constantFrom('object', 'string')),
        { maxKeys: 4 },
      ),
    ),
  })).schema;
  const anyTool = fc.record(
    { name: fc.string(), execution: anyJson, inputSchema: anySchema },
    { requiredKeys: ['name'] },
  );
  fc.assert(
    fc.property(fc.array(anyTool, { maxLength: 3 }), fc.integer(), (tools, seed) => {
      const text = new JsonPrinter(seed, { newlines: false }).value(tools);
      t.deepEqual(JSON.parse(modernTools(text)), JSON.parse(JSON.stringify(tools)).map(expectedTool));
    }),
    { numRuns: 500 },
  );
});

type Json = Record<string, unknown>;

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function expectedTool({ execution: _, ...tool }: Json): Json {
  const schema = isObject(tool.inputSchema) ? (withoutAnnotations(tool.inputSchema) as Json) : {};
  return { ...tool, inputSchema: { ...schema, type: 'object' } };
}

function withoutAnnotations(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutAnnotations);
  if (!isObject(schema)) return schema;
  const kept = Object.entries(schema).filter(([key]) => key !== 'x-mcp-header');
  return Object.fromEntries(kept.map(([key, value]) => [key, memberWithout(key, value)]));
}

function memberWithout(key: string, value: unknown): unknown {
  if (key === 'default' || key === 'type') return value;
  if (!isObject(value) || (key !== 'properties' && key !== '$defs')) return withoutAnnotations(value);
  return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, withoutAnnotations(schema)]));
}
