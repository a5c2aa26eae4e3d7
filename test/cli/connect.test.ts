/** `mcp-portage connect` as the built program; `npm test` builds it first. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import test, { type ExecutionContext } from 'ava';
import { type Act, event, listenScripted, openStream } from '../fixtures/http-servers/scripted.ts';
import { EVERYTHING } from '../real-peers/servers/commands.ts';
import { assertGone, descendantsOf } from '../support/processes.ts';
import { connectClient } from '../support/sdk-client.ts';
import { startHttpSse, startStreamable } from '../support/sdk-servers.ts';
import { waitFor } from '../support/wait-for.ts';
import { callEcho, EXECUTABLE, INITIALIZE, startConnect, stub } from './stdio-program.ts';

/** What stands behind the stdio endpoint; resolves with the words for the command line. */
const TARGETS: Readonly<Record<string, (t: ExecutionContext) => Promise<readonly string[]>>> = {
  'a stdio server': async () => ['--', ...EVERYTHING],
  'a Streamable HTTP server': async (t) => [(await closing(t, startStreamable())).url.href],
  'a Streamable HTTP server without sessions': async (t) => [
    (await closing(t, startStreamable({ hasSessions: false }))).url.href,
  ],
  'an HTTP+SSE server': async (t) => [(await closing(t, startHttpSse())).url.href],
};

async function closing<S extends { close(): Promise<void> }>(t: ExecutionContext, starting: Promise<S>): Promise<S> {
  const server = await starting;
  t.teardown(() => server.close());
  return server;
}

for (const [name, start] of Object.entries(TARGETS)) {
  test(`an SDK client uses ${name} over stdio, and nothing stays behind when it closes`, async (t) => {
    const args = [EXECUTABLE, 'connect', ...(await start(t))];
    const transport = new StdioClientTransport({ command: process.execPath, args, stderr: 'pipe' });
    const faults: Error[] = [];
    const { client, close } = await connectClient(transport);
    t.teardown(close);
    client.onerror = (error) => faults.push(error);
    const { tools } = await client.listTools();
    t.true(tools.some((tool) => tool.name === 'echo'));
    const result = await client.callTool({ name: 'echo', arguments: { message: 'grüße 🙂', value: 'grüße 🙂' } });
    t.regex(JSON.stringify(result.content), /grüße 🙂/);
    const { pid } = transport;
    if (pid === null) return t.fail();
    const processes = [pid, ...descendantsOf(pid)];
    // As close() begins, which goes on with signals after two seconds: none are needed, however busy the machine is.
    (Reflect.get(transport, '_process') as ChildProcess).stdin?.end();
    await assertGone(processes);
    await close();
    t.deepEqual(faults, []);
  });
}

test('answers what was asked before stdin ended, then exits with 0', async (t) => {
  const program = startConnect(t, stub('echo'));
  program.send(INITIALIZE);
  program.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  program.send(callEcho(1, 'last words'));
  program.child.stdin.end();
  t.deepEqual(await program.exited, { code: 0, signal: null });
  t.deepEqual(
    program.lines.map((line) => JSON.parse(line).id),
    [0, 1],
  );
  t.regex(program.lines[1] ?? '', /last words/);
});

test('a server that starts late is waited for when stdin has ended, however short --shutdown-grace is', async (t) => {
  const [, , path = ''] = stub('echo');
  const late = `setTimeout(() => import(${JSON.stringify(pathToFileURL(path))}), 1000)`;
  const program = startConnect(t, ['--shutdown-grace', '100ms', '--', process.execPath, '-e', late]);
  program.send(INITIALIZE);
  program.send(callEcho(1, 'patience'));
  program.child.stdin.end();
  t.deepEqual(await program.exited, { code: 0, signal: null });
  t.regex(program.lines.find((line) => JSON.parse(line).id === 1) ?? '', /patience/);
});

test('nothing but a pause before a stream is resumed goes on when stdin has ended, and the answer comes', async (t) => {
  const result = { content: [{ type: 'text', text: 'resumed' }] };
  const server = await closing(
    t,
    listenScripted({
      'tools/call': (_asked, response) => openStream(response).end(`id: 1\nretry: 300\ndata:\n\n`),
      GET(asked, response) {
        if (asked.headers['last-event-id'] === undefined) return void response.writeHead(405).end();
        openStream(response).end(event({ jsonrpc: '2.0', id: 1, result }, '2'));
      },
    }),
  );
  const program = startConnect(t, ['--shutdown-grace', '100ms', server.url.href]);
  await program.initialize();
  program.send(callEcho(1, 'x'));
  program.child.stdin.end();
  t.deepEqual(await program.exited, { code: 0, signal: null });
  t.like(program.lines.map((line) => JSON.parse(line)).at(-1), { id: 1, result });
});

test('stdin that ends without a word is no failure, and starts no server', async (t) => {
  const program = startConnect(t, stub('echo'));
  program.child.stdin.end();
  t.deepEqual(await program.exited, { code: 0, signal: null });
  t.deepEqual(program.lines, []);
});

test('nothing but messages is on stdout, whatever the log and the server say', async (t) => {
  const program = startConnect(t, ['--log-level', 'trace', ...stub('prints-garbage')]);
  await program.initialize();
  program.send(callEcho(1, 'x'));
  await program.answerTo(1);
  program.child.stdin.end();
  await program.exited;
  for (const line of program.lines) t.is(JSON.parse(line).jsonrpc, '2.0', line);
});

test('a client that closes our stdout ends us with 0', async (t) => {
  const program = startConnect(t, stub('echo'));
  await program.initialize();
  program.child.stdout.destroy();
  program.send(callEcho(1, 'nobody reads this'));
  t.deepEqual(await program.exited, { code: 0, signal: null });
});

test('a client that stops reading holds up neither signals nor the end of the server', async (t) => {
  const program = startConnect(t, ['--shutdown-grace', '100ms', ...stub('echo')], { isRead: false });
  program.send(INITIALIZE);
  await waitFor(() => program.children().length > 0);
  const children = program.children();
  // More than all buffers on the way hold together.
  const much = 'x'.repeat(256 * 1024);
  for (let id = 1; id <= 40; id++) program.send(callEcho(id, much));
  await waitFor(() => program.child.stdout.readableLength > 0);
  program.child.kill('SIGTERM');
  t.deepEqual(await program.exited, { code: 0, signal: null });
  await assertGone(children);
});

/** What the server has said on its stderr, in our log. */
const countServerLines = (log: string): number =>
  log.split('\n').filter((line) => line.includes('"stream":"stderr"')).length;

test('a client that never reads our stderr is answered all the same', async (t) => {
  const program = startConnect(t, ['--log-level', 'trace', ...stub('floods-stderr', '60000')], { isLogRead: false });
  await program.initialize();
  for (let id = 1; id <= 20; id++) program.send(callEcho(id, 'still here'));
  await program.answerTo(20);
  await waitFor(() => program.child.stderr.readableLength > 0, { message: 'something that nobody reads' });
  program.child.stdin.end();
  t.deepEqual(await program.exited, { code: 0, signal: null });
});

test('a reader of stderr that wakes up is told how many lines it missed', async (t) => {
  const program = startConnect(t, stub('floods-stderr', '60000'), { isLogRead: false });
  await program.initialize();
  let log = '';
  program.child.stderr.on('data', (chunk) => (log += String(chunk)));
  const kept = () => countServerLines(log);
  const dropped = () => {
    const told = [...log.matchAll(/"dropped":(\d+),"msg":"\1 lines of the log were lost/g)];
    return told.reduce((sum, [, count]) => sum + Number(count), 0);
  };
  // What the server said last comes after the first count.
  await waitFor(() => dropped() > 0 && kept() + dropped() >= 60_000, {
    message: () => `${kept()} lines and ${dropped()} that are missing`,
  });
  t.true(dropped() > 1000);
  // A few of its own may be among those that are missing.
  t.true(kept() + dropped() < 60_010, `${kept() + dropped()} lines are there or counted`);
  const closed = once(program.child, 'close');
  program.child.stdin.end();
  await closed;
});

test('lines that wait for a reader of stderr are written before the process ends', async (t) => {
  const readFromTheEndOn = async () => {
    const program = startConnect(t, stub('floods-stderr', '1000'), { isLogRead: false });
    await program.initialize();
    program.child.stdin.end();
    return text(program.child.stderr);
  };
  let log = '';
  // The process waits half a second for a reader. This one may be held up for longer, but not every time.
  for (let attempt = 0; attempt < 3 && countServerLines(log) < 1000; attempt += 1) log = await readFromTheEndOn();
  t.is(countServerLines(log), 1000);
  t.false(log.includes('"dropped"'));
});

test('the session at a remote server is ended with the client', async (t) => {
  const server = await closing(t, startStreamable());
  const program = startConnect(t, [server.url.href]);
  await program.initialize();
  t.is(server.sessions.size, 1);
  program.child.stdin.end();
  t.deepEqual(await program.exited, { code: 0, signal: null });
  // A server that takes its time to answer is not waited for.
  await waitFor(() => server.sessions.size === 0, { message: 'the end of the session' });
});

test('a command that does not exist ends it at once, with the exit code of its error', async (t) => {
  const program = startConnect(t, ['--', './no-such-program']);
  t.deepEqual(await program.exited, { code: 69, signal: null });
  t.deepEqual(program.lines, []);
});

test('a server that nobody runs at the URL is an answer to the client', async (t) => {
  const gone = await startStreamable();
  await gone.close();
  const program = startConnect(t, [gone.url.href]);
  program.send(INITIALIZE);
  const { error } = await program.answerTo(0);
  t.like(error, { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_CONNECT' } } });
  t.regex(String(error?.message), /nothing listens there/);
  program.child.stdin.end();
  t.is((await program.exited).code, 0);
});

const refuse: Act = (_asked, response) => void response.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end();

/** Of a modern client. */
const requestAs = (id: number, method: string) => {
  const protocolVersion = '2026-07-28';
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': protocolVersion,
    'io.modelcontextprotocol/clientInfo': { name: 'by-hand', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  return { jsonrpc: '2.0', id, method, params: { _meta } };
};

for (const [kind, options, expected] of [
  ['offers no login', [], /requires authorization \(401\) and offers no login\. Give it a token with/],
  ['is not logged in to', ['--login', 'never'], /requires authorization \(401\)\. .* --login on-demand\.$/],
] as const) {
  test(`a server that answers 401 and ${kind} is told of once in the log, however often its clients ask`, async (t) => {
    const server = await closing(t, listenScripted({ initialize: refuse, POST: refuse, GET: refuse }));
    const program = startConnect(t, [...options, server.url.href]);
    program.send(requestAs(7, 'server/discover'));
    t.regex(String((await program.answerTo(7)).error?.message), expected);
    program.send(INITIALIZE);
    t.regex(String((await program.answerTo(0)).error?.message), expected);
    program.child.stdin.end();
    t.is((await program.exited).code, 0);
    const lines = program
      .log()
      .split('\n')
      .filter((line) => line !== '');
    t.is(lines.length, 1, program.log());
    t.regex(JSON.parse(lines[0] ?? '').msg, expected);
  });
}

test('a server that ends by itself ends the stdio endpoint with an exit code that says so', async (t) => {
  const program = startConnect(t, stub('exits-after-initialize'));
  await program.initialize();
  t.deepEqual(await program.exited, { code: 70, signal: null });
});
