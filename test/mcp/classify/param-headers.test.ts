import test from 'ava';
import fc from 'fast-check';
import {
  checkParamHeaders,
  type ParamHeader,
  type ParamType,
  paramHeadersFor,
} from '../../../src/mcp/classify/param-headers.ts';
import { encodeHeaderValue, type HeaderMap } from '../../../src/mcp/vocabulary/headers.ts';
import { clientFrame } from '../../support/frames.ts';
import { anyText } from '../../wire/json-text.ts';

const call = (args: string) =>
  clientFrame(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":${args}}}`);
const header = (type: ParamType, path: readonly string[] = ['a']): ParamHeader => ({ name: 'A', path, type });

function built(type: ParamType, args: string, path?: readonly string[]): string | undefined {
  const headers = paramHeadersFor([header(type, path)], call(args));
  return headers[0]?.[1];
}

for (const [title, type, args, value] of [
  ['a text', 'string', '{"a":"us-west1"}', 'us-west1'],
  ['a text with escapes', 'string', '{"\\u0061":"\\u0062"}', 'b'],
  ['a text beyond ASCII', 'string', '{"a":"Hello, 世界"}', '=?base64?SGVsbG8sIOS4lueVjA==?='],
  ['an empty text', 'string', '{"a":""}', '=?base64??='],
  ['a text with a line break', 'string', '{"a":"x\\r\\ny"}', '=?base64?eA0KeQ==?='],
  ['a text with a tab', 'string', '{"a":"x\\ty"}', '=?base64?eAl5?='],
  ['a text that looks encoded', 'string', '{"a":"=?base64?="}', '=?base64?PT9iYXNlNjQ/PQ==?='],
  ['an integer', 'integer', '{"a":42}', '42'],
  ['a negative integer', 'integer', '{"a":-7}', '-7'],
  ['an integer with a fraction of nothing', 'integer', '{"a":42.0}', '42'],
  ['an integer with an exponent', 'integer', '{"a":1e3}', '1000'],
  ['the largest integer', 'integer', '{"a":9007199254740991}', '9007199254740991'],
  ['an integer beyond it', 'integer', '{"a":9007199254740993}', undefined],
  ['a fraction for an integer', 'integer', '{"a":1.5}', undefined],
  ['a text for an integer', 'integer', '{"a":"1"}', undefined],
  ['true', 'boolean', '{"a":true}', 'true'],
  ['false', 'boolean', '{"a":false}', 'false'],
  ['a text for a boolean', 'boolean', '{"a":"true"}', undefined],
  ['a number for a text', 'string', '{"a":1}', undefined],
  ['a fraction', 'number', '{"a":1.5}', '1.5'],
  ['a number beyond all', 'number', '{"a":1e400}', undefined],
  ['null', 'string', '{"a":null}', undefined],
  ['an object', 'string', '{"a":{}}', undefined],
  ['a list', 'string', '{"a":[]}', undefined],
  ['nothing', 'string', '{"b":"x"}', undefined],
  ['arguments that are null', 'string', 'null', undefined],
  ['an argument that occurs twice', 'string', '{"a":"x","a":"y"}', undefined],
] as const) {
  test(`builds a header for ${title}`, (t) => {
    t.is(built(type, args), value);
  });
}

test('builds headers for values at their exact path', (t) => {
  t.is(built('string', '{"a":{"b.c":{"d":"x"}},"b.c":"y"}', ['a', 'b.c', 'd']), 'x');
  t.is(built('string', '{"a":"x"}', ['a', 'b']), undefined);
  t.is(built('string', '{"a":[{"b":"x"}]}', ['a', 'b']), undefined);
  t.is(built('string', '{}', ['constructor', 'name']), undefined);
  t.deepEqual(paramHeadersFor([header('string')], clientFrame({ id: 1, method: 'tools/call', params: {} })), []);
});

test('names headers as the schema does', (t) => {
  const annotations: readonly ParamHeader[] = [
    { name: 'Region', path: ['r'], type: 'string' },
    { name: 'x', path: ['n'], type: 'integer' },
  ];
  t.deepEqual(paramHeadersFor(annotations, call('{"n":1,"r":"w"}')), [
    ['Mcp-Param-Region', 'w'],
    ['Mcp-Param-x', '1'],
  ]);
});

for (const [title, type, args, value, fault] of [
  ['the same text', 'string', '{"a":"x"}', 'x', undefined],
  ['the same text encoded', 'string', '{"a":"x"}', '=?base64?eA==?=', undefined],
  ['the same text between blanks', 'string', '{"a":"x"}', '\tx ', undefined],
  ['another text', 'string', '{"a":"x"}', 'X', 'the Mcp-Param-A header does not match the arguments'],
  [
    'no header',
    'string',
    '{"a":"x"}',
    undefined,
    'the Mcp-Param-A header is missing; if the client sends it, a proxy on the way removes it',
  ],
  ['a list of headers', 'string', '{"a":"x"}', ['x', 'x'], 'the Mcp-Param-A header is not encoded as it should be'],
  ['a broken header', 'string', '{"a":"x"}', '=?base64?e?=', 'the Mcp-Param-A header is not encoded as it should be'],
  ['bytes beyond ASCII', 'string', '{"a":"é"}', 'é', 'the Mcp-Param-A header is not encoded as it should be'],
  ['an empty text encoded', 'string', '{"a":""}', '=?base64??=', undefined],
  ['an empty text', 'string', '{"a":""}', '', undefined],
  ['the same number in other words', 'integer', '{"a":42}', '42.0', undefined],
  ['the same number in other words in the body', 'integer', '{"a":4.2e1}', '42', undefined],
  ['a number with an exponent', 'integer', '{"a":100}', '1e2', 'the Mcp-Param-A header does not match the arguments'],
  ['another number', 'integer', '{"a":42}', '43', 'the Mcp-Param-A header does not match the arguments'],
  ['no number', 'integer', '{"a":0}', '', 'the Mcp-Param-A header does not match the arguments'],
  ['a text for an integer', 'integer', '{"a":"042"}', '42', 'the Mcp-Param-A header does not match the arguments'],
  ['a boolean', 'boolean', '{"a":true}', 'true', undefined],
  ['a boolean in capitals', 'boolean', '{"a":true}', 'True', 'the Mcp-Param-A header does not match the arguments'],
  ['a header for null', 'string', '{"a":null}', 'x', undefined],
  ['a header for nothing', 'string', '{}', 'x', undefined],
  ['no header for an object', 'string', '{"a":{}}', undefined, undefined],
  ['no header for a number nobody can hold', 'integer', '{"a":1e300}', undefined, undefined],
  [
    'an argument that occurs twice',
    'string',
    '{"a":"x","a":"y"}',
    'x',
    'the value that Mcp-Param-A repeats occurs several times',
  ],
] as const) {
  test(`checks a header: ${title}`, (t) => {
    t.is(checkParamHeaders([header(type)], call(args), { 'mcp-param-a': value } as HeaderMap), fault);
  });
}

test('is not led astray by arguments that occur twice', (t) => {
  const frame = clientFrame(
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"a":"x"},"Arguments":{"a":"y"}}}',
  );
  const fault = 'the value that Mcp-Param-A repeats occurs several times';
  t.is(checkParamHeaders([header('string')], frame, { 'mcp-param-a': 'x' }), fault);
  t.deepEqual(paramHeadersFor([header('string')], frame), []);
});

test('a value with half a surrogate pair matches no header', (t) => {
  const frame = call(JSON.stringify({ a: '\udc00' }));
  const given = { 'mcp-param-a': encodeHeaderValue('\ufffd') };
  t.regex(
    checkParamHeaders([header('string')], frame, given) ?? '',
    /^the value that Mcp-Param-A repeats is no Unicode/,
  );
});

test('ignores headers that no annotation names', (t) => {
  t.is(checkParamHeaders([], call('{"a":"x"}'), { 'mcp-param-a': 'y', 'mcp-param-b': '=?base64?*?=' }), undefined);
});

test('what is built passes the check', (t) => {
  const annotations: readonly ParamHeader[] = [
    { name: 'S', path: ['o', 's'], type: 'string' },
    { name: 'I', path: ['i'], type: 'integer' },
    { name: 'B', path: ['b'], type: 'boolean' },
  ];
  const anyArguments = fc.record({ o: fc.record({ s: anyText }), i: fc.maxSafeInteger(), b: fc.boolean() });
  fc.assert(
    fc.property(anyArguments, (args) => {
      fc.pre(Buffer.from(args.o.s).toString() === args.o.s);
      const frame = call(JSON.stringify(args));
      const headers = paramHeadersFor(annotations, frame);
      t.is(headers.length, 3);
      const map = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]));
      t.is(checkParamHeaders(annotations, frame, map), undefined);
    }),
  );
});
