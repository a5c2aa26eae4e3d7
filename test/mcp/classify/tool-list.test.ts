import test from 'ava';
import { readToolPage } from '../../../src/mcp/classify/tool-list.ts';
import { MAX_LISTED_VALUES } from '../../../src/mcp/vocabulary/payload.ts';
import { serverFrame } from '../../support/frames.ts';

const listOf = (tools: string) => serverFrame(`{"jsonrpc":"2.0","id":1,"result":{"tools":[${tools}]}}`);
const annotated = (name: string, padding = '') =>
  `{"name":"${name}","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}},"enum":[${padding}0]}}`;

test('reads the names of tools, and which of their arguments are repeated in headers', (t) => {
  const read = readToolPage(listOf(`{"name":"\\u0070lain"},${annotated('a')},{"name":1},7`));
  t.deepEqual(read?.tools, [
    { name: 'plain', annotations: { headers: [] }, taskSupport: 'forbidden' },
    { name: 'a', annotations: { headers: [{ name: 'A', path: ['a'], type: 'string' }] }, taskSupport: 'forbidden' },
  ]);
});

test('finds an annotation however it is spelled', (t) => {
  const read = readToolPage(listOf(annotated('a').replace('x-mcp', '\\u0078-mcp')));
  const annotations = read?.tools[0]?.annotations;
  t.is(annotations?.headers.length, 1);
});

test('five thousand tools with large schemas are a list like any other', (t) => {
  const tools = Array.from({ length: 5000 }, (_, index) => annotated(`t${index}`, '0,'.repeat(20)));
  t.is(readToolPage(listOf(tools.join()))?.tools.length, 5000);
});

test('a list with more values in annotated tools than are looked at is not read; values of others do not count', (t) => {
  const many = '0,'.repeat(MAX_LISTED_VALUES / 5);
  t.is(readToolPage(listOf(Array.from({ length: 6 }, (_, index) => annotated(`t${index}`, many)).join())), undefined);
  const plain = `{"name":"a","inputSchema":{"enum":[${many}0]}}`;
  t.is(readToolPage(listOf(Array.from({ length: 6 }, () => plain).join()))?.tools.length, 6);
});

test('what is no list of tools is none', (t) => {
  t.is(readToolPage(serverFrame('{"jsonrpc":"2.0","id":1,"result":{"tools":{}}}')), undefined);
  t.is(readToolPage(serverFrame('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}')), undefined);
});

for (const [execution, taskSupport] of [
  ['{"taskSupport":"required"}', 'required'],
  ['{"t\\u0061skSupport":"required"}', 'required'],
  ['{"taskSupport":"optional"}', 'optional'],
  ['{"taskSupport":"forbidden"}', 'forbidden'],
  ['{"taskSupport":"sometimes"}', 'forbidden'],
  ['{"taskSupport":true}', 'forbidden'],
  ['{"taskSupport":"required"},"execution":{}', 'forbidden'],
  ['["taskSupport"]', 'forbidden'],
] as const) {
  test(`to run a tool as a task is ${taskSupport} with "execution":${execution}`, (t) => {
    t.is(readToolPage(listOf(`{"name":"a","execution":${execution}}`))?.tools[0]?.taskSupport, taskSupport);
  });
}

const page = (result: string) => readToolPage(serverFrame(`{"jsonrpc":"2.0","id":1,"result":${result}}`));

const GOOD = '{"name":"good","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}';
const BAD = '{"name":"bad","inputSchema":{"x-mcp-header":"A"}}';

for (const [title, result] of [
  ['without tools', '{"prompts":[]}'],
  ['whose tools are no list', '{"tools":{}}'],
  ['whose tools occur twice', `{"tools":[${GOOD}],"tools":[${BAD}]}`],
  ['whose list has no end', '{"tools":[{"a":1},x"}'],
  ['that is no object', '[]'],
] as const) {
  test(`a result ${title} is no page of tools`, (t) => {
    t.is(page(result), undefined);
  });
}

test('an error is no page of tools', (t) => {
  t.is(readToolPage(serverFrame({ id: 1, error: { code: 1, message: 'm' } })), undefined);
});

test('a page tells its tools, where the next one begins and how long it stays good', (t) => {
  const read = page(`{"nextCursor":"c","ttlMs":5,"tools":[${GOOD},${BAD}]}`);
  t.is(read?.nextCursor, 'c');
  t.is(read?.ttlMs, 5);
  t.deepEqual(
    read?.tools.map(({ name, annotations }) => [name, 'invalid' in annotations]),
    [
      ['good', false],
      ['bad', true],
    ],
  );
  t.is(read?.tools[0]?.annotations.headers[0]?.name, 'A');
});

for (const hints of ['', '"ttlMs":-1,"nextCursor":null,', '"ttlMs":"9","nextCursor":7,']) {
  test(`hints that are not right count for nothing: ${hints}`, (t) => {
    const read = page(`{${hints}"tools":[]}`);
    t.deepEqual([read?.ttlMs, read?.nextCursor], [0, undefined]);
  });
}

test('a page without anything to hide is shown as it is, whatever else is in it', (t) => {
  const frame = serverFrame(`{"jsonrpc":"2.0","id":1,"result":{"tools":[ ${GOOD} , 7, {"name":null}, {"x":NaN}]}}`);
  const read = readToolPage(frame);
  t.is(read?.shown, frame);
  t.is(read?.tools.length, 1);
});

for (const [items, kept] of [
  [[BAD], ''],
  [[BAD, GOOD], GOOD],
  [[GOOD, BAD], GOOD],
  [[GOOD, BAD, ' {"name" : "p"}'], `${GOOD},{"name" : "p"}`],
  [[BAD, BAD], ''],
] as const) {
  test(`of ${items.map((item) => JSON.parse(item).name)} only those that may be shown are left`, (t) => {
    const text = (list: string) => `{"jsonrpc":"2.0","result":{"a":1.0,"tools":${list} ,"b":[]},"id":1}`;
    const read = readToolPage(serverFrame(text(`[ ${items.join(' ,\t')} ]`)));
    t.is(read?.shown.bytes.toString(), text(`[${kept}]`));
    t.is(read?.shown.id, 1);
  });
}
