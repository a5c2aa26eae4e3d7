/** A remote server behind `mcp-portage serve`, by the built program: what a team runs that moves from one transport to the other. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { connectSse, connectStreamable, type SdkClient } from '../support/sdk-client.ts';
import { type SdkHttpServer, startHttpSse, startStreamable } from '../support/sdk-servers.ts';

const SERVERS: Readonly<Record<string, () => Promise<SdkHttpServer>>> = {
  'an HTTP+SSE server': () => startHttpSse(),
  'a Streamable HTTP server': () => startStreamable(),
  'a Streamable HTTP server without sessions': () => startStreamable({ hasSessions: false }),
};
const CLIENTS: Readonly<Record<string, (bridge: Bridge) => Promise<SdkClient>>> = {
  'a Streamable HTTP client': (bridge) => connectStreamable(bridge.url),
  'an HTTP+SSE client': (bridge) => connectSse(bridge.sseUrl),
};

async function startServer(t: ExecutionContext, start: () => Promise<SdkHttpServer>): Promise<SdkHttpServer> {
  const server = await start();
  t.teardown(() => server.close());
  return server;
}

async function echo({ client }: SdkClient, value: string): Promise<string> {
  return JSON.stringify((await client.callTool({ name: 'echo', arguments: { value } })).content);
}

for (const [serverName, start] of Object.entries(SERVERS)) {
  test(`serve <url> lets clients of both kinds use ${serverName} at once`, async (t) => {
    const server = await startServer(t, start);
    const bridge = await startBridge([server.url.href]);
    t.teardown(() => bridge.stop());
    for (const [clientName, connect] of Object.entries(CLIENTS)) {
      const connected = await connect(bridge);
      t.teardown(() => connected.close());
      t.true((await echo(connected, clientName)).includes(clientName));
    }
    t.is((await bridge.stop()).code, 0);
  });
}

test('headers, of the command line and of a file, reach the server with every request', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const file = join(directory, 'headers');
  await writeFile(file, '# of the team\nX-Team: tools\n', { mode: 0o600 });
  const server = await startServer(t, () => startStreamable());
  const options = ['--header', `X-Key: \${SECRET_KEY}`, '--header-file', file];
  const env = { SECRET_KEY: 'hunter2', MCP_PORTAGE_BEARER_TOKEN: 'hunter3', MCP_PORTAGE_LOG_LEVEL: 'trace' };
  const bridge = await startBridge([...options, server.url.href], { env });
  t.teardown(() => bridge.stop());
  const connected = await connectStreamable(bridge.url);
  t.teardown(connected.close);
  await echo(connected, 'x');
  await connected.close();
  t.true(server.asked.length > 2);
  for (const { headers } of server.asked) {
    t.like(headers, { 'x-key': 'hunter2', 'x-team': 'tools', authorization: 'Bearer hunter3' });
  }
  t.notRegex(JSON.stringify(bridge.logs), /hunter/);
});

test('of what a client sends in headers only what was named goes to the server', async (t) => {
  const server = await startServer(t, () => startStreamable());
  const bridge = await startBridge(['--forward-header', 'X-Request-Id', server.url.href]);
  t.teardown(() => bridge.stop());
  const sent = { Authorization: 'Bearer of-the-client', Cookie: 'a=b', 'X-Request-Id': '7', 'X-Other': '8' };
  const connected = await connectStreamable(bridge.url, { headers: sent });
  t.teardown(connected.close);
  await echo(connected, 'x');
  t.true(server.asked.some(({ headers }) => headers['x-request-id'] === '7'));
  for (const { headers } of server.asked) {
    for (const name of ['authorization', 'cookie', 'x-other']) t.is(headers[name], undefined, name);
  }
});

test('a header of a client becomes another one on the way to the server, and its own Authorization may', async (t) => {
  const server = await startServer(t, () => startStreamable());
  const named = ['X-Api-Key: Authorization', 'Authorization: X-Upstream-Auth'].flatMap((name) => [
    '--forward-header',
    name,
  ]);
  const bridge = await startBridge([...named, '--log-level', 'trace', server.url.href]);
  t.teardown(() => bridge.stop());
  const sent = { Authorization: 'Bearer hunter2', 'X-Api-Key': 'Bearer hunter3' };
  const connected = await connectStreamable(bridge.url, { headers: sent });
  t.teardown(connected.close);
  await echo(connected, 'x');
  await connected.close();
  t.true(server.asked.length > 2);
  for (const { headers } of server.asked) {
    t.like(headers, { authorization: 'Bearer hunter3', 'x-upstream-auth': 'Bearer hunter2' });
    t.is(headers['x-api-key'], undefined);
  }
  t.is(bridge.logs.filter(({ msg }) => /--forward-header .*: /.test(msg ?? '')).length, 2, 'warned at the start');
  t.notRegex(JSON.stringify(bridge.logs), /hunter/);
});

test('options that only a command can use are refused before anything starts', async (t) => {
  const error = await t.throwsAsync(startBridge(['--env', 'A=1', 'https://example.com/mcp']));
  t.regex(error?.message ?? '', /ERR_CONFIG_COMBINATION.*--env is for a server that is started as a command/);
});
