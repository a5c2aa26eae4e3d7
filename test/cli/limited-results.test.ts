/** `--max-result-bytes` of the built program, for clients and servers of both eras. */
import { StreamableHTTPClientTransport as ModernHttp, Client as ModernSdk } from '@modelcontextprotocol/client';
import { Client as LegacySdk } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import test, { type ExecutionContext } from 'ava';
import { headersOf, META, modern, postModern } from '../downstream/streamable-stateless/modern-posts.ts';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { callHttp } from '../support/http-call.ts';
import { waitFor } from '../support/wait-for.ts';
import { startConnect, stub } from './stdio-program.ts';

const note = (subject: string, full: number, kept: number) =>
  `[${subject} has ${full} bytes, of which ${kept} are kept: mcp-portage limits results by --max-result-bytes.]`;
const text = (value: string) => ({ type: 'text', text: value });

interface SdkClient {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string; readonly outputSchema?: object }[] }>;
  callTool(call: { readonly name: string; readonly arguments: object }): Promise<object>;
  connect(transport: object): Promise<void>;
  close(): Promise<void>;
}

const info = { name: 'host', version: '1' };
const CLIENTS: Readonly<Record<'legacy' | 'modern', (url: URL) => readonly [client: object, transport: object]>> = {
  legacy: (url) => [new LegacySdk(info), new LegacyHttp(url)],
  modern: (url) => [new ModernSdk(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } }), new ModernHttp(url)],
};

async function start(t: ExecutionContext, ...args: readonly string[]): Promise<Bridge> {
  const bridge = await startBridge(args);
  t.teardown(() => bridge.stop());
  return bridge;
}

for (const clientEra of ['legacy', 'modern'] as const) {
  for (const serverEra of ['legacy', 'modern'] as const) {
    test(`${clientEra} client → ${serverEra} server: each part of a result has the limit for itself`, async (t) => {
      const bridge = await start(t, '--max-result-bytes', '100', '--protocol', serverEra, ...stub('large-results'));
      const [made, transport] = CLIENTS[clientEra](bridge.url);
      const client = made as unknown as SdkClient;
      await client.connect(transport);
      t.teardown(() => client.close());
      const call = (name: string, length: number) => client.callTool({ name, arguments: { length } });
      // The SDKs check results by the schemas that were listed.
      const { tools } = await client.listTools();
      t.deepEqual(
        tools.map(({ name, outputSchema }) => ({ name, outputSchema })),
        ['text', 'image', 'fails', 'structured'].map((name) => ({ name, outputSchema: undefined })),
      );
      t.like(await call('text', 100), { content: [text('x'.repeat(100)), text('x')] });
      t.like(await call('text', 101), {
        content: [text(`${'x'.repeat(100)}\n${note('This text', 101, 100)}`), text('x')],
      });
      t.like(await call('image', 104), { content: [text(note('This image in Base64', 104, 0))] });
      t.like(await call('fails', 200), { content: [text('x'.repeat(200))], isError: true });
      t.like(await call('structured', 10), { structuredContent: { a: 'x'.repeat(10) }, content: [text('x')] });
      const structured = await call('structured', 200);
      t.deepEqual(Reflect.get(structured, 'content'), [text('x'), text(note('The structured content', 208, 0))]);
      t.is(Reflect.get(structured, 'structuredContent'), undefined);
    });
  }
}

test('without a limit, results and lists pass byte for byte', async (t) => {
  const bridge = await start(t, '--protocol', 'modern', ...stub('large-results'));
  const [made, transport] = CLIENTS.modern(bridge.url);
  const client = made as unknown as SdkClient;
  await client.connect(transport);
  t.teardown(() => client.close());
  t.true((await client.listTools()).tools.some(({ outputSchema }) => outputSchema !== undefined));
  t.like(await client.callTool({ name: 'structured', arguments: { length: 99_999 } }), {
    structuredContent: { a: 'x'.repeat(99_999) },
  });
});

const HAS_TASKS = { [`${META}clientCapabilities`]: { extensions: { 'io.modelcontextprotocol/tasks': {} } } };
const DONE = { content: [text(`don\n${note('This text', 4, 3)}`)] };

test('results of tasks are limited, whether their client asks for them, waits, or listens', async (t) => {
  const { url } = await start(t, '--max-result-bytes', '3', ...stub('runs-as-task'));
  const port = Number(url.port);
  const post = async (method: string, params: object, meta: object = HAS_TASKS, name: object = {}) => {
    const answer = await postModern({ port }, modern(1, method, params, meta), { ...name });
    const said = answer.isEventStream ? (await answer.events().rest()).at(-1)?.data : await answer.text();
    return JSON.parse(said ?? '').result as Readonly<Record<string, unknown>>;
  };
  const slow = { name: 'slow', arguments: {} };
  t.like(await post('tools/call', slow, {}), DONE);
  const { taskId } = await post('tools/call', slow);
  const get = () => post('tasks/get', { taskId }, HAS_TASKS, { 'Mcp-Name': String(taskId) });
  const ended = await waitFor(async () => {
    const task = await get();
    return task.status === 'completed' ? task : undefined;
  });
  t.like(ended.result, DONE);
  const listening = await postModern(
    { port },
    modern(2, 'subscriptions/listen', { notifications: { taskIds: [taskId] } }, HAS_TASKS),
  );
  const events = listening.events();
  let told: Readonly<Record<string, unknown>> = {};
  while (told.method !== 'notifications/tasks') told = JSON.parse((await events.next()).data);
  t.like(told, { params: { status: 'completed', result: DONE } });
  listening.leave();
});

test('the result of a task of a legacy client is limited, and messages keep their bytes around it', async (t) => {
  const program = startConnect(t, ['--max-result-bytes', '3', ...stub('runs-as-task')]);
  await program.initialize();
  program.send({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'slow', task: { ttl: 60_000 } } });
  const created = await program.answerTo(7);
  const { taskId } = created.result?.task as { readonly taskId: string };
  program.send({ jsonrpc: '2.0', id: 8, method: 'tasks/result', params: { taskId } });
  await program.answerTo(8);
  const meta = { 'io.modelcontextprotocol/related-task': { taskId } };
  t.deepEqual(
    program.lines.filter((line) => JSON.parse(line).id === 8),
    [JSON.stringify({ result: { ...DONE, _meta: meta }, jsonrpc: '2.0', id: 8 })],
  );
});

test('a file limits the results of each server by itself', async (t) => {
  const command = { command: process.execPath, args: stub('large-results').slice(2) };
  const folder = await createConfigFolder(t);
  const file = await folder.write('mcp.json', {
    portage: { maxResultBytes: 10 },
    mcpServers: {
      a: command,
      b: { ...command, portage: { maxResultBytes: '20' } },
      c: { ...command, portage: { maxResultBytes: 0 } },
    },
  });
  const { url } = await start(t, '--config', file);
  for (const [name, kept] of [
    ['a', 10],
    ['b', 20],
    ['c', 30],
  ] as const) {
    const posted = modern(1, 'tools/call', { name: 'text', arguments: { length: 30 } });
    const place = { port: Number(url.port), path: `/${name}/mcp`, method: 'POST' };
    const answer = await callHttp({ ...place, headers: headersOf(posted), body: JSON.stringify(posted) });
    const said = answer.isEventStream ? (await answer.events().rest()).at(-1)?.data : await answer.text();
    t.is(JSON.parse(said ?? '').result.content[0].text.split('\n')[0], 'x'.repeat(kept));
  }
});
