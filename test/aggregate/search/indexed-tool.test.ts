import test from 'ava';
import { readIndexedTool } from '../../../src/aggregate/search/indexed-tool.ts';

test('reads title, first sentence, rest of the description, and the parameters of all levels', (t) => {
  const tool = readIndexedTool('s', 's__a', {
    name: 'a',
    title: 'Title',
    description: 'Does v1.2 things. Then more.',
    inputSchema: {
      properties: {
        one: { description: 'first', properties: { inner: { description: 'nested' } } },
        many: { items: { properties: { each: {} } } },
        either: { anyOf: [{ properties: { this: {} } }, { properties: { that: {} } }] },
      },
      $defs: { Shared: { properties: { shared: {} } } },
    },
  });
  t.deepEqual(tool, {
    server: 's',
    name: 's__a',
    title: 'Title',
    summary: 'Does v1.2 things.',
    details: ' Then more.',
    parameters: 'one inner many each either this that shared ',
    parameterTexts: 'first nested       ',
  });
});

test('takes the title of the annotations if there is no other', (t) => {
  t.is(readIndexedTool('s', 'a', { annotations: { title: 'Old' } }).title, 'Old');
  t.is(readIndexedTool('s', 'a', { title: 'New', annotations: { title: 'Old' } }).title, 'New');
});

test('reads nothing from members of other types', (t) => {
  const empty = { title: '', summary: '', details: '', parameters: '', parameterTexts: '' };
  for (const inputSchema of [7, null, [], 'x', { properties: [1] }, { anyOf: { a: 1 }, items: [[]], $defs: 3 }]) {
    const tool = readIndexedTool('s', 'a', { title: 1, description: {}, annotations: [], inputSchema });
    t.deepEqual(tool, { server: 's', name: 'a', ...empty });
  }
});

test('reads a limited part of a long description, and of many or deep parameters', (t) => {
  const properties = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`parameter${index}`, {}]));
  const tool = readIndexedTool('s', 'a', { description: 'word '.repeat(10_000), inputSchema: { properties } });
  t.true(tool.summary.length <= 300);
  t.true(tool.summary.length + tool.details.length <= 2000);
  t.true(tool.parameters.length + tool.parameterTexts.length < 3000);
  let deep: object = {};
  for (let depth = 0; depth < 500; depth++) deep = { properties: { [`d${depth}`]: deep } };
  t.is(readIndexedTool('s', 'a', { inputSchema: deep }).parameters, 'd499 d498 d497 d496 d495 ');
});
