/** The report of the built program; `npm test` builds it first. What is in it is tested in test/probe. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { serveSdk } from '../fixtures/http-servers/sdk.ts';
import { EVERYTHING } from '../real-peers/servers/commands.ts';
import { startBridge } from '../support/bridge.ts';
import { startInetd } from '../support/inetd.ts';
import { ownPort } from '../support/own-port.ts';
import { assertGone, descendantsOf } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { startWebSocketServer } from '../support/websocket-server.ts';
import { EXECUTABLE, stub } from './stdio-program.ts';

function startProbe(t: ExecutionContext, argv: readonly string[]) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('MCP_PORTAGE_')));
  const child = spawn(process.execPath, [EXECUTABLE, 'probe', ...argv], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  const closed = once(child, 'close');
  const finished = Promise.all([text(child.stdout), text(child.stderr), closed]).then(([stdout, stderr, [code]]) => ({
    stdout,
    stderr,
    code,
  }));
  return { child, finished };
}

const probe = (t: ExecutionContext, ...argv: string[]) => startProbe(t, argv).finished;

test('a stdio server: the report for people is on stdout, nothing is on stderr, and the exit code is 0', async (t) => {
  const { stdout, stderr, code } = await probe(t, '--', ...EVERYTHING);
  t.is(code, 0);
  t.regex(stdout, /^usable after /m);
  t.regex(stdout, /stdio, legacy/);
  t.false(stdout.includes('\u001b'), 'no colors where it is no terminal');
  t.is(stderr, '');
});

test('--json: the report for programs', async (t) => {
  const server = await serveSdk('stateful');
  t.teardown(() => server.close());
  const { stdout, code } = await probe(t, '--json', server.url.href);
  t.is(code, 0);
  t.like(JSON.parse(stdout), { format: 1, verdict: 'usable', target: { kind: 'url', name: server.url.href } });
  // A server that takes its time to answer is not waited for.
  await waitFor(() => server.sessions.size === 0, { message: 'the end of the session' });
});

test('the log of a bridge that is probed says so, and names no client of a bridge', async (t) => {
  const bridge = await startBridge(['--', ...EVERYTHING]);
  t.teardown(() => bridge.stop());
  const { code } = await probe(t, new URL('/mcp', bridge.url).href);
  t.is(code, 0);
  const connected = bridge.logs.flatMap(({ msg = '' }) => / connected to /.exec(msg)?.input ?? []);
  t.true(connected.length > 0);
  for (const line of connected) t.regex(line, /mcp-portage probe \d+\.\d+\.\d+ connected to /);
});

test('an old server, probed in a pipeline', async (t) => {
  const server = await serveSdk('http-sse');
  t.teardown(() => server.close());
  const { stdout, code } = await probe(t, server.url.href);
  t.is(code, 0);
  t.regex(stdout, /HTTP\+SSE, legacy/);
  t.regex(stdout, /mcp-portage (serve|connect) /);
});

test('a server on a byte stream, at a port and at a Unix socket, and what is typed to use it', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-probe-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  // On Windows lines are spoken at ports only.
  const places = process.platform === 'win32' ? [{}] : [{}, { path: join(folder, 'mcp.sock') }];
  for (const place of places) {
    const inetd = await startInetd(EVERYTHING, place);
    t.teardown(inetd.stop);
    const target = 'path' in place ? `unix://${place.path}` : `tcp://127.0.0.1:${inetd.port}`;
    const { stdout, stderr, code } = await probe(t, target);
    t.is(code, 0, stdout);
    t.regex(stdout, /^usable after /m);
    t.regex(stdout, /byte stream, legacy/);
    t.true(stdout.includes(`mcp-portage serve ${target}`), stdout);
    t.is(stderr, '');
    const report = JSON.parse((await probe(t, '--json', target)).stdout);
    t.like(report, { format: 1, verdict: 'usable', target: { kind: 'stream', name: target } });
  }
});

test('nobody at a byte stream: exit code 69, and the report says why', async (t) => {
  const { stdout, code } = await probe(t, `tcp://127.0.0.1:${await ownPort()}`);
  t.is(code, 69);
  t.regex(stdout, /nothing listens there/);
});

test('a byte stream on which HTTP is spoken: the report says so', async (t) => {
  const server = await serveSdk('stateful');
  t.teardown(() => server.close());
  const { stdout, code } = await probe(t, `tcp://${server.url.host}`);
  t.is(code, 69);
  t.regex(stdout, /It speaks HTTP: give its http:\/\/\s+or https:\/\/ URL/);
});

test('a WebSocket server, and what is typed to use it', async (t) => {
  const server = await startWebSocketServer();
  t.teardown(server.stop);
  const { stdout, stderr } = await probe(t, server.url.href);
  t.regex(stdout, /WebSocket, legacy/);
  t.true(stdout.includes(`mcp-portage connect ${server.url.href}`), stdout);
  t.is(stderr, '');
  await waitFor(() => server.open.size === 0, { message: 'the end of the connection' });
});

test('nobody there: exit code 69, and the report says why', async (t) => {
  const gone = await serveSdk('stateful');
  await gone.close();
  const { stdout, code } = await probe(t, gone.url.href);
  t.is(code, 69);
  t.regex(stdout, /nothing listens there/);
});

test('a server that crashes is told of in the report, once, and nowhere else', async (t) => {
  const { stdout, stderr, code } = await probe(t, ...stub('exits-before-initialize'));
  t.is(code, 69);
  t.is(stdout.match(/exited with code 3/g)?.length, 1, stdout);
  t.is(stderr, '');
});

test('--timeout ends it with what was found', async (t) => {
  const { stdout, code } = await probe(t, '--timeout', '300ms', ...stub('never-answers'));
  t.is(code, 69);
  t.regex(stdout, /time limit of 300 ms/);
});

for (const [signal, exitCode] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  test(`${signal} ends it with what was found, and no server stays behind`, async (t) => {
    const { child, finished } = startProbe(t, stub('never-answers'));
    const { pid = Number.NaN } = child;
    await waitFor(() => descendantsOf(pid).length > 0);
    const below = descendantsOf(pid);
    child.kill(signal);
    const { stdout, code } = await finished;
    t.is(code, exitCode);
    t.regex(stdout, /It was interrupted/);
    await assertGone(below);
  });
}
