/** Recordings as servers of the built program, with clients of the official SDKs of both eras. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { CLIENTS, type ClientName } from '../matrix/clients.ts';
import { startFront } from '../matrix/fronts.ts';
import { fromServer, type MatrixClient } from '../matrix/matrix-client.ts';
import {
  META,
  modernResult,
  notification,
  RecordingScript,
  request,
  result,
  toolCall,
} from '../support/recording-script.ts';
import { waitFor } from '../support/wait-for.ts';
import { writeRecording } from '../upstream/replay/replay.ts';
import { EXECUTABLE } from './stdio-program.ts';

const NAMES = ['stdio', 'streamable', 'modernStdio', 'modernHttp'] as const satisfies readonly ClientName[];

const TOOLS = ['greet', 'count', 'slow', 'install'].map((name) => ({ name, inputSchema: { type: 'object' } }));
const ELICITATION = {
  mode: 'form',
  message: 'Who are you?',
  requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
};
const SAMPLING = { messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }], maxTokens: 9 };

/** A legacy server that asks in the middle of a call. */
function legacy(): RecordingScript {
  return new RecordingScript()
    .handshake()
    .exchange(1, 'tools/list', undefined, { tools: TOOLS })
    .sent(toolCall(2, 'greet'), { call: 2 })
    .received(request('e', 'elicitation/create', ELICITATION), { call: 2 })
    .sent({ jsonrpc: '2.0', id: 'e', result: { action: 'accept', content: { name: 'Ann' } } }, { call: 2 })
    .received(request('s', 'sampling/createMessage', SAMPLING), { call: 2 })
    .sent(
      { jsonrpc: '2.0', id: 's', result: { role: 'assistant', model: 'm', content: { type: 'text', text: 'Ho' } } },
      { call: 2 },
    )
    .received(result(2, 'Hello Ann'), { call: 2 })
    .sent(toolCall(3, 'count'))
    .received(result(3, 'one'))
    .sent(toolCall(4, 'count'))
    .received(result(4, 'two'))
    .sent(toolCall(5, 'slow', {}, { progressToken: 5 }))
    .received(notification('notifications/progress', { progressToken: 5, progress: 1, message: 'first' }))
    .received(notification('notifications/progress', { progressToken: 5, progress: 2, message: 'second' }))
    .received(result(5, 'done'));
}

/** The same of a modern server, whose questions are rounds. */
function modern(): RecordingScript {
  const said = (id: number, words: string) => modernResult(id, { content: [{ type: 'text', text: words }] });
  const round = (id: number, inputResponses: object, requestState: string) =>
    request(id, 'tools/call', { name: 'greet', arguments: {}, _meta: META, inputResponses, requestState });
  return new RecordingScript({ era: 'modern' })
    .discovery()
    .exchange(
      1,
      'tools/list',
      { _meta: META },
      { resultType: 'complete', tools: TOOLS, ttlMs: 0, cacheScope: 'private' },
    )
    .sent(toolCall(2, 'greet', {}, META))
    .received(
      modernResult(2, {
        resultType: 'input_required',
        inputRequests: { e: { method: 'elicitation/create', params: ELICITATION } },
        requestState: 'x',
      }),
    )
    .sent(round(3, { e: { action: 'accept', content: { name: 'Ann' } } }, 'x'))
    .received(
      modernResult(3, {
        resultType: 'input_required',
        inputRequests: { s: { method: 'sampling/createMessage', params: SAMPLING } },
        requestState: 'y',
      }),
    )
    .sent(round(4, { s: { role: 'assistant', model: 'm', content: { type: 'text', text: 'Ho' } } }, 'y'))
    .received(said(4, 'Hello Ann'))
    .sent(toolCall(5, 'count', {}, META))
    .received(said(5, 'one'))
    .sent(toolCall(6, 'count', {}, META))
    .received(said(6, 'two'))
    .sent(toolCall(7, 'slow', {}, { ...META, progressToken: 7 }))
    .received(notification('notifications/progress', { progressToken: 7, progress: 1, message: 'first' }))
    .received(notification('notifications/progress', { progressToken: 7, progress: 2, message: 'second' }))
    .received(said(7, 'done'));
}

async function connect(t: ExecutionContext, name: ClientName, target: readonly string[]): Promise<MatrixClient> {
  const front = await startFront(name, target);
  t.teardown(() => front.stop());
  const client = await front.connect({ name });
  t.teardown(() => client.close());
  return client;
}

for (const [era, script] of [
  ['legacy', legacy()],
  ['modern', modern()],
] as const) {
  for (const name of NAMES) {
    const { title } = CLIENTS[name];

    test(`a ${era} recording for a client over ${title}: lists, n-th answers, progress and questions in order`, async (t) => {
      const client = await connect(t, name, [`replay:${writeRecording(t, script)}`]);
      const asked: string[] = [];
      client.answer('elicitation/create', ({ message }) => {
        asked.push(String(message));
        return { action: 'accept', content: { name: 'Bob' } };
      });
      client.answer('sampling/createMessage', () => {
        asked.push('sampling');
        return { role: 'assistant', model: 'other', content: { type: 'text', text: 'Hm' } };
      });
      t.deepEqual(
        (await client.list('tools')).items.map((tool) => tool.name),
        TOOLS.map((tool) => tool.name),
      );
      t.is((await client.callTool('greet')).text, 'Hello Ann');
      t.deepEqual(asked, ['Who are you?', 'sampling']);
      t.is((await client.callTool('count')).text, 'one');
      t.is((await client.callTool('count')).text, 'two');
      t.is((await client.callTool('count')).text, 'two');
      const progress: unknown[] = [];
      t.is((await client.callTool('slow', {}, { onProgress: (message) => progress.push(message) })).text, 'done');
      t.deepEqual(
        fromServer(client, 'notifications/progress').map(({ params }) => params?.message),
        ['first', 'second'],
      );
      const error = await t.throwsAsync(client.callTool('greet', { loud: true }));
      t.is(Reflect.get(error ?? {}, 'code'), -32602);
      t.regex(error?.message ?? '', /there is no arguments\.loud in the nearest one/);
      t.deepEqual(client.faults, []);
    });
  }
}

test('a list that changed during a legacy recording is told to clients of either era that watch it', async (t) => {
  const script = new RecordingScript()
    .handshake()
    .exchange(1, 'tools/list', undefined, { tools: TOOLS })
    .sent(toolCall(2, 'install'))
    .received(result(2, 'ok'))
    .received(notification('notifications/tools/list_changed'));
  for (const name of ['streamable', 'stdio', 'modernStdio', 'modernHttp'] as const) {
    const client = await connect(t, name, [`replay:${writeRecording(t, script)}`]);
    await client.watchLists();
    await client.callTool('install');
    const [change] = await waitFor(
      () => {
        const changes = fromServer(client, 'notifications/tools/list_changed');
        return changes.length > 0 ? changes : undefined;
      },
      { message: () => `the change over ${name}: ${JSON.stringify(client.trace)}` },
    );
    t.truthy(change, name);
  }
});

// ---- configuration and commands

function run(t: ExecutionContext, argv: readonly string[], cwd?: string) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('MCP_PORTAGE_')));
  const child = spawn(process.execPath, [EXECUTABLE, ...argv], { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  return Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]).then(
    ([stdout, stderr, [code]]) => ({ stdout, stderr, code }),
  );
}

test('probe shows what was recorded, with a path relative to the current folder', async (t) => {
  const file = writeRecording(t, legacy());
  const { stdout, stderr, code } = await run(t, ['probe', 'replay:session.jsonl'], dirname(file));
  t.is(code, 0, stderr);
  t.regex(stdout, /replay:session\.jsonl/);
  t.regex(stdout, /replay, legacy/);
  t.regex(stdout, /recorded-server 7/);
  t.regex(stdout, /4 tools/);
});

test('probe --json names the transport replay', async (t) => {
  const { stdout } = await run(t, ['probe', '--json', `replay:${writeRecording(t, modern())}`]);
  const { offers, target } = JSON.parse(stdout);
  t.deepEqual(target, { kind: 'replay', name: 'replay:session.jsonl' });
  t.like(offers[0], { transport: 'replay', era: 'modern', works: true });
});

test('a damaged recording ends each command with the number of the line', async (t) => {
  const file = writeRecording(t, `${legacy().text}{"torn\n`);
  for (const verb of ['serve', 'connect', 'probe']) {
    const { stderr, code } = await run(t, [verb, ...(verb === 'serve' ? ['--port', '0'] : []), `replay:${file}`]);
    t.is(code, 2, verb);
    t.regex(stderr, /ERR_CONFIG_RECORDING.*line 20 is not JSON; remove that line/s, verb);
  }
});

test('a configuration file names a recording relative to its folder, and one of its servers', async (t) => {
  const other = new RecordingScript({ server: 'other' })
    .handshake()
    .sent(toolCall(1, 'b'))
    .received(result(1, 'of other'));
  const file = writeRecording(t, legacy().text + other.text);
  const config = join(dirname(file), 'mcp.json');
  const servers = {
    one: { url: 'replay:./session.jsonl#other', portage: { replaySpeed: 2 } },
    two: { type: 'replay', url: 'replay:session.jsonl#demo' },
  };
  writeFileSync(config, JSON.stringify({ mcpServers: servers }), { mode: 0o600 });
  const client = await connect(t, 'stdio', ['--config', config, 'one']);
  t.is((await client.callTool('b')).text, 'of other');
  const second = await connect(t, 'stdio', ['--config', config, 'two']);
  t.is((await second.callTool('count')).text, 'one');
});

for (const [title, argv, said] of [
  ['a recording without a path', ['replay:'], /recording to replay is not named/],
  ['a recording with an empty name', ['replay:x.jsonl#'], /recording to replay is not named/],
  ['a path with ~', ['replay:~/x.jsonl'], /begins with ~/],
  ['a missing file', ['replay:/nowhere/x.jsonl'], /cannot be read \(ENOENT\)/],
  ['a speed for another server', ['--replay-speed', '1', 'http://127.0.0.1:1/mcp'], /replayed from a recording/],
  ['a wrong speed', ['--replay-speed', 'fast', 'replay:x.jsonl'], /expected a factor like 1, 2 or 0\.5/],
  ['an option for processes', ['--pty', 'replay:x.jsonl'], /this one is replayed from a recording/],
] as const) {
  test(`${title} is refused with the way out`, async (t) => {
    const { code, stderr } = await run(t, ['connect', ...argv]);
    t.is(code, 2);
    t.regex(stderr, said);
  });
}
