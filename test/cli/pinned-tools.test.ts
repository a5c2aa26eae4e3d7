/** `--pin-tools` and `pin` of the built program, for clients and servers of both eras. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { StreamableHTTPClientTransport as ModernHttp, Client as ModernSdk } from '@modelcontextprotocol/client';
import { Client as LegacySdk } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import test, { type ExecutionContext } from 'ava';
import { modern, postModern } from '../downstream/streamable-stateless/modern-posts.ts';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { type ConfigFolder, createConfigFolder } from '../support/config-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { EXECUTABLE, startConnect, stub } from './stdio-program.ts';

type Era = 'legacy' | 'modern';

interface SdkClient {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>;
  callTool(call: { readonly name: string; readonly arguments: object }): Promise<unknown>;
  connect(transport: object): Promise<void>;
  close(): Promise<void>;
}

const info = { name: 'host', version: '1' };

async function connectSdk(t: ExecutionContext, era: Era, url: URL): Promise<SdkClient> {
  const client = (era === 'legacy'
    ? new LegacySdk(info)
    : new ModernSdk(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } })) as unknown as SdkClient;
  await client.connect(era === 'legacy' ? new LegacyHttp(url) : new ModernHttp(url));
  t.teardown(() => client.close());
  return client;
}

/** The files of a test: the pins, and the descriptions of the server's tools. */
class World {
  readonly #t: ExecutionContext;
  readonly folder: ConfigFolder;

  private constructor(t: ExecutionContext, folder: ConfigFolder) {
    this.#t = t;
    this.folder = folder;
    this.describe({ echo: 'says it', other: 'does more' });
  }

  static async create(t: ExecutionContext): Promise<World> {
    return new World(t, await createConfigFolder(t));
  }

  get pins(): string {
    return join(this.folder.path, 'pins.json');
  }

  get tools(): string {
    return join(this.folder.path, 'tools.json');
  }

  get server(): string[] {
    return stub('changes-tools', this.tools);
  }

  /** Describes the tools of servers that start from now on. */
  describe(tools: Readonly<Record<string, string>>): void {
    writeFileSync(this.tools, JSON.stringify(tools));
  }

  async serve(...options: readonly string[]): Promise<Bridge> {
    const bridge = await startBridge(['--pin-tools', this.pins, ...options, ...this.server]);
    this.#t.teardown(() => bridge.stop());
    return bridge;
  }

  read(): { readonly servers: Record<string, { readonly tools: object; readonly waiting: object }> } {
    return JSON.parse(readFileSync(this.pins, 'utf8'));
  }

  /** The tools that wait, of all servers. */
  get waiting(): readonly string[] {
    return Object.values(this.read().servers).flatMap(({ waiting }) => Object.keys(waiting));
  }

  async untilWaiting(...names: readonly string[]): Promise<void> {
    await waitFor(() => names.every((name) => this.waiting.includes(name)) || undefined);
  }

  pin(...args: readonly string[]): Promise<{ code: number | null; out: string; err: string }> {
    return runProgram('pin', ...args);
  }
}

async function runProgram(...args: readonly string[]) {
  const child = spawn(process.execPath, [EXECUTABLE, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: code as number | null, out, err };
}

const namesOf = async (client: SdkClient) => (await client.listTools()).tools.map(({ name }) => name);
const run = (client: SdkClient, name: string, tools?: object) =>
  client.callTool({ name, arguments: { ...(tools && { tools }) } });

for (const clientEra of ['legacy', 'modern'] as const) {
  for (const serverEra of ['legacy', 'modern'] as const) {
    for (const isolation of ['session', 'shared']) {
      const what = `${clientEra} client → ${serverEra} server, ${isolation}`;
      test(`${what}: a tool that changes while its server runs is hidden until it is accepted`, async (t) => {
        const world = await World.create(t);
        const bridge = await world.serve('--protocol', serverEra, '--isolation', isolation);
        const client = await connectSdk(t, clientEra, bridge.url);
        t.deepEqual(await namesOf(client), ['echo', 'other']);
        t.is(statSync(world.pins).mode & 0o777, 0o600);
        t.like(await run(client, 'echo'), { content: [{ text: 'echo has run' }] });
        await run(client, 'echo', { echo: 'says it, and sends it to me', other: 'does more', third: 'is new' });
        t.deepEqual(await namesOf(client), ['other']);
        await t.throwsAsync(run(client, 'echo'), {
          message: /The tool "echo" is not called: its description is not as .*: mcp-portage pin --accept \S+ echo$/,
        });
        await t.throwsAsync(run(client, 'third'), { message: /The tool "third" is not called: it has appeared since/ });
        t.like(await run(client, 'other'), { content: [{ text: 'other has run' }] });
        await world.untilWaiting('echo', 'third');
        const { code, out } = await world.pin('--accept', world.pins, 'echo');
        t.is(code, 0);
        t.regex(out, /^Accepted in .*pins\.json:\n {2}echo of .* \(changed: description\)\n$/);
        t.like(await run(client, 'echo'), { content: [{ text: 'echo has run' }] });
        t.deepEqual(await namesOf(client), ['echo', 'other']);
        await world.pin('--accept', world.pins);
        t.deepEqual(await namesOf(client), ['echo', 'other', 'third']);
        t.like(await run(client, 'third'), { content: [{ text: 'third has run' }] });
      });
    }
  }
}

for (const [what, path, options] of [
  ['a modern server over HTTP', '/mcp', ['--protocol', 'modern']],
  ['a legacy server over Streamable HTTP', '/mcp', ['--protocol', 'legacy', '--transport', 'streamable-http']],
  ['a server over HTTP+SSE', '/sse', ['--transport', 'sse']],
  ['a server over WebSocket', '/ws', []],
] as const) {
  test(`${what}: its tools are pinned by its URL, for clients of both eras`, async (t) => {
    const world = await World.create(t);
    // The process of the server is shared, so that a call of one client changes the tools for all.
    const remote = await startBridge(['--isolation', 'shared', ...world.server]);
    t.teardown(() => remote.stop());
    const url = new URL(path, remote.url);
    if (path === '/ws') url.protocol = 'ws:';
    const bridge = await startBridge(['--pin-tools', world.pins, ...options, url.href]);
    t.teardown(() => bridge.stop());
    const clients = await Promise.all([connectSdk(t, 'legacy', bridge.url), connectSdk(t, 'modern', bridge.url)]);
    for (const client of clients) t.deepEqual(await namesOf(client), ['echo', 'other']);
    t.deepEqual(Object.keys(world.read().servers), [url.href]);
    for (const client of clients) t.like(await run(client, 'echo'), { content: [{ text: 'echo has run' }] });
    await run(clients[0], 'other', { echo: 'changed', other: 'does more' });
    for (const client of clients) {
      t.deepEqual(await namesOf(client), ['other']);
      await t.throwsAsync(run(client, 'echo'), { message: /The tool "echo" is not called/ });
    }
    await world.untilWaiting('echo');
    await world.pin('--accept', world.pins);
    for (const client of clients) {
      t.like(await run(client, 'echo'), { content: [{ text: 'echo has run' }] });
      t.deepEqual(await namesOf(client), ['echo', 'other']);
    }
  });
}

test('the pins of one era count for the other', async (t) => {
  const world = await World.create(t);
  const bridge = await world.serve();
  t.deepEqual(await namesOf(await connectSdk(t, 'legacy', bridge.url)), ['echo', 'other']);
  t.deepEqual(await namesOf(await connectSdk(t, 'modern', bridge.url)), ['echo', 'other']);
  await bridge.stop();
  world.describe({ echo: 'changed', other: 'does more' });
  const next = await world.serve();
  t.deepEqual(await namesOf(await connectSdk(t, 'modern', next.url)), ['other']);
  t.deepEqual(await namesOf(await connectSdk(t, 'legacy', next.url)), ['other']);
});

for (const era of ['legacy', 'modern'] as const) {
  test(`${era}: a changed tool is not called by a client that lists nothing in this process`, async (t) => {
    const world = await World.create(t);
    const first = await world.serve('--protocol', era);
    const post = async (url: URL, name: string) => {
      const answer = await postModern({ port: Number(url.port) }, modern(1, 'tools/call', { name, arguments: {} }));
      const said = answer.isEventStream ? (await answer.events().rest()).at(-1)?.data : await answer.text();
      return JSON.parse(said ?? '');
    };
    t.like(await post(first.url, 'echo'), { result: { content: [{ text: 'echo has run' }] } });
    await first.stop();
    world.describe({ echo: 'changed', other: 'does more' });
    const next = await world.serve('--protocol', era);
    t.like(await post(next.url, 'echo'), {
      id: 1,
      error: { code: -32602, data: { bridge: { reason: 'ERR_PIN_DIFFERS' } } },
    });
    t.like(await post(next.url, 'other'), { result: { content: [{ text: 'other has run' }] } });
  });
}

test('pins are of the definitions before shaping: other names, filters and limits change nothing', async (t) => {
  const world = await World.create(t);
  const first = await world.serve();
  await namesOf(await connectSdk(t, 'legacy', first.url));
  await first.stop();
  const pinned = readFileSync(world.pins, 'utf8');
  const options = ['--rename-tool', 'echo=say', '--describe-tool', 'echo=New text', '--max-result-bytes', '1k'];
  const next = await world.serve(...options);
  const client = await connectSdk(t, 'legacy', next.url);
  t.deepEqual([...(await namesOf(client))].sort(), ['other', 'say']);
  t.like(await run(client, 'say'), { content: [{ text: 'echo has run' }] });
  await next.stop();
  t.is(readFileSync(world.pins, 'utf8'), pinned);
});

test('a client on a pipe gets its answers in the order of a server that answers one by one', async (t) => {
  const world = await World.create(t);
  const program = startConnect(t, ['--pin-tools', world.pins, ...stub('echo')]);
  await program.initialize();
  const call = (id: number) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: 'echo', arguments: { text: `${id}` } },
  });
  for (let id = 10; id < 60; id++) program.send(id % 7 === 0 ? { jsonrpc: '2.0', id, method: 'ping' } : call(id));
  await program.answerTo(59);
  t.deepEqual(
    program.lines.map((line) => JSON.parse(line).id).filter((id) => id >= 10),
    Array.from({ length: 50 }, (_, index) => index + 10),
  );
});

test('processes share a file, and each server has its own pins in it', async (t) => {
  const world = await World.create(t);
  const command = { command: process.execPath, args: world.server.slice(2) };
  const entry = (names: readonly string[]) =>
    world.folder.write(`${names.join()}.json`, {
      portage: { pinTools: world.pins },
      mcpServers: Object.fromEntries(names.map((name) => [name, command])),
    });
  const files = await Promise.all([entry(['a', 'b', 'c']), entry(['a', 'd', 'e']), entry(['a', 'f', 'g'])]);
  const bridges = await Promise.all(files.map((file) => startBridge(['--config', file])));
  for (const bridge of bridges) t.teardown(() => bridge.stop());
  const names = [
    ['a', 'b', 'c'],
    ['a', 'd', 'e'],
    ['a', 'f', 'g'],
  ];
  const listed = bridges.flatMap(({ url }, index) =>
    (names[index] ?? []).map(async (name) => namesOf(await connectSdk(t, 'legacy', new URL(`/${name}/mcp`, url)))),
  );
  for (const tools of await Promise.all(listed)) t.deepEqual(tools, ['echo', 'other']);
  t.deepEqual(Object.keys(world.read().servers).sort(), ['a', 'b', 'c', 'd', 'e', 'f', 'g']);
  // A change that one process sees waits for all, and counts for all when it is accepted.
  const clients = await Promise.all(bridges.map(({ url }) => connectSdk(t, 'legacy', new URL('/a/mcp', url))));
  const [first] = clients;
  if (first === undefined) return t.fail();
  await run(first, 'echo', { echo: 'changed', other: 'does more' });
  t.deepEqual(await namesOf(first), ['other']);
  await world.untilWaiting('echo');
  await world.pin('--accept', world.pins);
  t.deepEqual(await namesOf(first), ['echo', 'other']);
});

test('in the aggregate, pins and limits of results are those of each server, by its own names', async (t) => {
  const world = await World.create(t);
  const command = { command: process.execPath, args: world.server.slice(2) };
  const file = await world.folder.write('mcp.json', {
    portage: { pinTools: world.pins, maxResultBytes: 5 },
    mcpServers: { a: command, b: command },
  });
  const bridge = await startBridge(['--config', file, '--aggregate']);
  t.teardown(() => bridge.stop());
  for (const era of ['legacy', 'modern'] as const) {
    const client = await connectSdk(t, era, new URL('/mcp', bridge.url));
    await waitFor(async () => (await namesOf(client)).length === 4 || undefined);
    const cut = '[This text has 12 bytes, of which 5 are kept: mcp-portage limits results by --max-result-bytes.]';
    t.like(await run(client, 'a__echo'), { content: [{ text: `echo \n${cut}` }] });
  }
  t.deepEqual(Object.keys(world.read().servers).sort(), ['a', 'b']);
  const client = await connectSdk(t, 'legacy', new URL('/mcp', bridge.url));
  await run(client, 'a__other', { echo: 'changed', other: 'does more' });
  const own = await connectSdk(t, 'legacy', new URL('/a/mcp', bridge.url));
  t.deepEqual(await namesOf(own), ['other']);
  await t.throwsAsync(run(client, 'a__echo'), { message: /The tool "echo" is not called/ });
});

for (const [what, damage] of [
  ['empty', () => ''],
  ['cut off', (pins: string) => pins.slice(0, pins.length / 2)],
  ['other JSON', () => '{"mcpServers":{}}'],
] as const) {
  test(`a damaged file refuses to start, and is not written: ${what}`, async (t) => {
    const world = await World.create(t);
    const bridge = await world.serve();
    await namesOf(await connectSdk(t, 'legacy', bridge.url));
    await bridge.stop();
    const damaged = damage(readFileSync(world.pins, 'utf8'));
    writeFileSync(world.pins, damaged);
    for (const args of [
      ['serve', '--port', '0', '--pin-tools', world.pins, ...world.server],
      ['connect', '--pin-tools', world.pins, ...world.server],
      ['pin', '--accept', world.pins],
      ['pin', world.pins],
    ]) {
      const { code, err } = await runProgram(...args);
      t.is(code, 2);
      t.regex(
        err,
        /ERR_CONFIG_PINS: The pins of tools in .*pins\.json cannot be used: .*Restore the file, or delete it/,
      );
    }
    const file = await world.folder.write('mcp.json', {
      mcpServers: { a: { command: process.execPath, args: world.server.slice(2), portage: { pinTools: 'pins.json' } } },
    });
    t.like(await runProgram('serve', '--port', '0', '--config', file), { code: 2 });
    t.is(readFileSync(world.pins, 'utf8'), damaged);
  });
}

test('pin shows what is pinned and what waits, and accepts nothing that does not wait', async (t) => {
  const world = await World.create(t);
  const { code, err } = await world.pin('--accept', world.pins);
  t.is(code, 2);
  t.regex(err, /There is no file with pins at /);
  const bridge = await world.serve();
  const client = await connectSdk(t, 'legacy', bridge.url);
  await namesOf(client);
  t.regex((await world.pin(world.pins)).out, /: 2 tools are pinned\nNothing waits to be accepted\.\n$/);
  t.regex((await world.pin('--accept', world.pins)).out, /^Nothing waits to be accepted in /);
  await run(client, 'echo', { echo: 'changed', other: 'does more', '-x': 'is new' });
  await namesOf(client);
  await world.untilWaiting('echo', '-x');
  t.regex((await world.pin(world.pins)).out, /Hidden, because they differ:\n.*echo of .* \(changed: description\)\n/s);
  const wrong = await world.pin('--accept', world.pins, 'ecko');
  t.is(wrong.code, 2);
  t.regex(wrong.err, /No tool "ecko" waits to be accepted .* There wait "-x", "echo"\./);
  t.like(await world.pin('--accept', world.pins, '--', '-x'), { code: 0 });
  t.deepEqual(world.waiting, ['echo']);
  t.like(await runProgram('pin'), { code: 2 });
  t.regex((await runProgram('pin', '--port', '1', world.pins)).err, /--port is for/);
});

test('a file that cannot be made is an error at the start', async (t) => {
  const world = await World.create(t);
  const { code, err } = await runProgram(
    'serve',
    '--port',
    '0',
    '--pin-tools',
    join(world.folder.path, 'no', 'pins'),
    ...world.server,
  );
  t.is(code, 2);
  t.regex(err, /--pin-tools: expected a directory for .*; got nothing there/);
});
