import { Ajv2020 } from 'ajv/dist/2020.js';
import test from 'ava';
import fc from 'fast-check';
import { wrapOutputSchema } from '../../../src/mcp/translate/downgrade-results.ts';

test('puts a schema into an object', (t) => {
  t.deepEqual(wrapOutputSchema({ $schema: 'urn:x', type: 'array', items: { type: 'string' } }), {
    $schema: 'urn:x',
    type: 'object',
    properties: { result: { $schema: 'urn:x', type: 'array', items: { type: 'string' } } },
    required: ['result'],
  });
});

/** What becomes of a member of the schema. */
const movedMember = (schema: object) => {
  const wrapped = wrapOutputSchema({ ...schema }) as { properties: { result: unknown } };
  return wrapped.properties.result;
};

for (const [title, before, after] of [
  ['the root', { items: { $ref: '#' } }, { items: { $ref: '#/properties/result' } }],
  ['a definition', { $ref: '#/$defs/a' }, { $ref: '#/properties/result/$defs/a' }],
  ['a dynamic root', { $dynamicRef: '#' }, { $dynamicRef: '#/properties/result' }],
  ['a place in a list', { anyOf: [{ $ref: '#/a' }] }, { anyOf: [{ $ref: '#/properties/result/a' }] }],
  ['a place in a definition', { $defs: { a: { $ref: '#/b' } } }, { $defs: { a: { $ref: '#/properties/result/b' } } }],
  [
    'a place below a property called like a keyword',
    { properties: { default: { $ref: '#/b' }, $ref: { not: { $ref: '#/b' } } } },
    { properties: { default: { $ref: '#/properties/result/b' }, $ref: { not: { $ref: '#/properties/result/b' } } } },
  ],
  [
    'a place below an anchor in the old spelling',
    { items: { $id: '#x', $ref: '#/b' } },
    { items: { $id: '#x', $ref: '#/properties/result/b' } },
  ],
] as const) {
  test(`lets a reference lead to its target still: ${title}`, (t) => {
    t.deepEqual(movedMember(before), after as unknown);
  });
}

for (const [title, schema] of [
  ['an anchor', { items: { $ref: '#a' } }],
  ['another document', { items: { $ref: 'other.json#/a' } }],
  ['a base of its own', { items: { $id: 'urn:a', $ref: '#/a' } }],
  ['a root with a base', { $id: 'urn:a', items: { $ref: '#/a' } }],
  ['data', { const: { $ref: '#' }, enum: [{ $ref: '#' }], default: { $ref: '#' }, examples: [{ $ref: '#' }] }],
  ['what is no text', { $ref: 5 }],
] as const) {
  test(`leaves a reference alone: ${title}`, (t) => {
    t.deepEqual(movedMember(schema), schema as unknown);
  });
}

test('does not follow a schema without end', (t) => {
  let deep: object = { type: 'array' };
  for (let depth = 0; depth < 100_000; depth++) deep = { items: deep };
  t.notThrows(() => wrapOutputSchema({ ...deep }));
});

test('the wrapped schema takes the wrapped value exactly when the schema takes the value', (t) => {
  const tree = {
    type: 'array',
    items: { anyOf: [{ $ref: '#/$defs/leaf' }, { $ref: '#' }] },
    $defs: { leaf: { type: 'string', maxLength: 3 } },
  };
  const ajv = new Ajv2020({ strict: false });
  const plain = ajv.compile(tree);
  const wrapped = ajv.compile(wrapOutputSchema(tree));
  const anyTree = fc.letrec((tie) => ({
    tree: fc.oneof({ maxDepth: 3 }, fc.string({ maxLength: 4 }), fc.integer(), fc.array(tie('tree'))),
  })).tree;
  fc.assert(
    fc.property(anyTree, (value) => {
      t.is(wrapped({ result: value }), plain(value));
    }),
  );
});
