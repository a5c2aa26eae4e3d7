/** Who may come in, by the built program and with clients of the official SDK. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { BRIDGE_COMMAND, type Bridge, type BridgeOptions, startBridge } from '../support/bridge.ts';
import {
  createIssuerKey,
  type FakeIssuer,
  type IssuerKey,
  inSeconds,
  publish,
  startIssuer,
} from '../support/fake-issuer.ts';
import { initialize, POST_HEADERS } from '../support/legacy-clients.ts';
import { RawSocket } from '../support/raw-socket.ts';
import { connectStreamable, type SdkClient } from '../support/sdk-client.ts';
import { startStreamable } from '../support/sdk-servers.ts';
import { waitFor } from '../support/wait-for.ts';

const TOKEN = 'a-long-token-of-alice';
const SERVER = ['--', process.execPath, 'test/fixtures/servers/tells-environment.js'];
const KEY = await createIssuerKey('one');

async function start(t: ExecutionContext, args: readonly string[], options?: BridgeOptions): Promise<Bridge> {
  const bridge = await startBridge(args, options);
  t.teardown(() => bridge.stop());
  return bridge;
}

function post({ url }: Bridge, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(url, { method: 'POST', headers: { ...POST_HEADERS, ...headers }, body: JSON.stringify(initialize()) });
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

async function connect(
  t: ExecutionContext,
  bridge: Bridge,
  headers: Readonly<Record<string, string>>,
): Promise<SdkClient> {
  const connected = await connectStreamable(bridge.url, { headers });
  t.teardown(() => connected.close());
  return connected;
}

async function askFor(variable: string, { client }: SdkClient): Promise<unknown> {
  const { content } = await client.callTool({ name: 'environment', arguments: { variable } });
  return (content as readonly { readonly text: string }[])[0]?.text;
}

test('beyond this machine nobody listens unasked: exit 2, with the ways out', async (t) => {
  const [program, ...args] = BRIDGE_COMMAND;
  const { MCP_PORTAGE_ALLOW_ANONYMOUS: _, ...env } = process.env;
  const child = spawn(program, [...args, '--host', '0.0.0.0', '--port', '0', ...SERVER], {
    env,
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const [[code], stderr] = await Promise.all([once(child, 'close'), text(child.stderr)]);
  t.is(code, 2);
  t.regex(stderr, /ERR_CONFIG_COMBINATION.*--auth-token.*--allow-anonymous/);
});

test('a client with the token comes in, one without does not, and the server never sees the token', async (t) => {
  const args = ['--auth-token', 'alice=env:ALICE_TOKEN', '--inherit-env', '--log-level', 'trace'];
  const bridge = await start(t, [...args, ...SERVER], { env: { ALICE_TOKEN: TOKEN } });
  for (const headers of [{}, bearer('wrong')]) t.is((await post(bridge, headers)).status, 401);
  t.is(bridge.children().length, 0, 'nothing was started for them');
  const alice = await connect(t, bridge, bearer(TOKEN));
  t.is(await askFor('ALICE_TOKEN', alice), '(none)');
  t.is(await askFor('HOME', alice), process.env.HOME ?? '(none)');
  t.false(JSON.stringify(bridge.logs).includes(TOKEN));
});

async function startWithIssuer(t: ExecutionContext, issuer: FakeIssuer): Promise<Bridge> {
  const oauth = ['--auth-issuer', issuer.url, '--auth-audience', 'tools', '--auth-scope', 'call'];
  return start(t, [...oauth, '--log-level', 'trace', ...SERVER]);
}

const claimsOf = (issuer: FakeIssuer, more: object = {}) => ({
  iss: issuer.url,
  aud: 'tools',
  sub: 'alice',
  scope: 'call',
  exp: inSeconds(300),
  ...more,
});

test('requests that were refused are told in one line, by reason', async (t) => {
  const bridge = await start(t, ['--auth-token', 'alice=env:ALICE_TOKEN', ...SERVER], { env: { ALICE_TOKEN: TOKEN } });
  for (const headers of [bearer('wrong'), {}, bearer('wrong')]) await post(bridge, headers);
  await bridge.stop();
  const lines = bridge.logs.filter(({ msg }) => /refused/.test(String(msg)));
  t.is(lines.length, 1);
  t.like(lines[0], {
    msg: '3 requests were refused before the end: 2 × ERR_AUTH_TOKEN, 1 × ERR_AUTH_REQUIRED',
    level: 'warn',
  });
});

test('an access token of the issuer is accepted, and its keys may change', async (t) => {
  const issuer = await startIssuer(t);
  publish(issuer, KEY);
  const bridge = await startWithIssuer(t, issuer);
  const token = (more?: object, key: IssuerKey = KEY) => key.sign(claimsOf(issuer, more));
  const alice = await connect(t, bridge, bearer(await token()));
  t.is((await alice.client.listTools()).tools.length, 1);

  const refusals: readonly [object, number, RegExp][] = [
    [{ exp: inSeconds(-300) }, 401, /error="invalid_token"/],
    [{ aud: 'others' }, 401, /error="invalid_token"/],
    [{ iss: 'https://evil.example' }, 401, /error="invalid_token"/],
    [{ scope: 'list' }, 403, /error="insufficient_scope".*scope="call"/],
  ];
  for (const [more, status, challenge] of refusals) {
    const answer = await post(bridge, bearer(await token(more)));
    t.is(answer.status, status);
    t.regex(answer.headers.get('www-authenticate') ?? '', challenge);
  }

  const asked = issuer.asked.length;
  const next = await createIssuerKey('two');
  publish(issuer, next);
  t.is((await post(bridge, bearer(await token({}, next)))).status, 200);
  t.deepEqual(issuer.asked.slice(asked), ['/.well-known/oauth-authorization-server', '/keys'], 'asked once more');
  const unknown = await post(bridge, bearer(await token({}, await createIssuerKey('three'))));
  t.is(unknown.status, 503, 'it may be fresh as well');
  t.regex(unknown.headers.get('retry-after') ?? '', /^[123]?\d$/);
  t.is(issuer.asked.length, asked + 2, 'and not for every unknown key');
  t.false(JSON.stringify(bridge.logs).includes(await token()));
});

test('a client is led to the issuer', async (t) => {
  const issuer = await startIssuer(t, '/tenant');
  publish(issuer, KEY);
  const bridge = await startWithIssuer(t, issuer);
  const challenge = (await post(bridge)).headers.get('www-authenticate') ?? '';
  const metadata = await fetch(/resource_metadata="([^"]+)"/.exec(challenge)?.[1] ?? '');
  t.deepEqual(await metadata.json(), {
    resource: bridge.url.href,
    authorization_servers: [issuer.url],
    scopes_supported: ['call'],
    bearer_methods_supported: ['header'],
  });
});

test('while the issuer is away nobody comes in, with the best of tokens', async (t) => {
  const issuer = await startIssuer(t);
  issuer.answers.set('/keys', { status: 500 });
  const bridge = await startWithIssuer(t, issuer);
  const answer = await post(bridge, bearer(await KEY.sign(claimsOf(issuer))));
  t.is(answer.status, 503);
  t.truthy(answer.headers.get('retry-after'));
  t.is(bridge.children().length, 0);
});

test('a session of one subject does not exist for another', async (t) => {
  const issuer = await startIssuer(t);
  publish(issuer, KEY);
  const bridge = await startWithIssuer(t, issuer);
  const tokenOf = async (sub: string) => bearer(await KEY.sign(claimsOf(issuer, { sub })));
  const opened = await post(bridge, await tokenOf('alice'));
  const session = { 'Mcp-Session-Id': opened.headers.get('mcp-session-id') ?? '' };
  const end = async (sub: string) =>
    (await fetch(bridge.url, { method: 'DELETE', headers: { ...session, ...(await tokenOf(sub)) } })).status;
  t.is(await end('bob'), 404);
  t.is(await end('alice'), 204);
});

test('what clients show to the bridge never reaches a remote server', async (t) => {
  const server = await startStreamable();
  t.teardown(() => server.close());
  const args = ['--auth-token', 'alice=env:ALICE_TOKEN', '--forward-header', 'X-Request-Id', server.url.href];
  const bridge = await start(t, args, { env: { ALICE_TOKEN: TOKEN } });
  const shown = { ...bearer(TOKEN), Cookie: 'id=hunter2', 'X-Api-Key': 'hunter2', 'X-Request-Id': 'r-1' };
  const { client } = await connect(t, bridge, shown);
  await client.callTool({ name: 'echo', arguments: { value: 'x' } });
  t.true(server.asked.length > 2);
  for (const { headers } of server.asked) {
    t.is(headers.authorization, undefined);
    t.is(headers.cookie, undefined);
    t.false(new RegExp(`hunter2|${TOKEN}`).test(JSON.stringify(headers)));
  }
  t.true(
    server.asked.some(({ headers }) => headers['x-request-id'] === 'r-1'),
    'what was named goes on',
  );
});

test('a caller that keeps all its messages unfinished does not keep those of another out', async (t) => {
  const tokens = { ALICE: TOKEN, BOB: 'a-long-token-of-bob' };
  const args = ['--auth-token', 'alice=env:ALICE', '--auth-token', 'bob=env:BOB', '--max-message-bytes', '64k'];
  const bridge = await start(t, [...args, ...SERVER], { env: tokens });
  const length = 64 * 1024;
  const unfinished = await Promise.all(
    Array.from({ length: 40 }, async () => {
      const socket = (await RawSocket.connect(Number(bridge.url.port))).read();
      t.teardown(() => socket.destroy());
      const headers = { ...POST_HEADERS, ...bearer(tokens.ALICE), 'Content-Length': String(length) };
      socket.request('POST', '/mcp', headers, ' '.repeat(length - 1));
      return socket;
    }),
  );
  const refused = () => unfinished.filter(({ received }) => received.startsWith('HTTP/1.1 503 '));
  // Half of 16 messages without their first 16 KiB each.
  await waitFor(() => refused().length >= 40 - 11, { message: () => `${refused().length} refusals` });
  const body = `${JSON.stringify(initialize())}${' '.repeat(length / 2)}`;
  const headers = { ...POST_HEADERS, ...bearer(tokens.BOB) };
  t.is((await fetch(bridge.url, { method: 'POST', headers, body })).status, 200);
});
