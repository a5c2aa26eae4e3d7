import { StreamableHTTPClientTransport as ModernHttp, Client as ModernSdk } from '@modelcontextprotocol/client';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import test from 'ava';
import fc from 'fast-check';
import { readIndexedTool } from '../../../src/aggregate/search/indexed-tool.ts';
import {
  answerDescribe,
  answerSearch,
  CALL_TOOL,
  DESCRIBE_TOOL,
  directCall,
  errorResult,
  type ResultMembers,
  readCallTool,
  SEARCH_TOOL_DEFINITIONS,
  SEARCH_TOOLS,
  type ToolLookup,
} from '../../../src/aggregate/search/search-tools.ts';
import { SERVER_LIMITS, ToolIndex } from '../../../src/aggregate/search/tool-index.ts';
import { joinMembers } from '../../../src/wire/write-message.ts';
import { clientFrame } from '../../support/frames.ts';
import { schemaFaults } from '../../support/schema.ts';
import { connectStreamable } from '../../support/sdk-client.ts';
import { startStreamable } from '../../support/sdk-servers.ts';
import { publishedIndex } from './published-tools.ts';

interface Result {
  readonly content: readonly [{ readonly type: 'text'; readonly text: string }];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly isError?: true;
}

function resultOf(members: ResultMembers): Result {
  return JSON.parse(joinMembers(members).toString('utf8'));
}

const searched = async (args: unknown, index = publishedIndex()) => resultOf(await answerSearch(args, index));

function lookupOf(definitions: Readonly<Record<string, string>>, nearest: readonly string[] = []): ToolLookup {
  return {
    find: (name) => (Object.hasOwn(definitions, name) ? Buffer.from(definitions[name] as string) : undefined),
    nearest: () => nearest,
  };
}

/** The faults that the output schema of a tool finds in a result. */
function schemaFaultsOf(name: string, { structuredContent }: Result): readonly string[] {
  const tool = SEARCH_TOOL_DEFINITIONS.find((each) => each.name === name);
  if (tool === undefined || !('outputSchema' in tool)) throw new Error(`${name} has no output schema`);
  const validate = new Ajv2020({ strict: false }).compile(tool.outputSchema);
  return validate(structuredContent) ? [] : (validate.errors ?? []).map(({ message }) => String(message));
}

test('the tools are valid in every revision', (t) => {
  t.deepEqual(
    SEARCH_TOOL_DEFINITIONS.map(({ name }) => name),
    ['search_tools', 'describe_tool', 'call_tool'],
  );
  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const) {
    for (const tool of SEARCH_TOOL_DEFINITIONS) t.deepEqual(schemaFaults(revision, 'Tool', tool), [], revision);
  }
});

test('the results are valid in both eras', async (t) => {
  const results = [
    await searched({ query: 'send email' }),
    await searched({}),
    resultOf(answerDescribe({ names: ['a'] }, lookupOf({ a: '{"name":"a"}' }))),
    resultOf(errorResult('x')),
  ];
  for (const result of results) {
    t.deepEqual(schemaFaults('2025-11-25', 'CallToolResult', result), []);
    t.deepEqual(schemaFaults('2026-07-28', 'CallToolResult', { resultType: 'complete', ...result }), []);
  }
});

// ---- search_tools

test('answers a search with the best tools, as JSON and as the same JSON in a text', async (t) => {
  const result = await searched({ query: 'send an email', limit: 2 });
  t.is(result.isError, undefined);
  t.deepEqual(schemaFaultsOf(SEARCH_TOOLS, result), []);
  t.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  const tools = result.structuredContent?.tools as readonly Record<string, string>[];
  t.is(tools.length, 2);
  t.deepEqual(Object.keys(tools[0] ?? {}), ['name', 'description', 'server']);
  t.is(tools[0]?.name, 'gmail__send_email');
  t.is(tools[0]?.server, 'gmail');
});

test('says so when no tool fits', async (t) => {
  const result = await searched({ query: 'xyzzy' });
  t.is(result.isError, undefined);
  t.deepEqual(schemaFaultsOf(SEARCH_TOOLS, result), []);
  t.deepEqual(result.structuredContent?.tools, []);
  t.regex(String(result.structuredContent?.note), /^No tool fits this query\. Use other words/);
});

test('names the servers of which some tools cannot be found, to those who may use them', async (t) => {
  const index = new ToolIndex();
  const tools = Array.from({ length: SERVER_LIMITS.tools + 7 }, (_, at) =>
    readIndexedTool('big', `big__apple${at}`, {}),
  );
  index.replace('big', tools);
  index.replace('small', [readIndexedTool('small', 'small__apple', {})]);
  const all = resultOf(await answerSearch({ query: 'apple', limit: 1 }, index));
  t.regex(String(all.structuredContent?.note), /^7 of the tools of big cannot be found here/);
  const own = resultOf(await answerSearch({ query: 'apple', limit: 9 }, index, (server) => server === 'small'));
  t.deepEqual(own.structuredContent, { tools: [{ name: 'small__apple', server: 'small' }] });
});

test('shortens a long description between words, and leaves no half of a character', async (t) => {
  const index = new ToolIndex();
  index.replace('s', [
    readIndexedTool('s', 'apple', { description: 'An apple. '.repeat(100) }),
    readIndexedTool('s', 'pear', { description: `pear${'🍐'.repeat(500)}` }),
  ]);
  for (const query of ['apple', 'pear']) {
    const result = await searched({ query }, index);
    const [tool] = result.structuredContent?.tools as readonly { readonly description: string }[];
    t.regex(tool?.description ?? '', /^(?:An apple\. )*An apple\.…$|^pear🍐+…$/u);
    t.true((tool?.description.length ?? 0) <= 301);
  }
});

for (const [args, message] of [
  [undefined, /needs "query"/],
  [null, /needs "query"/],
  [['x'], /needs "query"/],
  [{}, /needs "query"/],
  [{ query: 7 }, /needs "query"/],
  [{ query: '  ' }, /needs "query"/],
  [{ query: 'x'.repeat(1001) }, /has 1001 characters and may have 1000/],
  [{ query: 'x', limit: 0 }, /"limit" must be a whole number from 1 to 50/],
  [{ query: 'x', limit: 51 }, /"limit" must be/],
  [{ query: 'x', limit: 1.5 }, /"limit" must be/],
  [{ query: 'x', limit: '5' }, /"limit" must be/],
] as const) {
  test(`refuses to search for ${JSON.stringify(args)?.slice(0, 60)}`, async (t) => {
    const result = await searched(args, new ToolIndex());
    t.true(result.isError);
    t.is(result.structuredContent, undefined);
    t.regex(result.content[0].text, message);
  });
}

// ---- describe_tool

/** A definition that no parser would print like this. */
const ODD = '{"name":"a", "x":1e400,"inputSchema":{"type":"object","\\u0061":10000000000000000001},"a":1,"a":2}';

test('describes tools byte for byte', (t) => {
  const members = answerDescribe({ names: ['a', 'b', 'a'] }, lookupOf({ a: ODD, b: '{"name":"b"}' }));
  t.is(members.get('structuredContent')?.toString(), `{"tools":[${ODD},{"name":"b"}]}`);
  const result = resultOf(members);
  t.is(result.content[0].text, `{"tools":[${ODD},{"name":"b"}]}`);
  t.deepEqual(schemaFaultsOf(DESCRIBE_TOOL, result), []);
});

test('accepts a single name', (t) => {
  for (const args of [{ names: 'a' }, { name: 'a' }]) {
    t.deepEqual(resultOf(answerDescribe(args, lookupOf({ a: '{"name":"a"}' }))).structuredContent, {
      tools: [{ name: 'a' }],
    });
  }
});

test('describes the tools that exist, and names those that do not, with the nearest', (t) => {
  const result = resultOf(answerDescribe({ names: ['a', 'nope'] }, lookupOf({ a: '{"name":"a"}' }, ['note'])));
  t.deepEqual(schemaFaultsOf(DESCRIBE_TOOL, result), []);
  t.deepEqual(result.structuredContent?.unknown, [{ name: 'nope', nearest: ['note'] }]);
});

test('where no name is that of a tool, the result is an error that says which are near', (t) => {
  const result = resultOf(answerDescribe({ names: ['nope', 'b\ud83d'] }, lookupOf({}, ['note', 'node'])));
  t.true(result.isError);
  t.is(
    result.content[0].text,
    'There is no tool called "nope". Did you mean note or node?\nThere is no tool called "b". Did you mean note or node?',
  );
  const without = resultOf(answerDescribe({ names: ['__proto__'] }, lookupOf({})));
  t.is(without.content[0].text, 'There is no tool called "__proto__". Find the name of a tool with search_tools.');
});

test('limits the size of an answer, but always gives one definition', (t) => {
  const large = (name: string) => JSON.stringify({ name, description: 'x'.repeat(600_000) });
  const result = resultOf(
    answerDescribe({ names: ['a', 'b', 'c'] }, lookupOf({ a: large('a'), b: large('b'), c: '{"name":"c"}' })),
  );
  t.deepEqual(schemaFaultsOf(DESCRIBE_TOOL, result), []);
  t.is((result.structuredContent?.tools as readonly unknown[]).length, 1);
  t.deepEqual(result.structuredContent?.omitted, ['b', 'c']);
});

for (const args of [undefined, {}, { names: [] }, { names: [1] }, { names: {} }, { names: null }, 'a']) {
  test(`refuses to describe ${JSON.stringify(args)}`, (t) => {
    const result = resultOf(answerDescribe(args, lookupOf({})));
    t.true(result.isError);
    t.regex(result.content[0].text, /^describe_tool needs "names"/);
  });
}

test('refuses to describe too many tools at once', (t) => {
  const result = resultOf(answerDescribe({ names: Array.from({ length: 21 }, String) }, lookupOf({})));
  t.regex(result.content[0].text, /^"names" has 21 names and may have 20/);
});

test('whatever the arguments are, the answer is a result', async (t) => {
  const index = publishedIndex();
  const names = fc.oneof(fc.string({ unit: 'binary' }), fc.anything());
  const args = fc.oneof(fc.anything(), fc.record({ query: names, limit: fc.anything() }), fc.record({ names }));
  const check = fc.asyncProperty(args, async (given) => {
    for (const answer of [await answerSearch(given, index), answerDescribe(given, lookupOf({}))]) {
      t.deepEqual(schemaFaults('2025-11-25', 'CallToolResult', resultOf(answer)), []);
    }
  });
  await fc.assert(check, { numRuns: 300 });
});

// ---- call_tool

const callOf = (args: string, more = '') =>
  clientFrame(
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool","arguments":${args}${more}}}`,
  );

test('finds the arguments where they stand, and passes them on byte for byte', (t) => {
  const inner = '{ "a" : 1e400, "b":10000000000000000001 ,"\\u0061":[ ] }';
  const frame = callOf(`{"x":0,"arguments": ${inner} ,"name":"s__\\u0061"}`, ',"_meta":{"progressToken":7},"task":{}');
  const call = readCallTool(frame);
  if (typeof call === 'string') return t.fail(call);
  t.is(call.name, 's__a');
  t.is(call.argumentsBytes?.toString(), inner);
  const direct = directCall(frame, call);
  t.is(
    direct.bytes.toString(),
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__a","arguments":${inner},"_meta":{"progressToken":7},"task":{}}}`,
  );
  t.is(direct.bytes.subarray(direct.payloadStart, direct.payloadStart + 7).toString(), '{"name"');
  t.is(direct.id, 1);
});

test('a call without arguments stays one', (t) => {
  const frame = callOf('{"name":"s__a"}');
  const call = readCallTool(frame);
  if (typeof call === 'string') return t.fail(call);
  t.is(call.argumentsBytes, undefined);
  t.is(
    directCall(frame, call).bytes.toString(),
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__a"}}',
  );
});

test('large arguments pass too', (t) => {
  const inner = JSON.stringify({ list: Array.from({ length: 100_000 }, (_, index) => ({ index })) });
  const frame = callOf(`{"name":"s__a","arguments":${inner}}`);
  const call = readCallTool(frame);
  if (typeof call === 'string') return t.fail(call);
  t.is(directCall(frame, call).bytes.toString(), callOf(inner).bytes.toString().replace('call_tool', 's__a'));
});

for (const [args, message] of [
  ['null', /^call_tool needs "name"/],
  ['"x"', /^call_tool needs "name"/],
  ['{}', /^call_tool needs "name"/],
  ['{"name":7}', /^call_tool needs "name"/],
  ['{"name":""}', /^call_tool needs "name"/],
  ['{"name":"a","name":"b"}', /several members that can be read as "name" or "arguments"/],
  ['{"name":"a","Arguments":{}}', /several members/],
  ['{"name":"a","arguments":{},"arguments":{}}', /several members/],
  ['{"name":"a","arguments":"{}"}', /^"arguments" must be an object/],
  ['{"name":"a","arguments":null}', /^"arguments" must be an object/],
  ['{"name":"a","arguments":[]}', /^"arguments" must be an object/],
  ['{"name":"call_tool"}', /^Call call_tool directly/],
  ['{"name":"search_tools","arguments":{"query":"x"}}', /^Call search_tools directly/],
] as const) {
  test(`says what is wrong with a call of ${args}`, (t) => {
    const call = readCallTool(callOf(args));
    t.regex(String(call), message);
  });
}

test('says what is wrong with a call that has no arguments, or several', (t) => {
  const frameOf = (params: string) => clientFrame(`{"jsonrpc":"2.0","id":1,"method":"tools/call"${params}}`);
  for (const params of ['', ',"params":{"name":"call_tool"}', ',"params":{"arguments":{},"Arguments":{}}']) {
    t.regex(String(readCallTool(frameOf(params))), /^call_tool needs "name"/);
  }
});

// ---- Real clients

/** A server of the official SDK that answers with the functions here. */
function createSearchServer(): Server {
  const server = new Server({ name: 'search', version: '1.0.0' }, { capabilities: { tools: {} } });
  const index = publishedIndex();
  server.setRequestHandler(ListToolsRequestSchema, () =>
    JSON.parse(JSON.stringify({ tools: SEARCH_TOOL_DEFINITIONS })),
  );
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    const lookup = lookupOf({ a: '{"name":"a","inputSchema":{"type":"object"}}' }, ['b']);
    const answer =
      params.name === SEARCH_TOOLS
        ? await answerSearch(params.arguments, index)
        : answerDescribe(params.arguments, lookup);
    return JSON.parse(joinMembers(answer).toString('utf8'));
  });
  return server;
}

test('the official SDKs take the results for what the output schemas promise', async (t) => {
  const server = await startStreamable({ createServer: createSearchServer });
  t.teardown(() => server.close());
  const legacy = await connectStreamable(server.url);
  const modern = new ModernSdk({ name: 'test', version: '1.0.0' });
  await modern.connect(new ModernHttp(server.url));
  t.teardown(() => Promise.all([legacy.close(), modern.close()]).then(() => undefined));
  for (const client of [legacy.client, modern]) {
    const { tools } = await client.listTools();
    t.deepEqual(
      tools.map(({ name }) => name),
      [SEARCH_TOOLS, DESCRIBE_TOOL, CALL_TOOL],
    );
    const found = await client.callTool({ name: SEARCH_TOOLS, arguments: { query: 'send email' } });
    t.is((found.structuredContent as { tools: { name: string }[] }).tools[0]?.name, 'gmail__send_email');
    const described = await client.callTool({ name: DESCRIBE_TOOL, arguments: { names: ['a', 'c'] } });
    t.deepEqual(described.structuredContent, {
      tools: [{ name: 'a', inputSchema: { type: 'object' } }],
      unknown: [{ name: 'c', nearest: ['b'] }],
    });
    t.true((await client.callTool({ name: SEARCH_TOOLS, arguments: {} })).isError);
  }
});
