/** `--record` and `--inspect` of the built program, with official clients and servers of both eras. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { StreamableHTTPClientTransport as ModernHttp, Client as ModernSdk } from '@modelcontextprotocol/client';
import { Client as LegacySdk } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import test, { type ExecutionContext } from 'ava';
import { parseRecordedLine, type RecordedMessage } from '../../src/recording/recorded-message.ts';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { serverProgram } from '../support/server-program.ts';
import { waitFor } from '../support/wait-for.ts';
import { startConnect, stub } from './stdio-program.ts';

type Era = 'legacy' | 'modern';

const SERVER = serverProgram(new URL('../fixtures/everything/server.js', import.meta.url));
const CAPABILITIES = { sampling: {}, elicitation: { form: {} } };
const SAID = { role: 'assistant', model: 'fake', content: { type: 'text', text: 'said' } } as const;
const FILLED = {
  action: 'accept',
  content: { username: 'ada', email: 'ada@example.com', password: 'hunter2' },
} as const;

interface SdkClient {
  callTool(call: { readonly name: string; readonly arguments?: object }, ...options: unknown[]): Promise<object>;
  connect(transport: object): Promise<void>;
  close(): Promise<void>;
}

async function recordingFile(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-record-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return join(folder, 'record.jsonl');
}

async function start(t: ExecutionContext, ...args: readonly string[]): Promise<Bridge> {
  const bridge = await startBridge(args);
  t.teardown(async () => void (await bridge.stop()));
  return bridge;
}

/** Starts the server over HTTP, which says on stderr where it listens. */
async function startRemote(t: ExecutionContext, era: Era): Promise<string> {
  const mode = era === 'legacy' ? '--http' : '--modern-http';
  const child = spawn(process.execPath, [SERVER, mode, '0'], { stdio: ['ignore', 'ignore', 'pipe'] });
  t.teardown(async () => {
    child.kill('SIGKILL');
    await once(child, 'close');
  });
  for await (const line of createInterface({ input: child.stderr })) {
    const [, where] = /listening on (\S+)/.exec(line) ?? [];
    if (where !== undefined) return /^\d+$/.test(where) ? `http://127.0.0.1:${where}/mcp` : where;
  }
  throw new Error('the server ended before it listened');
}

async function connect(t: ExecutionContext, era: Era, url: URL): Promise<SdkClient> {
  const options = { capabilities: CAPABILITIES };
  const client = era === 'legacy' ? createLegacy(options) : createModern(options);
  const sdk = client as unknown as SdkClient;
  await sdk.connect(era === 'legacy' ? new LegacyHttp(url) : new ModernHttp(url));
  t.teardown(() => sdk.close());
  return sdk;
}

function createLegacy(options: { readonly capabilities: object }): object {
  const client = new LegacySdk({ name: 'old-host', version: '1' }, options);
  client.setRequestHandler(CreateMessageRequestSchema, () => SAID);
  client.setRequestHandler(ElicitRequestSchema, () => FILLED);
  return client;
}

function createModern(options: { readonly capabilities: object }): object {
  const pinned = { ...options, versionNegotiation: { mode: { pin: '2026-07-28' } } } as const;
  const client = new ModernSdk({ name: 'new-host', version: '1' }, pinned);
  client.setRequestHandler('sampling/createMessage', async () => SAID as never);
  client.setRequestHandler('elicitation/create', async () => FILLED as never);
  return client;
}

async function read(path: string): Promise<readonly RecordedMessage[]> {
  const lines = (await readFile(path, 'utf8')).trimEnd().split('\n');
  return lines.map((line) => {
    const read = parseRecordedLine(line);
    if ('damage' in read) throw new Error(`a line ${read.damage}: ${line}`);
    return read;
  });
}

/** Each message as one word, such as `client in request`. */
function passes(messages: readonly RecordedMessage[]): readonly string[] {
  return messages.map(({ side, direction, message }) => {
    const kind = 'method' in message ? String(message.method) : 'result' in message ? 'result' : 'error';
    return `${side} ${direction} ${kind}`;
  });
}

/** All messages of the call of this tool. */
function callOf(recorded: readonly RecordedMessage[], tool: string): readonly RecordedMessage[] {
  const request = recorded.find(
    ({ side, message }) => side === 'client' && Reflect.get(Object(message.params), 'name') === tool,
  );
  return recorded.filter(({ call }) => call !== undefined && call === request?.call);
}

const SERVERS: Readonly<Record<string, (t: ExecutionContext, era: Era) => Promise<readonly string[]>>> = {
  stdio: async (_t, era) => ['--', process.execPath, SERVER, era === 'legacy' ? '--stdio' : '--modern-stdio'],
  'streamable-http': async (t, era) => [await startRemote(t, era)],
};

for (const clientEra of ['legacy', 'modern'] as const) {
  for (const serverEra of ['legacy', 'modern'] as const) {
    for (const [carrier, target] of Object.entries(SERVERS)) {
      test(`${clientEra} client → ${serverEra} server over ${carrier}: a call has all its messages on both sides`, async (t) => {
        const file = await recordingFile(t);
        const bridge = await start(t, '--record', file, ...(await target(t, serverEra)));
        const client = await connect(t, clientEra, bridge.url);
        const options = { onprogress: () => {} };
        // The two SDKs take options in different places.
        const withProgress = (call: { readonly name: string; readonly arguments: object }) =>
          clientEra === 'legacy' ? client.callTool(call, undefined, options) : client.callTool(call, options);
        await Promise.all([
          client.callTool({ name: 'test_simple_text', arguments: {} }),
          withProgress({ name: 'test_tool_with_progress', arguments: {} }),
        ]);
        await client.callTool({ name: 'test_sampling', arguments: { prompt: 'hello' } });
        await client.callTool({ name: 'test_elicitation', arguments: { message: 'who?' } });
        await client.close();
        await bridge.stop();
        t.is((await stat(file)).mode & 0o777, 0o600);
        const recorded = await read(file);
        t.deepEqual(
          recorded.map(({ seq }) => seq),
          recorded.map((_, index) => index + 1),
        );
        for (const { side, era, carrier: shown } of recorded) {
          if (side === 'client') t.like({ era, shown }, { era: clientEra, shown: 'streamable-http' });
          else if (era !== serverEra) t.log(`${era} ${shown}`);
        }

        const name = clientEra === 'legacy' ? 'old-host' : 'new-host';
        for (const { call, client: caller, message } of recorded) {
          if (call !== undefined) t.is(caller, name, JSON.stringify(message));
        }

        const simple = callOf(recorded, 'test_simple_text');
        t.deepEqual(passes(simple).slice(-2), ['server in result', 'client out result']);
        t.is(passes(simple)[0], 'client in tools/call');
        t.true(passes(simple).includes('server out tools/call'));
        t.deepEqual(
          [...new Set(simple.filter(({ side }) => side === 'server').map((each) => each.carrier))],
          [carrier],
        );
        const [called] = simple.filter(({ side, message }) => side === 'server' && message.method === 'tools/call');
        t.is(called?.era, serverEra);

        const progress = callOf(recorded, 'test_tool_with_progress');
        const told = passes(progress).filter((pass) => pass.includes('progress'));
        t.true(told.includes('server in notifications/progress'));
        t.true(told.includes('client out notifications/progress'));

        for (const tool of ['test_sampling', 'test_elicitation']) {
          const asked = callOf(recorded, tool);
          const sides = { client: clientEra, server: serverEra };
          for (const [side, era] of Object.entries(sides)) {
            const own = asked.filter((message) => message.side === side);
            const questions = own.filter(({ message }) =>
              era === 'legacy'
                ? message.method === (tool === 'test_sampling' ? 'sampling/createMessage' : 'elicitation/create')
                : Reflect.get(Object(message.result), 'resultType') === 'input_required',
            );
            t.is(questions.length, 1, `${tool} is asked on the ${side}'s side: ${passes(asked).join(', ')}`);
          }
          t.deepEqual(passes(asked).slice(-2), ['server in result', 'client out result'], passes(asked).join(', '));
        }
        t.false((await readFile(file, 'utf8')).includes('hunter2'));
      });
    }
  }
}

test('tokens of callers, session ids, HTTP headers and planted secrets are nowhere in a recording', async (t) => {
  const file = await recordingFile(t);
  const token = 'bridge-token-0123456789';
  const bridge = await startBridge(['--record', file, '--auth-token', 'env:CALLERS', ...stub('echo')], {
    env: { CALLERS: token },
  });
  t.teardown(async () => void (await bridge.stop()));
  let session = '';
  const post = async (message: object): Promise<void> => {
    const headers = {
      Authorization: `Bearer ${token}`,
      'X-Planted': 'planted-header',
      Accept: 'application/json, text/event-stream',
      'Content-Type': 'application/json',
      ...(session === '' ? {} : { 'Mcp-Session-Id': session }),
    };
    const response = await fetch(bridge.url, { method: 'POST', headers, body: JSON.stringify(message) });
    session ||= response.headers.get('mcp-session-id') ?? '';
    await response.text();
  };
  const clientInfo = { name: 'raw', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  await post({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
  const planted = {
    'Client Secret': { deep: ['planted-1'] },
    text: 'Bearer planted-2-token and https://me:planted-3@example.com/?api_key=planted-4',
    json: '{"password": "planted-5"}',
  };
  await post({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'echo', arguments: planted } });
  await bridge.stop();
  const recorded = await readFile(file, 'utf8');
  t.regex(recorded, /"method":"tools\/call"/);
  t.not(session, '');
  for (const secret of [token, session, 'planted']) t.false(recorded.includes(secret), secret);
});

test('secrets are kept with --record-secrets, of which the start warns', async (t) => {
  const file = await recordingFile(t);
  const program = startConnect(t, ['--record', file, '--record-secrets', ...stub('echo')]);
  await program.initialize();
  program.send({
    jsonrpc: '2.0',
    id: 7,
    method: 'tools/call',
    params: { name: 'x', arguments: { password: 'hunter2' } },
  });
  await program.answerTo(7);
  program.child.stdin.end();
  await program.exited;
  t.regex(program.log(), /--record-secrets/);
  t.regex(await readFile(file, 'utf8'), /"password":"hunter2"/);
});

test('a file that cannot be opened ends the start, and names the file', async (t) => {
  const program = startConnect(t, ['--record', '/nowhere/at/all.jsonl', ...stub('echo')]);
  t.is((await program.exited).code, 2);
  t.regex(program.log(), /\/nowhere\/at\/all\.jsonl/);
});

test('a full disk changes no call', async (t) => {
  const program = startConnect(t, ['--record', '/dev/full', ...stub('echo')]);
  await program.initialize();
  await waitFor(() => /cannot be written \(ENOSPC\)/.test(program.log()) || undefined);
  program.send({ jsonrpc: '2.0', id: 7, method: 'ping' });
  t.truthy(await program.answerTo(7));
  program.child.stdin.end();
  t.is((await program.exited).code, 0);
  t.is(program.log().match(/cannot be written \(ENOSPC\)/g)?.length, 1);
});

test('messages are read live with --inspect, with those from before, and secrets are hidden', async (t) => {
  const bridge = await start(t, '--inspect', ...stub('echo'));
  const status = new URL('/status.json', bridge.url);
  t.like(await (await fetch(status)).json(), { inspect: true });
  const client = await connect(t, 'legacy', bridge.url);
  const controller = new AbortController();
  t.teardown(() => controller.abort());
  const feed = await fetch(new URL('/status/messages', bridge.url), { signal: controller.signal });
  t.is(feed.headers.get('content-type'), 'text/event-stream');
  const reader = feed.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const until = async (pattern: RegExp): Promise<void> => {
    while (!pattern.test(text)) text += (await reader?.read())?.value ?? '';
  };
  await until(/"method":"initialize"/);
  const call = client.callTool({ name: 'x', arguments: { password: 'hunter2', text: 'live' } }).catch(() => undefined);
  await until(/"password":"\[hidden\]"/);
  await call;
  t.false(text.includes('hunter2'));
  t.regex(text, /^event: message\ndata: \{"at":/m);
});

test('without --inspect there is no feed, and with it there has to be somebody who may see the status', async (t) => {
  const bridge = await start(t, ...stub('echo'));
  t.is((await fetch(new URL('/status/messages', bridge.url))).status, 404);
  t.like(await (await fetch(new URL('/status.json', bridge.url))).json(), { inspect: false });
  await t.throwsAsync(startBridge(['--inspect', '--no-status', ...stub('echo')]), { message: /--inspect/ });
});
