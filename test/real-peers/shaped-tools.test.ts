/** Tools that clients see by other names and descriptions, with official SDKs of both eras, and raw for the bytes. */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Client as LegacySdk } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, CreateTaskResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import test, { type ExecutionContext } from 'ava';
import { headersOf, modern, postModern } from '../downstream/streamable-stateless/modern-posts.ts';
import { serveModern } from '../fixtures/modern-server/http.ts';
import { BRIDGE_COMMAND, type Bridge, REPOSITORY } from '../support/bridge.ts';
import { fixture, textOf } from '../support/config-bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { callHttp } from '../support/http-call.ts';
import { namesOf, openAt, type SdkClient, serverOf, startedBridge, WAYS } from './sdk-clients.ts';

const ERAS = ['legacy', 'modern'] as const;

// ---- every pair of eras

const TEXT = 'test_simple_text';
const IMAGE = 'test_image_content';
const AUDIO = 'test_audio_content';
const SHAPING = [
  ...['--rename-tool', `${TEXT}=${IMAGE}`, '--rename-tool', `${IMAGE}=${TEXT}`],
  ...['--rename-tool', `${AUDIO}=listen`, '--describe-tool', `${AUDIO}=Plays a sound, "=" included.`],
];

const typeOf = async (client: SdkClient, name: string) =>
  ((await client.callTool({ name })) as { readonly content: readonly { readonly type: string }[] }).content[0]?.type;

for (const clientEra of ERAS) {
  for (const serverEra of ERAS) {
    for (const [way, open] of Object.entries(WAYS)) {
      test.serial(
        `${clientEra} client → ${serverEra} server, ${way}: tools have their new names, two of them swapped`,
        async (t) => {
          const client = await open(t, clientEra, [...SHAPING, ...serverOf(serverEra)]);
          t.is(await typeOf(client, 'listen'), 'audio', 'a name is known before any list');
          const { tools } = await client.listTools();
          const names = tools.map(({ name }) => name);
          t.true([TEXT, IMAGE, 'listen'].every((name) => names.filter((other) => other === name).length === 1));
          t.false(names.includes(AUDIO));
          t.is(tools.find(({ name }) => name === 'listen')?.description, 'Plays a sound, "=" included.');
          t.is(await typeOf(client, IMAGE), 'text');
          t.is(await typeOf(client, TEXT), 'image');
          await t.throwsAsync(() => client.callTool({ name: AUDIO }), { message: /Unknown tool: test_audio_content/ });
        },
      );
    }
  }
}

// ---- tasks

const TASKS = ['--rename-tool', 'slow=breaks', '--rename-tool', 'breaks=slow', '--', process.execPath];

test('a call as a task of 2025-11-25 runs the tool of that name, and its result comes by the task', async (t) => {
  const bridge = await startedBridge(t, [...TASKS, fixture('runs-as-task')]);
  const client = new LegacySdk({ name: 'host', version: '1' }, { capabilities: { tasks: {} } });
  await client.connect(new StreamableHTTPClientTransport(bridge.url) as never);
  t.teardown(() => client.close());
  const { tools } = await client.listTools();
  t.deepEqual(
    tools.map(({ name, execution }) => [name, execution?.taskSupport]),
    ['breaks', 'slow', 'asks', 'waits'].map((name) => [name, 'required']),
  );
  for (const [name, text, status] of [
    ['breaks', 'done', 'completed'],
    ['slow', 'broke', 'failed'],
  ] as const) {
    const call = { name, arguments: {} };
    const { task } = (await client.request(
      { method: 'tools/call', params: { ...call, task: { ttl: 60_000 } } },
      CreateTaskResultSchema,
    )) as { readonly task: { readonly taskId: string } };
    const result = await client.experimental.tasks.getTaskResult(task.taskId, CallToolResultSchema);
    t.is(textOf(result), text);
    t.is((await client.experimental.tasks.getTask(task.taskId)).status, status);
  }
});

test('a tool that runs only as a task is known as such by its new name to modern clients', async (t) => {
  const bridge = await startedBridge(t, [...TASKS, fixture('runs-as-task')]);
  const client = await openAt(t, 'modern', bridge);
  t.is(textOf(await client.callTool({ name: 'breaks', arguments: {} })), 'done');
  t.is(textOf(await client.callTool({ name: 'slow', arguments: {} })), 'broke');
});

// ---- arguments in headers

async function beforeRoutingServer(t: ExecutionContext): Promise<Bridge> {
  const server = await serveModern();
  t.teardown(() => server.close());
  return startedBridge(t, ['--rename-tool', 'route=echo', '--rename-tool', 'echo=route', server.url.href]);
}

for (const era of ERAS) {
  test(`${era} client: a modern server over HTTP gets its own name of the tool and its headers`, async (t) => {
    const bridge = await beforeRoutingServer(t);
    const client = await openAt(t, era, bridge);
    const call = { name: 'echo', arguments: { region: 'north' } };
    if (era === 'legacy') t.is(textOf(await client.callTool(call)), 'north by north', 'before any list');
    await client.listTools();
    t.is(textOf(await client.callTool(call)), 'north by north');
    t.is(textOf(await client.callTool({ name: 'route', arguments: { text: 'x' } })), 'x');
  });
}

test('the headers of a modern client are compared with what it calls the tool', async (t) => {
  const bridge = await beforeRoutingServer(t);
  const place = { port: Number(bridge.url.port) };
  const post = async (name: string, headers: Record<string, string>) => {
    const message = modern(1, 'tools/call', { name, arguments: { region: 'north' } });
    const answer = await postModern(place, message, headers);
    const body = answer.isEventStream ? ((await answer.events().rest()).at(-1)?.data ?? '') : await answer.text();
    return `${answer.status} ${body}`;
  };
  await (await postModern(place, modern(1, 'tools/list'))).text();
  t.regex(await post('echo', { 'Mcp-Name': 'echo', 'Mcp-Param-Region': 'north' }), /^200 .*north by north/);
  t.regex(await post('echo', { 'Mcp-Name': 'echo', 'Mcp-Param-Region': 'south' }), /^400 .*-32020/);
  t.regex(await post('echo', { 'Mcp-Name': 'route', 'Mcp-Param-Region': 'north' }), /^400 .*-32020/);
  t.regex(await post('route', { 'Mcp-Name': 'route' }), /^200 /, 'the tool called route names no header');
});

// ---- bytes

test('through the built program every byte stays but those of names and descriptions', async (t) => {
  const options = ['--rename-tool', 'a=b', '--rename-tool', 'b=a', '--describe-tool', 'a=other'];
  const [command, ...args] = [...BRIDGE_COMMAND, 'connect', ...options, '--', process.execPath];
  const child = spawn(command, [...args, fixture('shows-its-input')], {
    cwd: REPOSITORY,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  t.teardown(() => child.stdin.end());
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const say = async (line: string): Promise<string> => {
    child.stdin.write(`${line}\n`);
    return (await lines.next()).value;
  };
  const clientInfo = { name: 'raw', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  await say(JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }));
  t.is(
    await say('{"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
    '{"jsonrpc":"2.0","id":1,"result":{"tools" : [ { "n":10000000000000000001, "name" : "b", "description":"other" ,"inputSchema":{"type":"object"}} ,  {"name":"a","x":1.0,  "inputSchema":{"type":"object"}} ,  {"name":"plain","y":[ ],"inputSchema":{"type":"object"}} ]}}',
  );
  const call = (name: string) =>
    `{ "jsonrpc":"2.0","method":"tools/call", "params":{"arguments":{"name":"a","n":1.0 },"name" : ${name}, "z":[1.50]},"id":2 }`;
  for (const [said, got] of [
    ['"a"', '"b"'],
    ['"\\u0062"', '"a"'],
    ['"pl\\u0061in"', '"pl\\u0061in"'],
  ] as const) {
    const answered = JSON.parse(await say(call(said)));
    t.is(Buffer.from(textOf(answered.result), 'base64').toString(), call(got));
  }
});

// ---- names that meet

test('a tool of the server whose name another one was given is not shown, which the log says once', async (t) => {
  const bridge = await startedBridge(t, ['--rename-tool', `${AUDIO}=${IMAGE}`, ...serverOf('legacy')]);
  for (const era of ERAS) {
    const client = await openAt(t, era, bridge);
    t.is(await typeOf(client, IMAGE), 'audio', 'before any list');
    const names = await namesOf(client);
    t.is(names.filter((name) => name === IMAGE).length, 1);
    t.false(names.includes(AUDIO));
    t.is(await typeOf(client, IMAGE), 'audio');
  }
  const warnings = bridge.logs.filter(({ tool }) => tool === IMAGE);
  t.is(warnings.length, 1);
  t.regex(
    warnings[0]?.msg ?? '',
    /do not see the server's tool "test_image_content", because its tool "test_audio_content" is shown by that name/,
  );
});

test('two tools with one name are an error at the start', async (t) => {
  const options = ['--rename-tool', 'a=c', '--rename-tool', 'b=c', '--', 'server'];
  await t.throwsAsync(startedBridge(t, options), {
    message: /ended \(2\) .*ERR_CONFIG_COMBINATION.*the tools \\"a\\" and \\"b\\" would both be called \\"c\\"/s,
  });
});

// ---- callers

const TOKENS = { ALICE: 'a-long-token-of-alice', BOB: 'a-long-token-of-bob' };
const AUTH = ['--auth-token', 'alice=env:ALICE', '--auth-token', 'bob=env:BOB'];

for (const serverEra of ERAS) {
  test(`a tool for some callers does not exist for others; the audit file has its name for clients: ${serverEra}`, async (t) => {
    const folder = await createConfigFolder(t);
    const [, command, ...args] = serverOf(serverEra);
    const tools = { [TEXT]: { name: 'text', title: 'Text', callers: ['alice'] }, [AUDIO]: { hidden: true } };
    const file = await folder.write('mcp.json', { mcpServers: { one: { command, args, portage: { tools } } } });
    const audit = `${folder.path}/audit.jsonl`;
    const bridge = await startedBridge(t, [...AUTH, '--config', file, '--audit-file', audit], TOKENS);
    for (const clientEra of ERAS) {
      const [alice, bob] = [
        await openAt(t, clientEra, bridge, TOKENS.ALICE),
        await openAt(t, clientEra, bridge, TOKENS.BOB),
      ];
      const [ofAlice, ofBob] = [await namesOf(alice), await namesOf(bob)];
      t.deepEqual(
        ofAlice.filter((name) => name !== 'text'),
        ofBob,
      );
      t.is(ofAlice.length, ofBob.length + 1);
      t.false(ofAlice.includes(AUDIO));
      t.is(await typeOf(alice, 'text'), 'text');
      await t.throwsAsync(() => bob.callTool({ name: 'text' }), { message: /Unknown tool: text/ });
      for (const client of [alice, bob]) {
        await t.throwsAsync(() => client.callTool({ name: TEXT }), { message: /Unknown tool: test_simple_text/ });
      }
    }
    await bridge.stop();
    const lines = (await readFile(audit, 'utf8')).trim().split('\n');
    const called = lines.map((line) => JSON.parse(line)).filter(({ tool }) => tool === 'text');
    t.deepEqual(
      called.map(({ caller, outcome }) => `${caller} ${outcome}`).sort(),
      [...ERAS, ...ERAS].map((_, index) => (index < 2 ? 'token:alice answered' : 'token:bob error')),
    );
  });
}

test('callers are known by their names where the server also gets headers of theirs', async (t) => {
  const folder = await createConfigFolder(t);
  const [, command, ...args] = serverOf('legacy');
  const portage = { tools: { [TEXT]: { callers: ['alice'] } }, mapHeader: ['X-Team=TEAM'] };
  const file = await folder.write('mcp.json', { mcpServers: { one: { command, args, portage } } });
  const bridge = await startedBridge(t, [...AUTH, '--config', file], TOKENS);
  const client = await openAt(t, 'legacy', bridge, TOKENS.ALICE);
  t.true((await namesOf(client)).includes(TEXT));
  t.is(await typeOf(client, TEXT), 'text');
  t.false((await namesOf(await openAt(t, 'modern', bridge, TOKENS.BOB))).includes(TEXT));
});

/** Each client may get the list of this server from a shared cache. */
function createPublicServer(): McpServer {
  const cacheHints = { 'tools/list': { ttlMs: 60_000, cacheScope: 'public' } } as const;
  const server = new McpServer({ name: 'public', version: '1' }, { cacheHints });
  server.registerTool('echo', { inputSchema: fromJsonSchema({ type: 'object' }) }, () => ({ content: [] }));
  return server;
}

test('a public list is marked as private if it differs by caller', async (t) => {
  const server = await serveModern({ createServer: createPublicServer });
  t.teardown(() => server.close());
  const folder = await createConfigFolder(t);
  const { href: url } = server.url;
  const [renamed, chosen] = [{ name: 'say' }, { callers: ['alice'] }];
  const file = await folder.write('mcp.json', {
    mcpServers: {
      one: { url, portage: { tools: { echo: renamed } } },
      two: { url, portage: { tools: { echo: chosen } } },
    },
  });
  const bridge = await startedBridge(t, [...AUTH, '--config', file], TOKENS);
  const message = modern(1, 'tools/list');
  const listOf = async (path: string) => {
    const headers = { ...headersOf(message), Authorization: `Bearer ${TOKENS.BOB}` };
    const place = { port: Number(bridge.url.port), path, method: 'POST' };
    const answer = await callHttp({ ...place, headers, body: JSON.stringify(message) });
    return (await answer.json<{ readonly result: object }>()).result;
  };
  t.like(await listOf('/one/mcp'), { tools: [{ name: 'say' }], cacheScope: 'public', ttlMs: 60_000 });
  t.like(await listOf('/two/mcp'), { tools: [], cacheScope: 'private', ttlMs: 60_000 });
});
