/**
 * What clients send ends neither the bridge nor the calls of others. One test after the other: a flood keeps the client
 * itself busy, too, and whoever takes ten seconds for the head of a request is cut off.
 */
import { readFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { headersOf, type ModernMessage, modern } from '../downstream/streamable-stateless/modern-posts.ts';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { callHttp, type HttpAnswer } from '../support/http-call.ts';
import { call, initialize, openHttpSession, POST_HEADERS } from '../support/legacy-clients.ts';
import { RawSocket } from '../support/raw-socket.ts';
import { waitFor } from '../support/wait-for.ts';

const MIB = 1024 * 1024;
const SERVERS = {
  'a legacy server': ['--', process.execPath, 'test/fixtures/servers/echo.js'],
  'a modern server': ['--', process.execPath, 'test/fixtures/servers/modern-only.js'],
};

async function start(
  t: ExecutionContext,
  args: readonly string[],
  env = {},
): Promise<{ bridge: Bridge; port: number }> {
  const bridge = await startBridge(args, { env });
  t.teardown(() => bridge.stop());
  return { bridge, port: Number(bridge.url.port) };
}

const post = (port: number, body: string | Buffer, headers = {}) =>
  callHttp({ port, method: 'POST', headers: { ...POST_HEADERS, ...headers }, body });

async function assertWell(t: ExecutionContext, { bridge, port }: { bridge: Bridge; port: number }): Promise<void> {
  const session = await openHttpSession(port);
  t.is((await session.post({ jsonrpc: '2.0', id: 1, method: 'ping' })).status, 200);
  t.deepEqual(
    bridge.logs.filter(({ code, level }) => code === 'ERR_INTERNAL' || level === 60),
    [],
  );
}

test.serial('a body of 20 MiB is 413, JSON of endless depth 400, a line of a million characters 431', async (t) => {
  const { bridge, port } = await start(t, SERVERS['a legacy server']);
  const socket = await RawSocket.connect(port);
  t.teardown(() => socket.destroy());
  socket.read().write(`POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${20 * MIB}\r\n`);
  socket.write(`Content-Type: application/json\r\nAccept: ${POST_HEADERS.Accept}\r\n\r\n`);
  t.regex(await socket.until(/ERR_WIRE_FRAME_TOO_LARGE/), /^HTTP\/1\.1 413 /);
  const chunked = await RawSocket.connect(port);
  t.teardown(() => chunked.destroy());
  const type = `Content-Type: application/json\r\nAccept: ${POST_HEADERS.Accept}\r\n`;
  chunked.read().write(`POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n${type}\r\n`);
  for (let n = 0; n < 20; n += 1) chunked.write(`${MIB.toString(16)}\r\n${' '.repeat(MIB)}\r\n`);
  t.regex(await chunked.until(/ERR_WIRE_FRAME_TOO_LARGE/), /^HTTP\/1\.1 413 /);
  for (const depth of [1001, 1_000_000]) {
    const nested = `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const answer = await post(port, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${nested}}}`);
    t.is(answer.status, 400);
    t.regex(await answer.text(), /nests deeper than 1000/);
  }
  const answerToLine = async (): Promise<string> => {
    const line = await RawSocket.connect(port);
    t.teardown(() => line.destroy());
    line.write(`GET /${'x'.repeat(1_000_000)} HTTP/1.1\r\n`);
    return line.all();
  };
  // What is still coming as the connection is closed resets it, and the answer may be lost with it.
  t.regex(await waitFor(async () => (await answerToLine()) || undefined), /^HTTP\/1\.1 431 /);
  await assertWell(t, { bridge, port });
});

test.serial('a message nests as deep as --max-json-depth allows, and no deeper', async (t) => {
  const { port } = await start(t, ['--max-json-depth', '20', ...SERVERS['a legacy server']]);
  const session = await openHttpSession(port);
  const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);
  // The message and its params are two levels by themselves.
  const ping = (depth: number): object => ({
    jsonrpc: '2.0',
    id: depth,
    method: 'ping',
    params: { a: nested(depth - 2) },
  });
  t.is((await session.post(ping(20))).status, 200);
  t.is((await session.post(ping(21))).status, 400);
});

test.serial('a head is as large as --max-header-bytes allows, and no larger', async (t) => {
  const { port } = await start(t, ['--max-header-bytes', '8k', ...SERVERS['a legacy server']]);
  const message = JSON.stringify(initialize());
  t.is((await post(port, message, { 'X-Large': 'x'.repeat(7000) })).status, 200);
  t.is((await post(port, message, { 'X-Large': 'x'.repeat(9000) })).status, 431);
});

const NAMES = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf'];
const NO_NAMES: readonly unknown[] = [JSON.parse('{"toString":1,"__proto__":{"a":1}}'), null, 1, []];

/** The headers repeat what is text. */
function postAnything(port: number, message: ModernMessage): Promise<HttpAnswer> {
  const { name } = message.params;
  const headers = headersOf({ ...message, params: { name: typeof name === 'string' ? name : 'x', uri: 'x' } });
  return callHttp({ port, method: 'POST', headers, body: JSON.stringify(message) });
}

for (const [name, server] of Object.entries(SERVERS)) {
  test.serial(`names of JavaScript are names to ${name}, for clients of both eras`, async (t) => {
    // Some of it no server answers.
    const { bridge, port } = await start(t, ['--request-timeout', '10s', ...server]);
    const session = await openHttpSession(port);
    await (await session.post({ jsonrpc: '2.0', method: 'notifications/initialized' })).text();
    let id = 1;
    // What is not answered takes the time of the request: one word does not wait for another.
    const ask = async (word: unknown): Promise<readonly string[]> => {
      const params = {
        name: word,
        arguments: JSON.parse('{"__proto__":1,"text":"x"}'),
        uri: word,
        level: word,
        taskId: word,
      };
      const answers = [];
      for (const method of ['tools/call', 'resources/subscribe', 'logging/setLevel', 'prompts/get', ...NAMES]) {
        const message = { jsonrpc: '2.0', id: id++, method, params };
        answers.push((await session.post(message)).text());
        answers.push((await postAnything(port, modern(id++, method, params))).text());
      }
      answers.push((await session.post(call(`id-${String(id++)}`, 'echo', { progressToken: word }))).text());
      return Promise.all(answers);
    };
    const answers = await Promise.all([...NAMES, ...NO_NAMES].map(ask));
    for (const answer of answers.flat()) t.regex(answer, /"(result|error)":/);
    await assertWell(t, { bridge, port });
  });
}

/** Memory of another process is read from /proc. */
const onLinux = process.platform === 'linux' ? test.serial : test.serial.skip;

function residentBytes(pid: number): number {
  const [, kib = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) * 1024;
}

onLinux('a flood of unfinished messages stays within the memory that is stated, and others are served', async (t) => {
  const { bridge, port } = await start(t, ['--max-message-bytes', '4m', ...SERVERS['a legacy server']]);
  await assertWell(t, { bridge, port });
  const before = residentBytes(bridge.pid);
  const sockets: RawSocket[] = [];
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
  });
  const head = `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: ${POST_HEADERS.Accept}\r\n`;
  const unfinished = Buffer.alloc(4 * MIB - 1, ' ');
  for (let n = 0; n < 120; n += 1) {
    // Each connection brings its head at once: the bridge cuts one that has none for ten seconds.
    const socket = await RawSocket.connect(port);
    sockets.push(socket);
    socket.read().write(`${head}Content-Length: ${4 * MIB}\r\n\r\n`);
    socket.socket.write(unfinished);
  }
  const refused = () => sockets.filter(({ received }) => received.includes('ERR_SESSION_BUSY')).length;
  await waitFor(() => refused() >= 100, { message: () => `${refused()} refusals` });
  const grownMib = (residentBytes(bridge.pid) - before) / MIB;
  t.true(grownMib < 16 * 4 + 150, `${grownMib} MiB more; 480 MiB were sent`);
  await assertWell(t, { bridge, port });
});

test.serial('limits of sessions and calls are what their options say', async (t) => {
  const TOKENS = { ALICE: 'a-long-token-of-alice', BOB: 'a-long-token-of-bob' };
  const options = ['--auth-token', 'alice=env:ALICE', '--auth-token', 'bob=env:BOB', '--max-caller-sessions', '1'];
  const server = ['--', process.execPath, 'test/fixtures/servers/never-answers.js'];
  const limits = ['--max-session-in-flight', '1', '--max-in-flight', '5', '--request-timeout', '0'];
  const { port } = await start(t, [...options, ...limits, '--protocol', 'modern', ...server], TOKENS);
  const as = (token: string) => ({ Authorization: `Bearer ${token}` });
  const left = new AbortController();
  t.teardown(() => left.abort());
  const send = (token: string, body: object) =>
    callHttp({
      port,
      method: 'POST',
      headers: { ...POST_HEADERS, ...as(token) },
      body: JSON.stringify(body),
      signal: left.signal,
    });
  const refusals: string[] = [];
  /** The first to come waits without end, whichever that is. */
  const greet = () =>
    send(TOKENS.ALICE, initialize())
      .then(async (answer) => refusals.push(await answer.text()))
      .catch(() => undefined);
  const greetings = [greet(), greet()];
  await waitFor(() => refusals.length > 0, { message: 'the limit of sessions' });
  t.regex(refusals.join(), /ERR_SESSION_LIMIT/);
  const answers: string[] = [];
  for (const id of [1, 2, 3]) {
    const message = modern(id, 'tools/list');
    const body = JSON.stringify(message);
    const headers = { ...headersOf(message), ...as(TOKENS.BOB) };
    const answer = callHttp({ port, method: 'POST', headers, body, signal: left.signal });
    void answer.then(async (found) => answers.push(await found.text())).catch(() => undefined);
  }
  await waitFor(() => answers.length === 2, { message: () => `two refusals in ${answers.join()}` });
  for (const answer of answers) t.regex(answer, /1 calls are open for this caller/);
  left.abort();
  await Promise.all(greetings);
  t.is(refusals.length, 1);
});
