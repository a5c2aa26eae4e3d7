import test from 'ava';
import { readHeaderAnnotations } from '../../../src/mcp/classify/param-headers.ts';

const named = (name: unknown, type: unknown = 'string') => ({ type, 'x-mcp-header': name });
const tool = (properties: object, rest: object = {}) => ({ type: 'object', properties, ...rest });

for (const [title, schema, headers] of [
  ['nothing', tool({ a: { type: 'string' } }), []],
  ['no schema', undefined, []],
  ['a list for a schema', [named('A')].slice(1), []],
  [
    'all types',
    tool({ s: named('S'), i: named('I', 'integer'), b: named('B', 'boolean') }),
    [
      { name: 'S', path: ['s'], type: 'string' },
      { name: 'I', path: ['i'], type: 'integer' },
      { name: 'B', path: ['b'], type: 'boolean' },
    ],
  ],
  [
    'nested properties',
    tool({ a: tool({ 'b.c': tool({ __proto__x: named('Deep') }) }) }),
    [{ name: 'Deep', path: ['a', 'b.c', '__proto__x'], type: 'string' }],
  ],
  [
    'properties called like keywords',
    tool({ items: named('A'), properties: named('B'), 'x-mcp-header': named('C') }),
    [
      { name: 'A', path: ['items'], type: 'string' },
      { name: 'B', path: ['properties'], type: 'string' },
      { name: 'C', path: ['x-mcp-header'], type: 'string' },
    ],
  ],
  ['data that looks like one', tool({ a: { default: named('A'), enum: [named('A')], const: named('A') } }), []],
  ['a keyword nobody knows', tool({}, { 'x-vendor': named('A') }), []],
  [
    'every character of a token',
    tool({ a: named("!#$%&'*+-.^_`|~09azAZ") }),
    [{ name: "!#$%&'*+-.^_`|~09azAZ", path: ['a'], type: 'string' }],
  ],
] as const) {
  test(`reads the headers of a schema: ${title}`, (t) => {
    t.deepEqual(readHeaderAnnotations(schema), { headers } as unknown);
  });
}

for (const [title, schema, invalid] of [
  ['an empty name', tool({ a: named('') }), 'the name of a header is no token'],
  ['a name with a blank', tool({ a: named('My Region') }), 'the name of a header is no token'],
  ['a name with a colon', tool({ a: named('Region:Primary') }), 'the name of a header is no token'],
  ['a name beyond ASCII', tool({ a: named('Région') }), 'the name of a header is no token'],
  ['a name with a line break', tool({ a: named('Region\nX') }), 'the name of a header is no token'],
  ['a name that ends with a line break', tool({ a: named('Region\n') }), 'the name of a header is no token'],
  ['a name that is no text', tool({ a: named(5) }), 'the name of a header is no token'],
  ['one name twice', tool({ a: named('A'), b: named('A') }), '"A" names two headers'],
  [
    'one name in two cases',
    tool({ a: named('Region'), b: tool({ c: named('REGION') }) }),
    '"REGION" names two headers',
  ],
  [
    'an object',
    tool({ a: { ...tool({}), 'x-mcp-header': 'A' } }),
    '"A" names a header for a value that is not primitive',
  ],
  ['a list', tool({ a: named('A', 'array') }), '"A" names a header for a value that is not primitive'],
  ['null', tool({ a: named('A', 'null') }), '"A" names a header for a value that is not primitive'],
  [
    'several types',
    tool({ a: named('A', ['string', 'null']) }),
    '"A" names a header for a value that is not primitive',
  ],
  ['no type', tool({ a: { 'x-mcp-header': 'A' } }), '"A" names a header for a value that is not primitive'],
  [
    'the arguments as a whole',
    { ...tool({}), 'x-mcp-header': 'A' },
    'a header is named where no single argument has its place',
  ],
  ...[
    ['items', named('A')],
    ['prefixItems', [named('A')]],
    ['contains', named('A')],
    ['additionalProperties', named('A')],
    ['unevaluatedProperties', named('A')],
    ['propertyNames', named('A')],
    ['patternProperties', { '^a': named('A') }],
    ['dependentSchemas', { a: tool({ b: named('A') }) }],
    ['oneOf', [tool({ a: named('A') })]],
    ['anyOf', [tool({ a: named('A') })]],
    ['allOf', [tool({ a: named('A') })]],
    ['not', tool({ a: named('A') })],
    ['if', tool({ a: named('A') })],
    ['then', tool({ a: named('A') })],
    ['else', tool({ a: named('A') })],
    ['$defs', { x: named('A') }],
    ['definitions', { x: named('A') }],
  ].map(
    ([keyword, value]) =>
      [
        `a place under ${keyword}`,
        tool({}, Object.fromEntries([[keyword, value]])),
        'a header is named where no single argument has its place',
      ] as const,
  ),
  [
    'a place under items of a property',
    tool({ a: { type: 'array', items: tool({ b: named('A') }) } }),
    'a header is named where no single argument has its place',
  ],
] as const) {
  test(`finds fault with a schema that names a header for ${title}`, (t) => {
    t.deepEqual(readHeaderAnnotations(schema), { invalid, headers: [] });
  });
}

test('finds fault with a header for a number, and keeps it for a tool that is called all the same', (t) => {
  t.deepEqual(readHeaderAnnotations(tool({ a: named('A', 'number'), b: named('B') })), {
    invalid: '"A" names a header for a value of type number',
    headers: [
      { name: 'A', path: ['a'], type: 'number' },
      { name: 'B', path: ['b'], type: 'string' },
    ],
  });
  const worse = readHeaderAnnotations(tool({ a: named('A', 'number'), b: named('a') }));
  t.deepEqual(worse, { invalid: '"a" names two headers', headers: [] });
});

test('looks neither deeper nor further than any schema of use goes', (t) => {
  let deep: object = tool({ a: named('Deep') });
  for (let depth = 0; depth < 100_000; depth++) deep = tool({ a: deep });
  t.deepEqual(readHeaderAnnotations(deep), { headers: [] });
  const wide = tool(
    Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`p${index}`, named(`H${index}`)])),
  );
  t.is(readHeaderAnnotations(wide).headers.length, 9_999);
});
