/** `--watch`, with official clients of both eras and servers whose code is edited on disk. */

import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import test, { type ExecutionContext } from 'ava';
import type { Bridge } from '../support/bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import {
  connectModern,
  type DevelopedServer,
  developServer,
  linesWith,
  logged,
  startWatching,
  told,
  watches,
} from '../support/developed-server.ts';
import { connectStreamable, type StreamableClient } from '../support/sdk-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { startConnect } from './stdio-program.ts';

const WORK = { name: 'work', arguments: {} };
const READY = /is ready again after \d+ ms/;
const SHARED = ['--isolation', 'shared'];

interface Watched {
  readonly server: DevelopedServer;
  readonly bridge: Bridge;
}

async function watch(
  t: ExecutionContext,
  serve: 'serveLegacy' | 'serveModern',
  options: readonly string[] = [],
): Promise<Watched> {
  const server = await developServer(t, serve);
  const bridge = await startWatching(t, ['--watch', server.folder, ...options, '--', ...server.command]);
  return { server, bridge };
}

async function connectLegacy(
  t: ExecutionContext,
  { url }: Bridge,
  options: Parameters<typeof connectStreamable>[1] = {},
): Promise<StreamableClient> {
  const connected = await connectStreamable(url, options);
  t.teardown(connected.close);
  return connected;
}

test('a session goes on with the changed code, and the log says what changed and how long the restart took', async (t) => {
  const { server, bridge } = await watch(t, 'serveLegacy');
  const { client, transport } = await connectLegacy(t, bridge);
  const { sessionId } = transport;
  const before = told(await client.callTool(WORK));
  t.is(before.version, 'one');
  await watches(bridge);
  await server.save({ version: 'two' });
  await logged(bridge, /is ready again after \d+ ms, since .*server\.mjs/);
  const after = told(await client.callTool(WORK));
  t.is(after.version, 'two');
  t.not(after.pid, before.pid);
  t.is(transport.sessionId, sessionId);
});

test('log level and subscriptions are restored, and subscribed resources are announced as changed', async (t) => {
  const { server, bridge } = await watch(t, 'serveLegacy');
  const { client, notifications } = await connectLegacy(t, bridge);
  await client.setLoggingLevel('error');
  await client.subscribeResource({ uri: 'text://version' });
  await watches(bridge);
  await server.save({ version: 'two' });
  await logged(bridge, READY);
  t.is(told(await client.callTool({ name: 'state', arguments: {} })).version, 'two text://version');
  await client.callTool({ name: 'log', arguments: {} });
  await waitFor(() => notifications.some(({ method }) => method === 'notifications/message'), { message: 'a log' });
  t.deepEqual(
    notifications.map(({ method, params }) => [method, params]),
    [
      ['notifications/resources/updated', { uri: 'text://version' }],
      ['notifications/message', { level: 'error', data: 'two error' }],
    ],
  );
});

test('changed lists are announced to sessions, and lists that stay the same are not', async (t) => {
  const { server, bridge } = await watch(t, 'serveLegacy');
  const { client, notifications } = await connectLegacy(t, bridge);
  const methods = (): readonly string[] => notifications.map(({ method }) => method);
  await client.listTools();
  await watches(bridge);
  await server.save({ version: 'two' });
  await logged(bridge, READY);
  await client.ping();
  await server.save({ version: 'three', tools: ['work', 'more'] });
  await waitFor(() => methods().length > 0, { message: 'a notification' });
  await client.ping();
  t.deepEqual(methods(), ['notifications/tools/list_changed']);
  t.true((await client.listTools()).tools.some(({ name }) => name === 'more'));
});

test('changed lists are announced to subscriptions of modern clients, whatever the era of the server', async (t) => {
  for (const serve of ['serveLegacy', 'serveModern'] as const) {
    const { server, bridge } = await watch(t, serve);
    const client = await connectModern(t, bridge);
    let changes = 0;
    client.setNotificationHandler('notifications/tools/list_changed', () => {
      changes += 1;
    });
    const listening = await client.listen({ toolsListChanged: true });
    t.teardown(() => listening.close());
    await client.listTools();
    await watches(bridge);
    await server.save({ version: 'two' });
    await logged(bridge, READY);
    t.is(told(await client.callTool(WORK)).version, 'two');
    t.is(changes, 0, serve);
    await server.save({ version: 'three', tools: ['work', 'more'] });
    await waitFor(() => changes > 0, { message: `a change of ${serve}` });
    await logged(bridge, READY, 2);
    t.true((await client.listTools({}, { cacheMode: 'refresh' })).tools.some(({ name }) => name === 'more'));
    await server.save({ version: 'four', tools: ['work'] });
    await waitFor(() => changes > 1, { message: `a second change of ${serve}` });
    t.is(changes, 2, serve);
  }
});

test('a question that is open during a restart is answered by its client to the process that asked', async (t) => {
  const { server, bridge } = await watch(t, 'serveLegacy', ['--shutdown-grace', '60s']);
  let answer = (_name: string): void => {};
  const asked: string[] = [];
  const { client } = await connectLegacy(t, bridge, {
    capabilities: { elicitation: {} },
    handlers: (sdk) =>
      sdk.setRequestHandler(ElicitRequestSchema, ({ params }) => {
        asked.push(params.message);
        return new Promise((resolve) => {
          answer = (name) => resolve({ action: 'accept', content: { name } });
        });
      }),
  });
  const { pid } = told(await client.callTool(WORK));
  await watches(bridge);
  const asking = client.callTool({ name: 'ask', arguments: {} });
  await waitFor(() => asked.length === 1, { message: 'the question' });
  await server.save({ version: 'two' });
  await logged(bridge, /restarting/);
  const waiting = client.callTool(WORK);
  answer('Ada');
  t.deepEqual(told(await asking), { version: 'one, Ada', pid });
  t.is(told(await waiting).version, 'two');
  t.deepEqual(asked, ['one']);
});

test('a call that does not end in time is told why, and the answer to its question reaches no other process', async (t) => {
  const { server, bridge } = await watch(t, 'serveLegacy', ['--shutdown-grace', '200ms']);
  const answers: ((name: string) => void)[] = [];
  const { client } = await connectLegacy(t, bridge, {
    capabilities: { elicitation: {} },
    handlers: (sdk) =>
      sdk.setRequestHandler(
        ElicitRequestSchema,
        () =>
          new Promise((resolve) => {
            answers.push((name) => resolve({ action: 'accept', content: { name } }));
          }),
      ),
  });
  await client.callTool(WORK);
  await watches(bridge);
  const asking = client.callTool({ name: 'ask', arguments: {} });
  await waitFor(() => answers.length === 1, { message: 'the question' });
  await server.save({ version: 'two' });
  await t.throwsAsync(asking, { message: /restarted because a watched file changed.*--shutdown-grace/ });
  const again = client.callTool({ name: 'ask', arguments: {} });
  await waitFor(() => answers.length === 2, { message: 'the second question' });
  answers[0]?.('late');
  answers[1]?.('right');
  t.is(told(await again).version, 'two, right');
});

test('a server that no longer starts is shown with its last lines, and comes back with the next save', async (t) => {
  const { server, bridge } = await watch(t, 'serveLegacy');
  const { client, transport } = await connectLegacy(t, bridge);
  const { sessionId } = transport;
  await client.callTool(WORK);
  await watches(bridge);
  await server.break('throw new Error("the parser is missing");');
  const [line] = await logged(bridge, /does not start since/);
  t.regex(line?.msg ?? '', /server\.mjs.* changed; .*the parser is missing/);
  await t.throwsAsync(client.callTool(WORK), { message: /the parser is missing.*started again when a watched file/ });
  const status = await (await fetch(new URL('/status.json?server=node%20server.mjs', bridge.url))).text();
  t.regex(status, /the parser is missing/);
  await server.save({ version: 'mended' });
  await logged(bridge, READY);
  t.is(told(await client.callTool(WORK)).version, 'mended');
  t.is(transport.sessionId, sessionId);
});

test('a server that never started is tried again when its files change', async (t) => {
  const { server, bridge } = await watch(t, 'serveLegacy', SHARED);
  await watches(bridge);
  await server.break('throw new Error("not yet");');
  await logged(bridge, /server\.mjs.* changed/);
  await t.throwsAsync(connectStreamable(bridge.url), { message: /not yet/ });
  await server.save({ version: 'mended' });
  await waitFor(async () => {
    const connected = await connectStreamable(bridge.url).catch(() => undefined);
    if (connected === undefined) return false;
    t.is(told(await connected.client.callTool(WORK)).version, 'mended');
    await connected.close();
    return true;
  });
});

test('prepared processes are replaced too', async (t) => {
  const { server, bridge } = await watch(t, 'serveLegacy', ['--prewarm', '2']);
  await watches(bridge);
  await waitFor(() => bridge.children().length === 2, { message: 'two processes' });
  await server.save({ version: 'two' });
  await logged(bridge, /is ready again/);
  const clients = [await connectLegacy(t, bridge), await connectLegacy(t, bridge)];
  for (const { client } of clients) t.is(told(await client.callTool(WORK)).version, 'two');
});

test('node_modules and .git are left out, and new and removed files in new folders count', async (t) => {
  const { server, bridge } = await watch(t, 'serveLegacy');
  const { client } = await connectLegacy(t, bridge);
  await client.callTool(WORK);
  await watches(bridge);
  for (const name of ['node_modules', '.git']) {
    await mkdir(join(server.folder, name));
    await writeFile(join(server.folder, name, 'file.js'), '');
  }
  const deep = join(server.folder, 'lib', 'deep');
  await mkdir(deep, { recursive: true });
  await logged(bridge, /ready again .* since .*lib/);
  await writeFile(join(deep, 'a.js'), '');
  await logged(bridge, /ready again .* since .*a\.js/);
  await writeFile(join(server.folder, 'node_modules', 'file.js'), 'changed');
  await rm(join(deep, 'a.js'));
  await logged(bridge, /ready again .* since .*a\.js/, 2);
  t.is(linesWith(bridge.logs, /node_modules|\.git/).length, 0);
});

test('a save that renames another file over the code is noticed', async (t) => {
  const { server, bridge } = await watch(t, 'serveLegacy');
  const { client } = await connectLegacy(t, bridge);
  await watches(bridge);
  await server.saveAsEditor({ version: 'two' });
  await waitFor(async () => told(await client.callTool(WORK)).version === 'two', { message: 'the changed code' });
  await server.saveAsEditor({ version: 'three' });
  await waitFor(async () => told(await client.callTool(WORK)).version === 'three', { message: 'the code after it' });
  t.pass();
});

test('a folder that is created later is watched, and so is one that is removed and created again', async (t) => {
  const server = await developServer(t, 'serveLegacy');
  const built = join(server.folder, 'dist', 'js');
  const pattern = join(server.folder, 'dist', '**', '*.js');
  const bridge = await startWatching(t, ['--watch', built, '--watch', pattern, '--', ...server.command]);
  const { client } = await connectLegacy(t, bridge);
  await client.callTool(WORK);
  await watches(bridge);
  await logged(bridge, /dist.js of --watch does not exist/);
  for (const round of [1, 2]) {
    await mkdir(built, { recursive: true });
    await writeFile(join(built, 'index.js'), `${round}`);
    await logged(bridge, READY, round * 2 - 1);
    await rm(join(server.folder, 'dist'), { recursive: true });
    await logged(bridge, READY, round * 2);
  }
  t.is((await client.callTool(WORK)).isError, undefined);
});

test('a program that writes all the time does not postpone the restart for ever', async (t) => {
  const { server, bridge } = await watch(t, 'serveLegacy');
  const { client } = await connectLegacy(t, bridge);
  await client.callTool(WORK);
  await watches(bridge);
  let isOver = false;
  const writing = (async (): Promise<void> => {
    for (let count = 0; !isOver; count += 1) {
      await writeFile(join(server.folder, 'busy.txt'), String(count));
      await delay(20);
    }
  })();
  await logged(bridge, READY);
  isOver = true;
  await writing;
  t.pass();
});

test('connect keeps its client while the server is restarted, and leaves nothing behind', async (t) => {
  const server = await developServer(t, 'serveLegacy');
  const program = startConnect(t, [
    '--log-level',
    'debug',
    '--watch',
    join(server.folder, '*.mjs'),
    '--',
    ...server.command,
  ]);
  await program.initialize();
  await waitFor(() => /files of --watch are watched/.test(program.log()), { message: 'the watch' });
  await server.save({ version: 'two' });
  await waitFor(() => /is ready again/.test(program.log()), { message: 'the restart' });
  program.send({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: WORK });
  t.is(told((await program.answerTo(7)).result).version, 'two');
  program.child.stdin.end();
  t.deepEqual(await program.exited, { code: 0, signal: null });
});

test('each server of a file is restarted for its own files, and the list of the aggregate follows', async (t) => {
  const [one, two] = [await developServer(t, 'serveLegacy'), await developServer(t, 'serveModern')];
  const { path, write } = await createConfigFolder(t);
  const entry = ({ command: [command, script] }: DevelopedServer) => ({ command, args: [script] });
  await write('mcp.json', {
    mcpServers: { one: { ...entry(one), portage: { watch: one.folder } }, two: entry(two) },
  });
  const bridge = await startWatching(t, [
    ...['--config', join(path, 'mcp.json'), '--aggregate', '--watch', two.folder],
  ]);
  const { client, notifications } = await connectLegacy(t, { ...bridge, url: new URL('/mcp', bridge.url) });
  const names = async (): Promise<string> => (await client.listTools()).tools.map(({ name }) => name).join();
  t.regex(await names(), /one__work/);
  await watches(bridge, 2);
  await one.save({ version: 'two', tools: ['more'] });
  await logged(bridge, /^one is ready again/);
  await waitFor(() => notifications.some(({ method }) => method === 'notifications/tools/list_changed'), {
    message: 'the change of the aggregate',
  });
  t.regex(await names(), /one__more/);
  t.is(linesWith(bridge.logs, /^two is ready again/).length, 0);
  await two.save({ version: 'two' });
  await logged(bridge, /^two is ready again/);
  t.is(told(await client.callTool({ name: 'two__work', arguments: {} })).version, 'two');
});

test('a file that is read again decides which files are watched from then on', async (t) => {
  const server = await developServer(t, 'serveLegacy');
  const other = await developServer(t, 'serveLegacy');
  const { path, write } = await createConfigFolder(t);
  const [command, ...args] = server.command;
  const watching = (watch: string): object => ({ mcpServers: { one: { command, args, portage: { watch } } } });
  await write('mcp.json', watching(server.folder));
  const bridge = await startWatching(t, ['--config', join(path, 'mcp.json')]);
  const before = await connectStreamable(bridge.url);
  await watches(bridge);
  await before.close();
  await write('mcp.json', watching(other.folder));
  // The session of a client that comes during the change may end with the server that is replaced.
  const useOnce = async (): Promise<void> => {
    const { client, close } = await connectStreamable(bridge.url);
    await client.callTool(WORK).finally(close);
  };
  await waitFor(
    async () => {
      await useOnce().catch(() => undefined);
      return linesWith(bridge.logs, /files of --watch are watched/).length > 1;
    },
    { message: 'the second watch' },
  );
  const { client } = await connectLegacy(t, bridge);
  const { pid } = told(await client.callTool(WORK));
  await other.save({ version: 'two' });
  await logged(bridge, /^one is ready again/);
  t.not(told(await client.callTool(WORK)).pid, pid);
});

test('clients that come later are told of new capabilities by a server that they share', async (t) => {
  const { server, bridge } = await watch(t, 'serveLegacy', SHARED);
  const { client } = await connectLegacy(t, bridge);
  await client.callTool(WORK);
  const modern = await connectModern(t, bridge);
  t.is(modern.getServerCapabilities()?.completions, undefined);
  await watches(bridge);
  await server.save({ version: 'two', capabilities: { completions: {}, tools: {} } });
  await logged(bridge, READY);
  t.is(told(await client.callTool(WORK)).version, 'two');
  const later = await connectLegacy(t, bridge);
  t.is(later.client.getServerVersion()?.version, 'two');
  t.truthy(later.client.getServerCapabilities()?.completions);
  t.truthy((await connectModern(t, bridge)).getServerCapabilities()?.completions);
});

test('processes with variables of their callers are restarted too', async (t) => {
  const { server, bridge } = await watch(t, 'serveLegacy', ['--map-header', 'X-Caller=CALLER']);
  const clients = await Promise.all(
    ['ann', 'bob'].map((caller) => connectLegacy(t, bridge, { headers: { 'X-Caller': caller } })),
  );
  await Promise.all(clients.map(({ client }) => client.callTool(WORK)));
  await watches(bridge);
  await server.save({ version: 'two' });
  await logged(bridge, READY);
  for (const { client } of clients) t.is(told(await client.callTool(WORK)).version, 'two');
});
