import test from 'ava';
import { modernHttpStatus, toLegacyError, toModernError } from '../../../src/mcp/translate/errors.ts';

const message = 'as the server said';

for (const [title, code, data, context, expected, httpStatus] of [
  ['a parse error', -32700, undefined, {}, { code: -32700 }, 200],
  ['an invalid request', -32600, { x: 1 }, {}, { code: -32600, data: { x: 1 } }, 200],
  ['invalid params', -32602, undefined, {}, { code: -32602 }, 200],
  ['an internal error', -32603, 'text', {}, { code: -32603, data: 'text' }, 200],
  ['a method whose capability is not declared', -32601, undefined, { isDeclared: false }, { code: -32601 }, 404],
  [
    'a declared list that is not there',
    -32601,
    undefined,
    { method: 'resources/templates/list' },
    { code: -32601 },
    404,
  ],
  ['a method of a vendor', -32601, undefined, { method: 'vendor/x', isDeclared: false }, { code: -32601 }, 404],
  ['a tool that is not there', -32601, { x: 1 }, {}, { code: -32602, data: { x: 1 } }, 200],
  ['a prompt that is not there', -32601, undefined, { method: 'prompts/get' }, { code: -32602 }, 200],
  [
    'a resource that is not there',
    -32002,
    { uri: 'other', x: 1 },
    { method: 'resources/read', uri: 'a:b' },
    { code: -32602, data: { uri: 'a:b', x: 1 } },
    200,
  ],
  [
    'a resource that is not there, without details',
    -32002,
    undefined,
    { method: 'resources/read', uri: 'a:b' },
    { code: -32602, data: { uri: 'a:b' } },
    200,
  ],
  [
    'a resource that is not there, with a text for details',
    -32002,
    'gone',
    { method: 'resources/read', uri: 'a:b' },
    { code: -32602, data: 'gone' },
    200,
  ],
  ['that code elsewhere', -32002, undefined, {}, { code: -32603, data: { bridge: { originalCode: -32002 } } }, 200],
  ['a code of implementations', -32000, undefined, {}, { code: -32000 }, 200],
  ['the last code of implementations', -32019, undefined, {}, { code: -32019 }, 200],
  [
    'a code with a modern meaning',
    -32020,
    { a: 1 },
    {},
    { code: -32603, data: { a: 1, bridge: { originalCode: -32020 } } },
    200,
  ],
  ['an elicitation of URLs', -32042, undefined, {}, { code: -32603, data: { bridge: { originalCode: -32042 } } }, 200],
  [
    'a reserved code with a text for details',
    -32050,
    'x',
    {},
    { code: -32603, data: { bridge: { originalCode: -32050, originalData: 'x' } } },
    200,
  ],
  ['the last reserved code', -32099, undefined, {}, { code: -32603, data: { bridge: { originalCode: -32099 } } }, 200],
  ['a code outside of all ranges', -32100, undefined, {}, { code: -32100 }, 200],
  ['a code of an application', 7, undefined, {}, { code: 7 }, 200],
  ['a fraction', 1.5, undefined, {}, { code: -32603, data: { bridge: { originalCode: 1.5 } } }, 200],
] as const) {
  test(`tells a modern client of ${title}`, (t) => {
    const error = { code, message, ...(data !== undefined && { data }) };
    const told = toModernError(error, { method: 'tools/call', isDeclared: true, ...context });
    t.deepEqual(told, { error: { message, ...expected }, httpStatus });
  });
}

for (const [title, code, data, context, expected] of [
  ['a resource that is not there', -32602, { uri: 'a:b' }, { uri: 'a:b' }, { code: -32002, data: { uri: 'a:b' } }],
  ['another resource', -32602, { uri: 'c:d' }, { uri: 'a:b' }, { code: -32602, data: { uri: 'c:d' } }],
  ['params that are invalid', -32602, undefined, { uri: 'a:b' }, { code: -32602 }],
  [
    'a tool with a uri',
    -32602,
    { uri: 'a:b' },
    { method: 'tools/call', uri: 'a:b' },
    { code: -32602, data: { uri: 'a:b' } },
  ],
  [
    'a capability it lacks',
    -32021,
    { requiredCapabilities: { sampling: {} } },
    {},
    { code: -32021, data: { requiredCapabilities: { sampling: {} } } },
  ],
  [
    'headers that do not match',
    -32020,
    undefined,
    {},
    { code: -32603, data: { bridge: { reason: 'upstream_header_mismatch', originalCode: -32020 } } },
  ],
  [
    'a revision that is not supported',
    -32022,
    { supported: ['x'] },
    {},
    { code: -32603, data: { supported: ['x'], bridge: { reason: 'upstream_revision', originalCode: -32022 } } },
  ],
  ['a method that is not there', -32601, undefined, {}, { code: -32601 }],
  ['a code of an application', 7, 'x', {}, { code: 7, data: 'x' }],
] as const) {
  test(`tells a legacy client of ${title}`, (t) => {
    const error = { code, message, ...(data !== undefined && { data }) };
    t.deepEqual(toLegacyError(error, { method: 'resources/read', ...context }), { message, ...expected });
  });
}

test('knows the HTTP status of modern errors', (t) => {
  for (const code of [-32700, -32600, -32020, -32021, -32022]) t.is(modernHttpStatus(code), 400);
  t.is(modernHttpStatus(-32601), 404);
  for (const code of [-32602, -32603, -32000, 5]) t.is(modernHttpStatus(code), 200);
});
