import test from 'ava';
import fc from 'fast-check';
import {
  discoverResult,
  initializeResult,
  readServerInfo,
  toLegacyResult,
  toModernResult,
} from '../../../src/mcp/translate/results.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';
import { schemaFaults } from '../../support/schema.ts';
import { anyJson, anyText, JsonPrinter } from '../../wire/json-text.ts';

const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';
const serverInfo = { name: 's', version: '1', title: 'S' };
const info = JSON.stringify(serverInfo);

const answer = (result: string) => serverFrame(`{"jsonrpc":"2.0","id":1,"result":${result}}`);
const textOf = (frame: { readonly bytes: Buffer } | undefined) => frame?.bytes.toString();
const resultOf = (frame: { json(): unknown } | undefined) =>
  (frame?.json() as { result?: unknown } | undefined)?.result;

for (const [title, method, before, after] of [
  [
    'one of an extension that must say how long it stays good',
    'skills/list',
    '{"skills":[]}',
    `{"skills":[],"resultType":"complete","_meta":{"${SERVER_INFO}":${info}},"ttlMs":0,"cacheScope":"private"}`,
  ],
  [
    'one of an extension that says it already',
    'skills/get',
    '{"ttlMs":5,"skill":{},"cacheScope":"public"}',
    `{"ttlMs":5,"skill":{},"cacheScope":"public","resultType":"complete","_meta":{"${SERVER_INFO}":${info}}}`,
  ],
  [
    'one of the specification that says what its era cannot know',
    'resources/read',
    '{"contents":[],"ttlMs":5,"cacheScope":"public"}',
    `{"contents":[],"ttlMs":0,"cacheScope":"private","resultType":"complete","_meta":{"${SERVER_INFO}":${info}}}`,
  ],
  ['an empty one', 'vendor/x', '{}', `{"resultType":"complete","_meta":{"${SERVER_INFO}":${info}}}`],
  [
    'one with a type of its own',
    'prompts/get',
    '{"resultType":"input_required","messages":[]}',
    `{"resultType":"complete","messages":[],"_meta":{"${SERVER_INFO}":${info}}}`,
  ],
  [
    'one with a _meta',
    'tools/call',
    '{"content":[],"_meta":{"a":1},"n":1e400}',
    `{"content":[],"_meta":{"a":1,"${SERVER_INFO}":${info}},"n":1e400,"resultType":"complete"}`,
  ],
  [
    'one of a task',
    'tools/call',
    '{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}}',
    `{"content":[],"_meta":{"${SERVER_INFO}":${info}},"resultType":"complete"}`,
  ],
  [
    'one with a _meta that is none',
    'prompts/get',
    '{"_meta":null}',
    `{"_meta":{"${SERVER_INFO}":${info}},"resultType":"complete"}`,
  ],
  [
    'one without content',
    'tools/call',
    '{"structuredContent":{}}',
    `{"structuredContent":{},"resultType":"complete","_meta":{"${SERVER_INFO}":${info}},"content":[]}`,
  ],
  [
    'one whose content is null',
    'tools/call',
    '{"content":null}',
    `{"content":[],"resultType":"complete","_meta":{"${SERVER_INFO}":${info}}}`,
  ],
  [
    'one that can be cached',
    'resources/read',
    '{"contents":[],"ttlMs":5,"cacheScope":"public"}',
    `{"contents":[],"ttlMs":0,"cacheScope":"private","resultType":"complete","_meta":{"${SERVER_INFO}":${info}}}`,
  ],
  [
    'a list of tools',
    'tools/list',
    '{"tools":[{"name":"a","execution":{}}],"nextCursor":"c"}',
    `{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"c","resultType":"complete",` +
      `"_meta":{"${SERVER_INFO}":${info}},"ttlMs":0,"cacheScope":"private"}`,
  ],
  [
    'tools in what is no list of tools',
    'prompts/list',
    '{"tools":[{"execution":{}}]}',
    `{"tools":[{"execution":{}}],"resultType":"complete",` +
      `"_meta":{"${SERVER_INFO}":${info}},"ttlMs":0,"cacheScope":"private"}`,
  ],
] as const) {
  test(`makes a modern result of ${title}`, (t) => {
    const frame = toModernResult(answer(before), { method, serverInfo });
    t.is(textOf(frame), textOf(answer(after)));
    t.deepEqual(frame, answer(after));
  });
}

test('leaves a server without a name out, and takes the hints it is given', (t) => {
  const cache = { ttlMs: 60_000, cacheScope: 'public' } as const;
  const result = resultOf(
    toModernResult(answer('{"tools":[]}'), { method: 'tools/list', serverInfo: undefined, cache }),
  );
  t.deepEqual(result, { tools: [], resultType: 'complete', ttlMs: 60_000, cacheScope: 'public' });
  const called = toModernResult(answer('{"content":[]}'), { method: 'tools/call', serverInfo: undefined, cache });
  t.deepEqual(resultOf(called), { content: [], resultType: 'complete' });
});

test('makes nothing of what is no object, and nothing of an error', (t) => {
  for (const result of ['null', 'true', '[]', '"x"', '1']) {
    t.is(toModernResult(answer(result), { method: 'vendor/x', serverInfo }), undefined, result);
  }
  const error = serverFrame({ id: 1, error: { code: 1, message: '' } });
  t.is(toModernResult(error, { method: 'vendor/x', serverInfo }), undefined);
});

for (const [place, text] of [
  ['before', '{"jsonrpc":"2.0","id":7,"result":{"a":1}}'],
  ['behind', '{"result":{"a":1},"id":7,"jsonrpc":"2.0"}'],
] as const) {
  test(`puts a result under the id of a request, where the id stands ${place} it`, (t) => {
    const under = clientFrame('{"jsonrpc":"2.0","id":"\\u0061","method":"m"}');
    const frame = toModernResult(serverFrame(text), { method: 'm', serverInfo: undefined, under });
    const after = text.replace('7', '"\\u0061"').replace('"a":1', '"a":1,"resultType":"complete"');
    t.is(textOf(frame), after);
    t.deepEqual(frame, serverFrame(after));
    t.is(frame?.id, 'a');
  });
}

test('keeps the id where it stands', (t) => {
  const frame = toModernResult(serverFrame('{"result":{},"id":"a","jsonrpc":"2.0"}'), { method: 'm', serverInfo });
  t.deepEqual(frame && clientFrame(frame.bytes.toString()), frame);
});

for (const [method, type, result] of [
  ['tools/call', 'CallToolResult', { content: [{ type: 'text', text: 'x' }] }],
  ['tools/call', 'CallToolResult', {}],
  ['tools/list', 'ListToolsResult', { tools: [{ name: 'x', execution: { taskSupport: 'optional' } }] }],
  ['resources/read', 'ReadResourceResult', { contents: [{ uri: 'a:b', text: 'x' }] }],
  ['resources/list', 'ListResourcesResult', { resources: [{ uri: 'a:b', name: 'x' }] }],
  ['resources/templates/list', 'ListResourceTemplatesResult', { resourceTemplates: [] }],
  ['prompts/list', 'ListPromptsResult', { prompts: [{ name: 'x' }] }],
  ['prompts/get', 'GetPromptResult', { messages: [] }],
  ['completion/complete', 'CompleteResult', { completion: { values: [] } }],
] as const) {
  test(`what becomes of ${JSON.stringify(result)} of ${method} fits the schemas of both eras`, (t) => {
    const modern = toModernResult(answer(JSON.stringify(result)), { method, serverInfo });
    t.deepEqual(schemaFaults('2026-07-28', type, resultOf(modern)), []);
    const legacy = modern && toLegacyResult(modern, method);
    t.deepEqual(schemaFaults('2025-11-25', type, resultOf(legacy)), []);
  });
}

for (const [title, method, before, after] of [
  ['an empty one', 'tools/call', '{ "resultType":"complete" }', '{  }'],
  [
    'one with all there is',
    'resources/read',
    `{"resultType":"complete","contents":[1e400],"ttlMs":1,"cacheScope":"public","requestState":"","inputRequests":{},` +
      `"_meta":{"${SERVER_INFO}":{},"${SUBSCRIPTION}":1}}`,
    '{"contents":[1e400]}',
  ],
  ['one with a _meta of its own', 'm', `{"_meta":{"${SERVER_INFO}":{},"a":1}}`, '{"_meta":{"a":1}}'],
  ['one with an empty _meta', 'm', '{"_meta":{}}', '{"_meta":{}}'],
  ['one of a vendor', 'vendor/x', '{"resultType":"complete","ttlMs":1}', '{"ttlMs":1}'],
  [
    'one of an extension, below a segment that the specification uses',
    'resources/directory/read',
    '{"resources":[],"requestState":"r","ttlMs":1,"resultType":"complete"}',
    '{"resources":[],"requestState":"r","ttlMs":1}',
  ],
  [
    'one of a type that an extension has added',
    'tools/call',
    `{"resultType":"acme","requestState":"r","_meta":{"${SERVER_INFO}":{}}}`,
    '{"resultType":"acme","requestState":"r"}',
  ],
] as const) {
  test(`makes a legacy result of ${title}`, (t) => {
    const frame = toLegacyResult(answer(before), method);
    t.is(textOf(frame), textOf(answer(after)));
    t.deepEqual(frame, answer(after));
  });
}

test('a result that has nothing modern stays the same frame', (t) => {
  for (const result of ['{}', '{"content":[]}', 'null', '[]']) {
    const frame = answer(result);
    t.is(toLegacyResult(frame, 'tools/call'), frame);
  }
});

test('a legacy result comes back from the modern era as it was', (t) => {
  const anyResult = fc.tuple(fc.dictionary(anyText, anyJson, { maxKeys: 4 }), fc.integer()).map(([result, seed]) => {
    const { _meta: _, resultType: __, ...rest } = result;
    return new JsonPrinter(seed, { newlines: false }).object(Object.entries(rest));
  });
  fc.assert(
    fc.property(anyResult, (result) => {
      const modern = toModernResult(answer(result), { method: 'resources/read', serverInfo });
      t.like(resultOf(modern), { resultType: 'complete', ttlMs: 0, cacheScope: 'private' });
      t.deepEqual(modern && resultOf(toLegacyResult(modern, 'resources/read')), JSON.parse(result));
    }),
    { numRuns: 300 },
  );
});

test('answers server/discover for a legacy server', (t) => {
  const initialized = {
    protocolVersion: '2025-11-25',
    capabilities: { tools: { listChanged: true }, tasks: {} },
    serverInfo,
    instructions: 'Ask.',
  };
  const discovered = discoverResult(initialized);
  t.deepEqual(discovered, {
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: { listChanged: true } },
    instructions: 'Ask.',
    ttlMs: 0,
    cacheScope: 'private',
    _meta: { [SERVER_INFO]: serverInfo },
  });
  t.deepEqual(schemaFaults('2026-07-28', 'DiscoverResult', discovered), []);
  const bare = discoverResult({ serverInfo: null });
  t.deepEqual(schemaFaults('2026-07-28', 'DiscoverResult', bare), []);
  t.false('_meta' in bare);
});

test('answers initialize for a modern server', (t) => {
  const discovered = {
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: { listChanged: true }, completions: {} },
    instructions: 'Ask.',
    _meta: { [SERVER_INFO]: serverInfo },
  };
  const options = { fallbackName: 'example.com' } as const;
  const initialized = initializeResult(discovered, { ...options, revision: '2025-06-18' });
  t.deepEqual(initialized, {
    protocolVersion: '2025-06-18',
    capabilities: { tools: { listChanged: true }, completions: {} },
    serverInfo,
    instructions: 'Ask.',
  });
  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const) {
    for (const result of [discovered, {}]) {
      const made = initializeResult(result, { ...options, revision });
      t.deepEqual(schemaFaults(revision, 'InitializeResult', made), []);
    }
  }
  const bare = initializeResult({ instructions: 5 }, { ...options, revision: '2025-11-25' });
  t.deepEqual(bare, {
    protocolVersion: '2025-11-25',
    capabilities: {},
    serverInfo: { name: 'example.com', version: '0.0.0' },
  });
});

test('what a server adds to its introduction is told in either era', (t) => {
  const added = { vendor: { n: 1 } };
  const legacy = { ...added, protocolVersion: '2025-11-25', capabilities: {}, serverInfo, _meta: { 'a/b': 1 } };
  const discovered = discoverResult(legacy);
  t.like(discovered, added);
  t.false('protocolVersion' in discovered || 'serverInfo' in discovered);
  t.deepEqual(discovered._meta, { 'a/b': 1, [SERVER_INFO]: serverInfo });
  const options = { fallbackName: 'x', revision: '2025-11-25' } as const;
  t.deepEqual(initializeResult(discovered, options), legacy);
});

test('reads what a server calls itself, with a version in any case', (t) => {
  t.is(readServerInfo({ version: '1' }), undefined);
  t.is(readServerInfo('x'), undefined);
  t.deepEqual(readServerInfo({ name: 'x', icons: [] }), { name: 'x', icons: [], version: '0.0.0' });
});
