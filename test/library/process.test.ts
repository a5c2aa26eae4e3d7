/** What becomes of the process that the library is a part of: nothing. */
import { PassThrough } from 'node:stream';
import test from 'ava';
import { type CallEnding, type CallInfo, connect, probe, type ServerStatus, serve } from '../../src/library.ts';
import { NODE } from '../support/config-bridge.ts';
import { assertGone, descendantsOf } from '../support/processes.ts';
import { connectStreamable } from '../support/sdk-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { SERVER } from './host.ts';

const SIGNALS = [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  'exit',
  'beforeExit',
  'uncaughtException',
  'unhandledRejection',
  'warning',
];

function stateOfProcess() {
  return {
    listeners: SIGNALS.map((name) => [name, process.listenerCount(name)]),
    environment: { ...process.env },
    cwd: process.cwd(),
    title: process.title,
    exitCode: process.exitCode,
  };
}

function busyHandles(): readonly string[] {
  return process.getActiveResourcesInfo().filter((kind) => /Server|Process|Timeout|Immediate/.test(kind));
}

/** What is written to the output meanwhile. */
function watchOutput(): { readonly written: readonly string[]; stop(): void } {
  const written: string[] = [];
  const { stdout, stderr } = process;
  const originals = [stdout.write, stderr.write] as const;
  const record = (chunk: unknown): boolean => written.push(String(chunk)) > 0;
  stdout.write = record as typeof stdout.write;
  stderr.write = record as typeof stderr.write;
  return {
    written,
    stop() {
      [stdout.write, stderr.write] = originals;
    },
  };
}

test.serial('two bridges work side by side, and leave nothing behind in the process', async (t) => {
  const before = stateOfProcess();
  const handles = busyHandles();
  const output = watchOutput();
  t.teardown(() => output.stop());
  const first = await serve({ server: SERVER, port: 0 });
  const second = await serve({ servers: { other: SERVER }, port: 0, isolation: 'shared' });
  t.not(new URL(first.url).port, new URL(second.url).port);
  const clients = [await connectStreamable(new URL(first.url)), await connectStreamable(new URL(second.url))];
  for (const { client } of clients) t.true((await client.listTools()).tools.length > 5);
  t.deepEqual(stateOfProcess(), before);
  const children = descendantsOf(process.pid);
  t.true(children.length >= 2);
  const [one, other] = clients;
  await one?.close();
  await first.close();
  t.true(((await other?.client.listTools())?.tools.length ?? 0) > 5, 'the other one goes on');
  await other?.close();
  await second.close();
  await second[Symbol.asyncDispose]();
  await assertGone(children);
  output.stop();
  t.deepEqual(output.written, []);
  t.deepEqual(stateOfProcess(), before);
  await waitFor(() => busyHandles().length <= handles.length, { message: () => `handles: ${busyHandles().join()}` });
});

test.serial('a port that is taken is an error in the words of the library, and nothing stays open', async (t) => {
  const handles = busyHandles();
  const first = await serve({ server: SERVER, port: 0 });
  const port = Number(new URL(first.url).port);
  const error = await t.throwsAsync(serve({ server: SERVER, port }), { code: 'ERR_CONFIG_LISTEN' });
  t.regex(error?.message ?? '', /choose another with port, or port 0 for any free one/);
  await first.close();
  await waitFor(() => busyHandles().length <= handles.length, { message: () => `handles: ${busyHandles().join()}` });
});

test.serial('an observer hears of clients, calls and states, and what it throws breaks no call', async (t) => {
  const heard: string[] = [];
  const began = new Set<CallInfo>();
  const endings: (readonly [CallInfo, CallEnding])[] = [];
  const states: ServerStatus[] = [];
  const logged: string[] = [];
  const log = (_fields: object, message?: string): void => void logged.push(message ?? '');
  const running = await serve({
    server: SERVER,
    port: 0,
    log: { trace: log, debug: log, info: log, warn: log, error: log, fatal: log },
    observer: {
      clientConnected: ({ name, era, transport }) => heard.push(`${name} connected, ${era}, ${transport}`),
      clientLeft({ name }, reason) {
        heard.push(`${name} left: ${reason}`);
        throw new Error('a fault of the observer');
      },
      callBegan: (call) => began.add(call),
      callEnded: (call, ending) => endings.push([call, ending]),
      serverChanged: (status) => states.push(status),
    },
  });
  t.teardown(() => running.close());
  const { client, close } = await connectStreamable(new URL(running.url), { name: 'ours' });
  await client.callTool({ name: 'echo', arguments: { message: 'hi' } });
  await waitFor(() => endings.some(([{ tool }]) => tool === 'echo'), { message: 'the end of the call' });
  const [call, ending] = endings.find(([{ tool }]) => tool === 'echo') ?? t.fail();
  t.true(began.has(call));
  t.is(call.client.name, 'ours');
  t.deepEqual(ending.outcome, { kind: 'answered' });
  t.true(ending.bytes > 0 && ending.durationMs > 0);
  await close();
  await waitFor(() => heard.length === 2, { message: 'the client to leave' });
  t.deepEqual(heard, ['ours connected, legacy, streamable-http', 'ours left: ERR_SESSION_CLOSED']);
  t.true(logged.includes('server started'), logged.join());
  t.true(logged.includes('an observer failed'));
  t.deepEqual(
    states.filter(({ state }) => state !== 'ready'),
    [],
  );
});

test.serial('an observer is told when a server cannot be served anymore', async (t) => {
  const states: ServerStatus[] = [];
  const running = await serve({
    servers: { broken: { command: NODE, args: ['-e', 'process.exit(3)'] } },
    port: 0,
    observer: { serverChanged: (status) => states.push(status) },
  });
  t.teardown(() => running.close());
  await t.throwsAsync(connectStreamable(new URL(running.url)));
  const status = await waitFor(() => states.find(({ name, problem }) => name === 'broken' && problem !== undefined));
  t.regex(status.problem ?? '', /exited with code 3/);
});

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
};

test.serial('connect joins streams of the program to a server, and leaves the streams to the program', async (t) => {
  const input = new PassThrough();
  const output = new PassThrough();
  const connection = await connect({ server: SERVER, client: { input, output } });
  t.teardown(() => connection.killNow());
  let said = '';
  output.on('data', (chunk: Buffer) => {
    said += chunk;
  });
  input.write(`${JSON.stringify(INITIALIZE)}\n`);
  await waitFor(() => said.includes('\n'), { message: 'the answer' });
  t.is(JSON.parse(said.split('\n')[0] ?? '').result.protocolVersion, '2025-11-25');
  const children = descendantsOf(process.pid);
  input.end();
  t.is(await connection.ended, undefined);
  await assertGone(children);
  await connection.close();
  t.false(output.destroyed);
});

test.serial('a connection that the program closes ends the process of the server', async (t) => {
  const client = { input: new PassThrough(), output: new PassThrough() };
  const connection = await connect({ server: SERVER, client });
  client.input.write(`${JSON.stringify(INITIALIZE)}\n`);
  await waitFor(() => client.output.readableLength > 0, { message: 'the answer' });
  const children = descendantsOf(process.pid);
  await connection.close();
  await assertGone(children);
  t.is(await connection.ended, undefined);
});

test.serial('connect wants to be told whose streams it is to use', async (t) => {
  const error = await t.throwsAsync(connect({ server: SERVER } as unknown as Parameters<typeof connect>[0]), {
    code: 'ERR_CONFIG_OPTION',
  });
  t.regex(error?.message ?? '', /^client: expected 'stdio'/);
});

test.serial('probe reports on a server, and on one that does not speak MCP', async (t) => {
  const report = await probe(SERVER);
  t.is(report.verdict, 'usable');
  t.true(report.offers.some(({ era, works }) => era === 'legacy' && works));
  const silent = await probe({ command: NODE, args: ['-e', 'process.stdin.resume()'] }, { timeout: '300ms' });
  t.is(silent.verdict, 'unusable');
  t.regex(silent.problems.join(), /300 ms/);
  await assertGone(descendantsOf(process.pid));
});

test.serial('what an observer throws at a change of a server is logged, and ends nothing', async (t) => {
  const logged: string[] = [];
  const log = (_fields: object, message?: string): void => void logged.push(message ?? '');
  const running = await serve({
    servers: { one: SERVER },
    port: 0,
    log: {
      trace: log,
      debug: log,
      info: log,
      warn: log,
      error: log,
      fatal: log,
      isLevelEnabled: (level) => level !== 'trace',
    },
    observer: {
      serverChanged() {
        throw new Error('a fault of the observer');
      },
    },
  });
  t.teardown(() => running.close());
  const { client, close } = await connectStreamable(new URL(running.url));
  await waitFor(() => logged.includes('an observer failed'), { message: 'the fault in the log' });
  t.true((await client.listTools()).tools.length > 5);
  await close();
});
