/** docs/guide/tunnels.md: what a client behind a tunnel gets, which passes on its own name as the Host. */
import test from 'ava';
import { startBridge } from '../support/bridge.ts';
import { EVERYTHING } from '../support/config-bridge.ts';
import { callHttp, type HttpAnswer } from '../support/http-call.ts';
import { documentAt } from './documents.ts';

const page = documentAt('docs/guide/tunnels.md');
const BASE_URL = ['--base-url', 'https://tools.example.com'];
const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

type Headers = Readonly<Record<string, string>>;

async function serve(t: { teardown(end: () => Promise<void>): void }, options: readonly string[]) {
  const bridge = await startBridge([...options, '--', process.execPath, EVERYTHING]);
  t.teardown(async () => void (await bridge.stop()));
  // With --base-url, the addresses of the log are those of the tunnel, but for the health checks.
  const health = bridge.logs.map(({ msg }) => /^Health +(\S+)/.exec(msg ?? '')?.[1]).find((url) => url !== undefined);
  const port = Number(new URL(health ?? '').port);
  const host = { Host: 'tools.example.com' };
  return {
    get: (path: string): Promise<HttpAnswer> => callHttp({ port, path, headers: host }),
    post: (params: object, headers: Headers = {}): Promise<HttpAnswer> =>
      callHttp({
        port,
        path: '/mcp',
        method: 'POST',
        headers: {
          ...host,
          'Content-Type': 'application/json',
          Accept: 'application/json, text/event-stream',
          ...headers,
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params }),
      }),
  };
}

async function messageOf(answer: HttpAnswer): Promise<string> {
  const { error } = await answer.json<{ readonly error: { readonly message: string } }>();
  return error.message;
}

test('without --base-url the name of a tunnel is refused as the page shows, and the health check answers', async (t) => {
  const { get, post } = await serve(t, []);
  t.is((await get('/healthz')).status, 200);
  const refused = await post({});
  t.is(refused.status, 403);
  t.true(page.includes(`\n${await messageOf(refused)}\n`));
});

test('--base-url allows the name of the tunnel, for everybody, and /status is shown to them', async (t) => {
  const { get, post } = await serve(t, BASE_URL);
  t.is((await post({})).status, 200);
  t.is((await get('/status.json')).status, 200);
});

test('a request whose Mcp-Method was stripped is refused with the words of the page', async (t) => {
  const { post } = await serve(t, BASE_URL);
  const refused = await post({ _meta: MODERN }, { 'MCP-Protocol-Version': '2026-07-28' });
  t.is(refused.status, 400);
  const words = /"(the Mcp-Method header is missing)"/.exec(page)?.[1] ?? '(not in the page)';
  t.true((await messageOf(refused)).includes(words));
});

test('with --auth-issuer, a client behind the tunnel is told where to log in, and /status is hidden', async (t) => {
  const { get, post } = await serve(t, [...BASE_URL, '--auth-issuer', 'https://auth.example.com']);
  const refused = await post({});
  t.is(refused.status, 401);
  const [, metadata = ''] = /resource_metadata="([^"]+)"/.exec(refused.headers['www-authenticate'] ?? '') ?? [];
  t.regex(metadata, /^https:\/\/tools\.example\.com\//);
  t.like(await (await get(new URL(metadata).pathname)).json(), {
    resource: 'https://tools.example.com/mcp',
    authorization_servers: ['https://auth.example.com'],
  });
  t.is((await get('/status.json')).status, 404);
});
