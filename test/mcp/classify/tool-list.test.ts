import test from 'ava';
import { readToolList } from '../../../src/mcp/classify/tool-list.ts';
import { MAX_LISTED_VALUES } from '../../../src/mcp/vocabulary/payload.ts';
import { serverFrame } from '../../support/frames.ts';

const listOf = (tools: string) => serverFrame(`{"jsonrpc":"2.0","id":1,"result":{"tools":[${tools}]}}`);
const annotated = (name: string, padding = '') =>
  `{"name":"${name}","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}},"enum":[${padding}0]}}`;

test('reads the names of tools, and which of their arguments are repeated in headers', (t) => {
  const read = readToolList(listOf(`{"name":"\\u0070lain"},${annotated('a')},{"name":1},7`));
  t.deepEqual(
    read?.items.map(({ tool }) => tool),
    [
      { name: 'plain', annotations: { headers: [] } },
      { name: 'a', annotations: { headers: [{ name: 'A', path: ['a'], type: 'string' }] } },
      undefined,
      undefined,
    ],
  );
});

test('finds an annotation however it is spelled', (t) => {
  const read = readToolList(listOf(annotated('a').replace('x-mcp', '\\u0078-mcp')));
  const annotations = read?.items[0]?.tool?.annotations;
  t.is(annotations?.headers.length, 1);
});

test('five thousand tools with large schemas are a list like any other', (t) => {
  const tools = Array.from({ length: 5000 }, (_, index) => annotated(`t${index}`, '0,'.repeat(20)));
  t.is(readToolList(listOf(tools.join()))?.items.length, 5000);
});

test('a list with more values in annotated tools than are looked at is not read; values of others do not count', (t) => {
  const many = '0,'.repeat(MAX_LISTED_VALUES / 5);
  t.is(readToolList(listOf(Array.from({ length: 6 }, (_, index) => annotated(`t${index}`, many)).join())), undefined);
  const plain = `{"name":"a","inputSchema":{"enum":[${many}0]}}`;
  t.is(readToolList(listOf(Array.from({ length: 6 }, () => plain).join()))?.items.length, 6);
});

test('what is no list of tools is none', (t) => {
  t.is(readToolList(serverFrame('{"jsonrpc":"2.0","id":1,"result":{"tools":{}}}')), undefined);
  t.is(readToolList(serverFrame('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}')), undefined);
});
