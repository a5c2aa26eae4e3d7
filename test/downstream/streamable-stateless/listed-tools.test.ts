import test from 'ava';
import { ListedTools } from '../../../src/downstream/streamable-stateless/endpoint.ts';
import { TOOL_LIMITS } from '../../../src/relay/tool-catalog.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';
import { startHttpHarness } from '../../support/http-harness.ts';
import { modern, nextCall, postModern, type RpcBody } from './modern-posts.ts';

const region = { type: 'string', 'x-mcp-header': 'Region' };
const count = { type: 'integer', 'x-mcp-header': 'Count' };
const tool = (name: string, properties: object) => ({ name, inputSchema: { type: 'object', properties } });
const page = (...tools: object[]) => serverFrame({ id: 1, result: { tools } });
const callOf = (name: string, args: object) =>
  clientFrame({ id: 1, method: 'tools/call', params: { name, arguments: args } });

function listed(...tools: object[]): ListedTools {
  const known = new ListedTools();
  known.note('ann', page(...tools));
  return known;
}

const check = test.macro({
  title: (what = '') => `a header for an argument: ${what}`,
  exec(t, args: object, headers: Readonly<Record<string, string>>, fault: RegExp | undefined) {
    const known = listed(tool('route', { region, count }));
    const found = known.findFault('ann', callOf('route', args), { 'mcp-name': 'route', ...headers });
    if (fault === undefined) t.is(found, undefined);
    else t.regex(found ?? '', fault);
  },
});

test('repeats it', check, { region: 'eu' }, { 'mcp-param-region': 'eu' }, undefined);
test('repeats it in Base64', check, { region: 'é' }, { 'mcp-param-region': '=?base64?w6k=?=' }, undefined);
test('is missing', check, { region: 'eu' }, {}, /Mcp-Param-Region header is missing/);
test('differs', check, { region: 'eu' }, { 'mcp-param-region': 'us' }, /does not match/);
test('is broken', check, { region: 'eu' }, { 'mcp-param-region': '=?base64?w6k?=' }, /not encoded/);
test('is compared as a number', check, { count: 42 }, { 'mcp-param-count': '42.0' }, undefined);
test('is there although the argument is null', check, { region: null }, { 'mcp-param-region': 'x' }, undefined);
test('is there although the argument is not', check, {}, { 'mcp-param-region': 'x' }, undefined);
test('is none that the tool names', check, {}, { 'mcp-param-other': 'x' }, undefined);

test('tools that another caller was shown, or nobody, are not checked', (t) => {
  const known = listed(tool('route', { region }));
  const wrong = callOf('route', { region: 'eu' });
  t.is(known.findFault('bob', wrong, { 'mcp-name': 'route' }), undefined);
  t.is(known.findFault('ann', callOf('other', { region: 'eu' }), { 'mcp-name': 'other' }), undefined);
  t.truthy(known.findFault('ann', wrong, { 'mcp-name': 'route' }));
});

test('the name of a tool may come in Base64', (t) => {
  const known = listed(tool('röute', { region }));
  const name = `=?base64?${Buffer.from('röute').toString('base64')}?=`;
  t.truthy(known.findFault('ann', callOf('röute', { region: 'eu' }), { 'mcp-name': name }));
});

test('so many tools of a caller are remembered, and of long ones, which a server chooses, fewer', (t) => {
  const isKnown = (known: ListedTools, name: string): boolean =>
    known.findFault('ann', callOf(name, { region: 'eu' }), { 'mcp-name': name }) !== undefined;
  const many = Array.from({ length: TOOL_LIMITS.count + 1 }, (_, n) => `t${n}`);
  const all = listed(...many.map((name) => tool(name, { region })));
  t.deepEqual([isKnown(all, 't0'), isKnown(all, many.at(-1) as string)], [false, true]);
  const wide = Object.fromEntries(
    [1, 2, 3].map((n) => [`${n}`.padEnd(20_000, 'x'), { type: 'string', 'x-mcp-header': `H${n}` }]),
  );
  const names = ['a', 'b', 'c', 'd', 'e'];
  const few = listed(...names.map((name) => tool(name, { region, ...wide })));
  t.deepEqual(
    names.filter((name) => isKnown(few, name)),
    ['b', 'c', 'd', 'e'],
  );
});

test('a later list counts: headers go, change and come', (t) => {
  const known = listed(tool('a', { region }), tool('b', { region }));
  known.note('ann', page(tool('a', { region: { type: 'string' } })));
  const args = { region: 'eu' };
  t.is(known.findFault('ann', callOf('a', args), { 'mcp-name': 'a' }), undefined);
  t.truthy(known.findFault('ann', callOf('b', args), { 'mcp-name': 'b' }), 'another page says nothing of it');
});

test('a tool whose annotations are not valid is not checked', (t) => {
  const known = listed(tool('a', { region: { type: 'object', 'x-mcp-header': 'Region' } }), tool('b', { region }));
  t.is(known.findFault('ann', callOf('a', { region: 'eu' }), { 'mcp-name': 'a' }), undefined);
});

for (const [what, message] of [
  ['an error', { id: 1, error: { code: 1, message: '"x-mcp-header"' } }],
  ['no list', { id: 1, result: { tools: { 'x-mcp-header': 1 } } }],
  ['odd items', { id: 1, result: { tools: [1, null, { name: 1 }, { 'x-mcp-header': 'x' }] } }],
] as const) {
  test(`learns nothing from ${what}`, (t) => {
    const known = new ListedTools();
    t.notThrows(() => known.note('ann', serverFrame(message)));
    t.is(known.findFault('ann', callOf('a', {}), { 'mcp-name': 'a' }), undefined);
  });
}

test('the callers who listed their tools longest ago are forgotten', (t) => {
  const known = listed(tool('route', { region }));
  for (let n = 0; n < 300; n += 1) known.note(`p${n}`, page(tool('route', { region })));
  const wrong = callOf('route', { region: 'eu' });
  t.is(known.findFault('ann', wrong, { 'mcp-name': 'route' }), undefined);
  t.truthy(known.findFault('p299', wrong, { 'mcp-name': 'route' }));
});

test('a call whose Mcp-Param header contradicts its arguments is refused with 400 and -32020, once its tool was listed', async (t) => {
  const harness = await startHttpHarness(t);
  harness.server.scripts.set('tools/list', (request, link) =>
    link.answer(request, { tools: [tool('route', { region })] }),
  );
  const call = modern(2, 'tools/call', { name: 'route', arguments: { region: 'eu' } });
  const early = postModern(harness, call, { 'Mcp-Param-Region': 'us' });
  const link = await nextCall(harness, 1);
  link.answer(await link.next('tools/call'));
  t.is((await early).status, 200, 'nobody has listed it');
  await (await postModern(harness, modern(1, 'tools/list'))).text();
  for (const given of [{ 'Mcp-Param-Region': 'us' }, {}]) {
    const refused = await postModern(harness, call, given);
    t.is(refused.status, 400);
    t.like(await refused.json<RpcBody>(), { id: 2, error: { code: -32020 } });
  }
  harness.server.scripts.set('tools/call', (request, connection) => connection.answer(request));
  t.is((await postModern(harness, call, { 'mcp-param-region': 'eu' })).status, 200);
});
