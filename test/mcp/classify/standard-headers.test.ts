import test from 'ava';
import fc from 'fast-check';
import { checkStandardHeaders, standardHeaders } from '../../../src/mcp/classify/route-era.ts';
import { encodeHeaderValue, type HeaderLine, type HeaderMap } from '../../../src/mcp/vocabulary/headers.ts';
import { clientFrame } from '../../support/frames.ts';
import { anyText } from '../../wire/json-text.ts';

const REVISION = '2026-07-28';
const request = (method: string, params?: object) => clientFrame({ id: 1, method, ...(params && { params }) });
const asMap = (headers: readonly HeaderLine[]): HeaderMap =>
  Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]));

for (const [method, params, name] of [
  ['tools/call', { name: 'x', uri: 'y', taskId: 'z' }, 'x'],
  ['prompts/get', { name: 'ü' }, '=?base64?w7w=?='],
  ['resources/read', { uri: 'file:///a b', name: 'x' }, 'file:///a b'],
  ['resources/read', { uri: 'a\r\nX: 1' }, '=?base64?YQ0KWDogMQ==?='],
  ['tasks/get', { taskId: 't' }, 't'],
  ['tasks/update', { taskId: 't' }, 't'],
  ['tasks/cancel', { taskId: 't' }, 't'],
  ['tools/list', { name: 'x' }, undefined],
  ['tasks/result', { taskId: 't' }, undefined],
  ['tools/call', { name: 5 }, undefined],
  ['tools/call', {}, undefined],
  ['tools/call', undefined, undefined],
  ['vendor/x', { name: 'x' }, undefined],
] as const) {
  test(`builds the headers of ${method} with ${JSON.stringify(params)}`, (t) => {
    const headers = standardHeaders(request(method, params), REVISION);
    const expected: HeaderLine[] = [
      ['MCP-Protocol-Version', REVISION],
      ['Mcp-Method', method],
    ];
    if (name !== undefined) expected.push(['Mcp-Name', name]);
    t.deepEqual(headers, expected);
    t.is(checkStandardHeaders(request(method, params), REVISION, asMap(headers)), undefined);
  });
}

test('never lets a method or revision end its header', (t) => {
  const headers = standardHeaders(request('a\r\nX: 1'), '1\n2');
  t.deepEqual(
    headers.map(([, value]) => value),
    ['=?base64?MQoy?=', '=?base64?YQ0KWDogMQ==?='],
  );
});

test('a name with half a surrogate pair matches no header, least of all one with a replacement character', (t) => {
  const frame = request('tools/call', { name: 'a\ud800' });
  const others = { 'mcp-protocol-version': REVISION, 'mcp-method': 'tools/call' };
  for (const text of ['a\ufffd', 'a']) {
    const fault = checkStandardHeaders(frame, REVISION, { ...others, 'mcp-name': encodeHeaderValue(text) });
    t.regex(fault ?? '', /^params.name is no Unicode text/);
  }
});

test('gives a name that occurs twice no header', (t) => {
  const frame = clientFrame('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}');
  t.is(standardHeaders(frame, REVISION).length, 2);
});

const good = { 'mcp-protocol-version': REVISION, 'mcp-method': 'tools/call', 'mcp-name': 'x' };
const call = request('tools/call', { name: 'x' });

for (const [title, headers, fault] of [
  [
    'no version',
    { ...good, 'mcp-protocol-version': undefined },
    'the MCP-Protocol-Version header is missing; if the client sends it, a proxy on the way removes it',
  ],
  [
    'another version',
    { ...good, 'mcp-protocol-version': '2025-11-25' },
    'the MCP-Protocol-Version header does not match the body',
  ],
  [
    'two versions',
    { ...good, 'mcp-protocol-version': [REVISION, REVISION] },
    'the MCP-Protocol-Version header does not match the body',
  ],
  [
    'no method',
    { ...good, 'mcp-method': undefined },
    'the Mcp-Method header is missing; if the client sends it, a proxy on the way removes it',
  ],
  [
    'a method in another case',
    { ...good, 'mcp-method': 'Tools/Call' },
    'the Mcp-Method header does not match the body',
  ],
  [
    'an encoded method',
    { ...good, 'mcp-method': '=?base64?dG9vbHMvY2FsbA==?=' },
    'the Mcp-Method header does not match the body',
  ],
  [
    'no name',
    { ...good, 'mcp-name': undefined },
    'the Mcp-Name header is missing; if the client sends it, a proxy on the way removes it',
  ],
  ['another name', { ...good, 'mcp-name': 'y' }, 'the Mcp-Name header does not match params.name'],
  ['a broken name', { ...good, 'mcp-name': '=?base64?*?=' }, 'the Mcp-Name header is not encoded as it should be'],
  ['two names', { ...good, 'mcp-name': ['x', 'x'] }, 'the Mcp-Name header is not encoded as it should be'],
] as const) {
  test(`refuses a tool call with ${title}`, (t) => {
    t.is(checkStandardHeaders(call, REVISION, headers), fault);
  });
}

test('takes headers that agree with the body, with blanks around them and encoded without need', (t) => {
  t.is(checkStandardHeaders(call, REVISION, good), undefined);
  t.is(checkStandardHeaders(call, REVISION, { ...good, 'mcp-name': '=?base64?eA==?=' }), undefined);
  const spaced = { 'mcp-protocol-version': ` ${REVISION}\t`, 'mcp-method': ' tools/call', 'mcp-name': 'x ' };
  t.is(checkStandardHeaders(call, REVISION, spaced), undefined);
});

test('refuses a body whose name is not beyond doubt, whatever the header says', (t) => {
  for (const params of ['{"name":"x","name":"y"}', '{"name":"x","Name":"y"}', '{"NAME":"x"}']) {
    const frame = clientFrame(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`);
    t.is(
      checkStandardHeaders(frame, REVISION, good),
      'params.name must occur once, and nothing that could be taken for it',
    );
  }
});

test('leaves a request without name to its server', (t) => {
  t.is(checkStandardHeaders(request('tools/call', {}), REVISION, { ...good, 'mcp-name': undefined }), undefined);
});

test('what is built passes the check', (t) => {
  fc.assert(
    fc.property(anyText, (name) => {
      fc.pre(Buffer.from(name).toString() === name);
      const frame = request('tools/call', { name });
      t.is(checkStandardHeaders(frame, REVISION, asMap(standardHeaders(frame, REVISION))), undefined);
    }),
  );
});
