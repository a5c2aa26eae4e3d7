/**
 * Tasks of a server of the official SDK v1 whose tools can, must or cannot run as tasks, before clients of the modern
 * era. The official SDK v2 can neither declare that it follows tasks nor ask for them, so that those that do write their
 * own messages.
 */
import { StreamableHTTPClientTransport as ModernHttp, Client as ModernSdk } from '@modelcontextprotocol/client';
import test, { type ExecutionContext } from 'ava';
import { startConnect, stub } from '../cli/stdio-program.ts';
import { META, modern, postModern, type RpcBody } from '../downstream/streamable-stateless/modern-posts.ts';
import { createTaskTools } from '../fixtures/servers/task-tools.js';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { fixture, NODE, textOf } from '../support/config-bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { startStreamable } from '../support/sdk-servers.ts';
import { waitFor } from '../support/wait-for.ts';

const EXTENSION = 'io.modelcontextprotocol/tasks';
const FORM = { elicitation: { form: {} } };
const DECLARING = { ...FORM, extensions: { [EXTENSION]: {} } };

/** A client without an SDK. */
interface RawClient {
  request(method: string, params: object, capabilities?: object): Promise<RpcBody>;
}

interface Way {
  /** What the names of the tools begin with. */
  readonly prefix: string;
  open(t: ExecutionContext): Promise<RawClient>;
}

const capable = (capabilities: object) => ({ [`${META}clientCapabilities`]: capabilities });

function overHttp({ url }: Pick<Bridge, 'url'>): RawClient {
  let id = 0;
  return {
    async request(method, params, capabilities = DECLARING) {
      id += 1;
      const { taskId } = params as { readonly taskId?: string };
      const name = taskId === undefined ? {} : { 'Mcp-Name': taskId };
      const answer = await postModern(
        { port: Number(url.port) },
        modern(id, method, params, capable(capabilities)),
        name,
      );
      const text = answer.isEventStream ? ((await answer.events().rest()).at(-1)?.data ?? '') : await answer.text();
      return JSON.parse(text);
    },
  };
}

function overStdio(t: ExecutionContext, args: readonly string[]): RawClient {
  const program = startConnect(t, args);
  let id = 0;
  return {
    async request(method, params, capabilities = DECLARING) {
      id += 1;
      program.send(modern(id, method, params, capable(capabilities)));
      return (await program.answerTo(id)) as RpcBody;
    },
  };
}

async function serve(t: ExecutionContext, args: readonly string[]): Promise<Bridge> {
  const bridge = await startBridge(args);
  t.teardown(async () => void (await bridge.stop()));
  return bridge;
}

async function serverUrl(t: ExecutionContext): Promise<string> {
  const server = await startStreamable({ createServer: createTaskTools });
  t.teardown(() => server.close());
  return server.url.href;
}

async function configFile(t: ExecutionContext): Promise<string> {
  const folder = await createConfigFolder(t);
  const entry = { command: NODE, args: [fixture('task-tools')] };
  return folder.write('mcp.json', { mcpServers: { one: entry, two: { url: await serverUrl(t) } } });
}

const STDIO = stub('task-tools');

const WAYS: Readonly<Record<string, Way>> = {
  'client over HTTP, server over stdio': { prefix: '', open: async (t) => overHttp(await serve(t, STDIO)) },
  'client over HTTP, server over Streamable HTTP': {
    prefix: '',
    open: async (t) => overHttp(await serve(t, [await serverUrl(t)])),
  },
  'client over stdio, server over stdio': { prefix: '', open: async (t) => overStdio(t, STDIO) },
  'client over stdio, server over Streamable HTTP': {
    prefix: '',
    open: async (t) => overStdio(t, [await serverUrl(t)]),
  },
  'client over HTTP, one of several servers': {
    prefix: 'one__',
    open: async (t) => overHttp(await serve(t, ['--config', await configFile(t), '--aggregate'])),
  },
  'client over stdio, another of several servers': {
    prefix: 'two__',
    open: async (t) => overStdio(t, ['--config', await configFile(t)]),
  },
};

const call = (name: string, args: Record<string, unknown> = {}) => ({ name, arguments: args });

async function create(client: RawClient, name: string, args: Record<string, unknown> = {}): Promise<string> {
  const { result, error } = await client.request('tools/call', call(name, args));
  if (result?.resultType !== 'task') throw new Error(`no task, but ${JSON.stringify(result ?? error)}`);
  return result.taskId;
}

function until(client: RawClient, taskId: string, status: string): Promise<RpcBody['result']> {
  return waitFor(
    async () => {
      const { result } = await client.request('tasks/get', { taskId });
      return result?.status === status ? result : undefined;
    },
    { message: `the task to be ${status}` },
  );
}

for (const [title, { prefix, open }] of Object.entries(WAYS)) {
  test.serial(`${title}: a client that follows tasks gets one of a tool that can or must run as one`, async (t) => {
    const client = await open(t);
    const optional = await create(client, `${prefix}slow_compute`, { seconds: 0.2 });
    const required = await create(client, `${prefix}failing_job`);
    t.not(optional, required);
    const computed = await until(client, optional, 'completed');
    t.like(computed, { resultType: 'complete', result: { content: [{ text: 'computed for 0.2 s' }] } });
    const failed = await until(client, required, 'completed');
    t.like(failed?.result, { content: [{ text: 'the job has failed' }], isError: true });
    const crashed = await until(client, await create(client, `${prefix}protocol_error_job`), 'failed');
    t.regex(crashed?.error.message, /the job has crashed/);
    const { result } = await client.request('tools/call', call(`${prefix}greet`, { name: 'Ada' }));
    t.like(result, { resultType: 'complete', content: [{ text: 'Hello, Ada!' }] });
  });

  test.serial(`${title}: an optional task asks its client, and ends when its client says so`, async (t) => {
    const client = await open(t);
    const asking = await create(client, `${prefix}confirm_delete`, { filename: 'a' });
    const { inputRequests } = (await until(client, asking, 'input_required')) ?? {};
    const [key = ''] = Object.keys(inputRequests);
    t.like(inputRequests[key], { method: 'elicitation/create', params: { message: 'Delete it?' } });
    const inputResponses = { [key]: { action: 'accept', content: { confirm: true } } };
    t.is((await client.request('tasks/update', { taskId: asking, inputResponses })).error, undefined);
    t.like(await until(client, asking, 'completed'), { result: { content: [{ text: 'confirmed: true' }] } });
    const endless = await create(client, `${prefix}slow_compute`, { seconds: 3600 });
    t.is((await client.request('tasks/cancel', { taskId: endless })).error, undefined);
    t.is((await until(client, endless, 'cancelled'))?.result, undefined);
  });

  test.serial(`${title}: a client that follows no tasks gets the result`, async (t) => {
    const client = await open(t);
    for (const [name, args, text] of [
      ['slow_compute', { seconds: 0 }, 'computed for 0 s'],
      ['failing_job', {}, 'the job has failed'],
    ] as const) {
      const { result } = await client.request('tools/call', call(`${prefix}${name}`, args), FORM);
      t.like(result, { resultType: 'complete', content: [{ text }] });
    }
  });
}

async function openSdk(t: ExecutionContext, { url }: Bridge, capabilities: object): Promise<ModernSdk> {
  const info = { name: 'host', version: '1' };
  const versionNegotiation = { mode: { pin: '2026-07-28' } } as const;
  const client = new ModernSdk(info, { capabilities, versionNegotiation });
  await client.connect(new ModernHttp(url));
  t.teardown(() => client.close());
  return client;
}

test('an official client gets the result, unless it declares tasks, of which it can only say that it got one', async (t) => {
  const bridge = await serve(t, STDIO);
  const optional = call('slow_compute', { seconds: 0 });
  const plain = await openSdk(t, bridge, FORM);
  t.is(textOf(await plain.callTool(optional)), 'computed for 0 s');
  t.is(textOf(await plain.callTool(call('failing_job'))), 'the job has failed');
  const declaring = await openSdk(t, bridge, DECLARING);
  t.deepEqual(declaring.getServerCapabilities()?.extensions, { [EXTENSION]: {} });
  const data = { resultType: 'task', method: 'tools/call' };
  t.like(await t.throwsAsync(() => declaring.callTool(optional)), { data });
  t.is(textOf(await declaring.callTool(call('greet', { name: 'Ada' }))), 'Hello, Ada!');
});

for (const [title, args] of [
  ['a server that declares no tasks', stub('task-tools', '--undeclared')],
  ['a server that all clients share, whose tasks would be everybody’s', ['--isolation', 'shared', ...STDIO]],
] as const) {
  test(`${title} is called plainly, whatever its tools say`, async (t) => {
    const client = overHttp(await serve(t, args));
    const { result: discovered } = await client.request('server/discover', {});
    t.is(discovered?.capabilities.extensions, undefined);
    const { result } = await client.request('tools/call', call('slow_compute', { seconds: 0 }));
    t.like(result, { resultType: 'complete', content: [{ text: 'computed for 0 s' }] });
    t.is((await client.request('tasks/get', { taskId: 'x' })).error?.code, -32601);
  });
}
