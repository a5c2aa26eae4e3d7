/** `mcp-portage view` with what a real bridge records and shows, between official clients and servers of both eras. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import test, { type ExecutionContext } from 'ava';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { connectStreamable } from '../support/sdk-client.ts';
import { serverProgram } from '../support/server-program.ts';
import { waitFor } from '../support/wait-for.ts';
import { finishCommand } from './finish-command.ts';
import { EXECUTABLE } from './stdio-program.ts';

const PROGRAM = serverProgram(new URL('../fixtures/everything/server.js', import.meta.url));
const SERVER = ['--', process.execPath, PROGRAM, '--stdio'];

async function start(t: ExecutionContext, ...args: readonly string[]): Promise<Bridge> {
  const bridge = await startBridge([...args, ...SERVER]);
  t.teardown(async () => void (await bridge.stop()));
  return bridge;
}

async function callAsModern(bridge: Bridge): Promise<void> {
  const client = new Client(
    { name: 'new-host', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  await client.connect(new StreamableHTTPClientTransport(bridge.url));
  await client.callTool({ name: 'test_simple_text', arguments: {} });
  await client.callTool({ name: 'no-such-tool', arguments: {} }).catch(() => undefined);
  await client.close();
}

async function callAsLegacy(bridge: Bridge): Promise<void> {
  const { client, close } = await connectStreamable(bridge.url, {
    name: 'old-host',
    capabilities: { sampling: {} },
    handlers: (legacy) =>
      legacy.setRequestHandler(CreateMessageRequestSchema, () => ({
        role: 'assistant',
        model: 'fake',
        content: { type: 'text', text: 'said' },
      })),
  });
  await client.callTool({ name: 'test_sampling', arguments: { prompt: 'say something' } });
  await close();
}

interface ShownCall {
  readonly kind: string;
  readonly client?: string;
  readonly method: string;
  readonly subject?: string;
  readonly outcome: string;
  readonly era: string;
  readonly questions: readonly { readonly method: string; readonly outcome: string }[];
  readonly messages: readonly { readonly side: string; readonly era: string; readonly direction: string }[];
}

function parse(json: string): readonly ShownCall[] {
  return json.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));
}

const toolsOf = (calls: readonly ShownCall[], name: string): readonly ShownCall[] =>
  calls.filter(({ client, method, kind }) => kind === 'call' && client === name && method === 'tools/call');

test('calls that a bridge recorded are shown with their questions, and translated ones with all four messages', async (t) => {
  const file = join((await createConfigFolder(t)).path, 'session.jsonl');
  const bridge = await start(t, '--record', file);
  await callAsModern(bridge);
  await callAsLegacy(bridge);
  await bridge.stop();
  const { code, stdout, stderr } = await finishCommand([
    process.execPath,
    EXECUTABLE,
    'view',
    '--full',
    '--json',
    file,
  ]);
  t.is(code, 0);
  t.is(stderr, '');
  const calls = parse(stdout);
  const [echo, missing, ...others] = toolsOf(calls, 'new-host');
  t.deepEqual(others, []);
  t.like(echo, { subject: 'test_simple_text', outcome: 'answered', era: 'modern' });
  t.not(missing?.outcome, 'answered');
  // A session with the server may have been opened for the call in between.
  const ways = echo?.messages.map(({ side, direction, era }) => `${side} ${direction} ${era}`) ?? [];
  t.is(ways[0], 'client in modern');
  t.deepEqual(ways.slice(-3), ['server out legacy', 'server in legacy', 'client out modern']);
  const [asking] = toolsOf(calls, 'old-host');
  t.like(asking, {
    outcome: 'answered',
    era: 'legacy',
    questions: [{ method: 'sampling/createMessage', outcome: 'answered' }],
  });
  t.is(asking?.questions.length, 1);
  t.deepEqual(
    calls.filter(({ outcome }) => outcome === 'unanswered'),
    [],
  );
});

test('a running bridge with --inspect is followed, on its page as well, and one without it says how to start it', async (t) => {
  const bridge = await start(t, '--inspect');
  const { origin } = bridge.url;
  const view = spawn(process.execPath, [EXECUTABLE, 'view', '--json', origin], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => view.kill('SIGKILL'));
  const exited = once(view, 'exit');
  let out = '';
  view.stdout.on('data', (chunk) => {
    out += String(chunk);
  });
  await callAsModern(bridge);
  await waitFor(() => toolsOf(parse(out.slice(0, out.lastIndexOf('\n'))), 'new-host').length === 2);
  view.kill('SIGTERM');
  await exited;
  t.is(toolsOf(parse(out), 'new-host')[0]?.subject, 'test_simple_text');
  t.regex(await (await fetch(`${origin}/status`)).text(), /id="messages-section"/);
  t.regex(await (await fetch(`${origin}/status.js`)).text(), /status\/messages/);
  const without = await start(t);
  const refused = await finishCommand([process.execPath, EXECUTABLE, 'view', without.url.origin]);
  t.regex(refused.stderr, /start mcp-portage there with --inspect/);
  t.notRegex(await (await fetch(`${without.url.origin}/status`)).text(), /messages-section/);
  t.notRegex(await (await fetch(`${without.url.origin}/status.js`)).text(), /status\/messages/);
});
