import test from 'ava';
import { readDefinitions, type ToolDefinition } from '../../../src/mcp/classify/tool-definition.ts';
import { serverFrame } from '../../support/frames.ts';

const list = (tools: string, more = '') => serverFrame(`{"jsonrpc":"2.0","id":1,"result":{"tools":${tools}${more}}}`);
const read = (tools: string): readonly ToolDefinition[] => readDefinitions(list(tools))?.tools ?? [];
const one = (tool: string) => read(`[${tool}]`)[0];

const FULL =
  '{"name":"a","title":"A","description":"does a","inputSchema":{"type":"object","properties":{"x":{"maximum":1}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}';

test('a tool has a digest of each part that it has, and of no other member', (t) => {
  const full = one(FULL);
  t.is(full?.name, 'a');
  t.deepEqual(Object.keys(full?.digests ?? {}), ['title', 'description', 'inputSchema', 'outputSchema', 'annotations']);
  for (const digest of Object.values(full?.digests ?? {})) t.regex(digest, /^[\w-]{43}$/);
  t.deepEqual(one('{"name":"a"}'), { name: 'a', digests: {} });
  const more = FULL.replace(/}$/, ',"icons":[{"src":"a:b"}],"_meta":{"x":1},"execution":{"taskSupport":"required"}}');
  t.deepEqual(one(more), full);
});

test('the order of keys is no change, in a tool and in its schemas', (t) => {
  const { name, title, description, inputSchema, outputSchema, annotations } = JSON.parse(FULL);
  const { type, properties } = inputSchema;
  const shuffled = { annotations, outputSchema, inputSchema: { properties, type }, description, title, name };
  t.deepEqual(one(JSON.stringify(shuffled, undefined, 2).replaceAll('\n', ' ')), one(FULL));
});

for (const [part, changed] of [
  ['title', FULL.replace('"A"', '"B"')],
  ['description', FULL.replace('does a', 'does a and more')],
  ['inputSchema', FULL.replace('"maximum":1', '"maximum":2')],
  ['outputSchema', FULL.replace('"outputSchema":{"type":"object"}', '"outputSchema":{"type":"array"}')],
  ['annotations', FULL.replace('true', 'false')],
] as const) {
  test(`a change of ${part} changes the digest of that part only`, (t) => {
    const [before, after] = [one(FULL)?.digests, one(changed)?.digests];
    if (before === 'unclear' || after === 'unclear' || before === undefined || after === undefined) return t.fail();
    const parts = Object.keys(before).filter((key) => Reflect.get(before, key) !== Reflect.get(after, key));
    t.deepEqual(parts, [part]);
  });
}

for (const tool of [
  '{"name":"a","description":"x","description":"y"}',
  '{"name":"a","description":"x","Description":"y"}',
  '{"name":"a","INPUTSCHEMA":{}}',
  '{"name":"a","description":"\\q"}',
  `{"name":"a","inputSchema":${'['.repeat(300)}${']'.repeat(300)}}`,
]) {
  test(`a tool that clients could read in several ways is unclear: ${tool.slice(0, 60)}`, (t) => {
    t.deepEqual(one(tool), { name: 'a', digests: 'unclear' });
  });
}

test('items without a clear name are left out', (t) => {
  t.deepEqual(read('[{"title":"x"},7,null,{"name":7},{"name":"a","Name":"b"},{"name":"a","name":"a"},{"name":"b"}]'), [
    { name: 'b', digests: {} },
  ]);
});

test('a page has a cursor if there are more', (t) => {
  t.is(readDefinitions(list('[]', ',"nextCursor":"c"'))?.nextCursor, 'c');
  t.is(readDefinitions(list('[]'))?.nextCursor, undefined);
});

test('what is no list of tools cannot be read', (t) => {
  for (const result of ['{}', '{"tools":{}}', '{"tools":[],"tools":[]}', '{"tools":null}', '[]']) {
    t.is(readDefinitions(serverFrame(`{"jsonrpc":"2.0","id":1,"result":${result}}`)), undefined);
  }
  t.is(readDefinitions(serverFrame('{"jsonrpc":"2.0","id":1,"error":{"tools":[]}}')), undefined);
});
