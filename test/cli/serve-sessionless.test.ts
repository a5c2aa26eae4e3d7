/** Clients that never repeat a session id, through the built program at real servers of both eras. */
import test, { type ExecutionContext } from 'ava';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { EVERYTHING } from '../support/config-bridge.ts';
import { callHttp } from '../support/http-call.ts';
import { initialize, JSON_HEADERS, notification, textOf } from '../support/legacy-clients.ts';

interface Answer {
  readonly status: number;
  readonly type: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: results of many shapes
  readonly body: any;
}

/** Posts as such a client does: without a session id, and reading only JSON. */
async function post(bridge: Bridge, body: object): Promise<Answer> {
  const headers = { ...JSON_HEADERS, Accept: 'application/json' };
  const port = Number(bridge.url.port);
  const answer = await callHttp({ port, method: 'POST', path: '/mcp', headers, body: textOf(body) });
  const text = await answer.text();
  const type = answer.headers['content-type'];
  return { status: answer.status, type, body: text === '' ? undefined : JSON.parse(text) };
}

async function start(t: ExecutionContext, command: readonly string[]): Promise<Bridge> {
  const bridge = await startBridge(['--', ...command]);
  t.teardown(() => bridge.stop());
  return bridge;
}

function request(id: number, method: string, params: object = {}): object {
  return { jsonrpc: '2.0', id, method, params };
}

test('at a legacy server it initializes, lists and calls, and the calls share a session of the pool', async (t) => {
  const bridge = await start(t, [process.execPath, EVERYTHING]);
  t.is((await post(bridge, initialize('2025-06-18'))).status, 200);
  t.is((await post(bridge, notification('notifications/initialized'))).status, 202);
  const { body: tools } = await post(bridge, request(1, 'tools/list'));
  t.true(tools.result.tools.some(({ name }: { name: string }) => name === 'echo'));
  t.is(tools.result.ttlMs, undefined, 'no member of another era');
  const echo = (message: string) => request(2, 'tools/call', { name: 'echo', arguments: { message } });
  const answers = await Promise.all(['one', 'two', 'three'].map((word) => post(bridge, echo(word))));
  t.deepEqual(
    answers.map(({ type, body }) => [type, body.id, body.result.content[0].text]),
    ['one', 'two', 'three'].map((word) => ['application/json', 2, `Echo: ${word}`]),
  );
  const long = { name: 'trigger-long-running-operation', arguments: { duration: 6, steps: 3 } };
  const { type, body } = await post(bridge, request(3, 'tools/call', { ...long, _meta: { progressToken: 'p' } }));
  t.is(type, 'application/json');
  t.regex(body.result.content[0].text, /completed/);
  t.is((await post(bridge, request(4, 'resources/subscribe', { uri: 'a:b' }))).status, 400);
  t.is((await bridge.stop()).code, 0);
});

test('at a modern server it lists and calls without any handshake', async (t) => {
  const bridge = await start(t, [process.execPath, 'test/fixtures/servers/modern-only.js']);
  const { body: tools } = await post(bridge, request(1, 'tools/list'));
  t.true(tools.result.tools.some(({ name }: { name: string }) => name === 'echo'));
  t.is(tools.result.resultType, undefined);
  const { body } = await post(bridge, request(2, 'tools/call', { name: 'echo', arguments: { text: 'hello' } }));
  t.deepEqual(body, { jsonrpc: '2.0', id: 2, result: { content: [{ type: 'text', text: 'hello' }] } });
});
