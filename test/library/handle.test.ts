/** `handle` of a bridge, in the web servers of programs, with official clients. */
import { once } from 'node:events';
import { Agent, request as send } from 'node:http';
import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { connectSse, connectStreamable } from '../support/sdk-client.ts';
import { answerSelf, codeOf, type Handler, openBridge, postInitialize, startHost } from './host.ts';

interface ExpressApp extends Handler {
  use(...handlers: readonly unknown[]): void;
}
type Express = { (): ExpressApp; json(): unknown; text(options: object): unknown };
const express: Express = createRequire(import.meta.url)('express');

test('serves its own paths, and leaves every other request as it came', async (t) => {
  const bridge = await openBridge(t);
  const taken: boolean[] = [];
  const { url } = await startHost(t, (request, response) => {
    const isTaken = bridge.handle(request, response);
    taken.push(isTaken);
    if (!isTaken) answerSelf(request, response);
  });
  const mine = await fetch(new URL('/orders?a=1', url), { method: 'POST', body: 'an order' });
  t.is(await mine.text(), 'mine: POST /orders?a=1 an order');
  t.is(await (await fetch(url)).text(), 'mine: GET / ');
  t.is(await (await fetch(new URL('/status', url))).text(), 'mine: GET /status ');
  t.deepEqual(taken, [false, false, false]);
  const { client, close } = await connectStreamable(new URL('/mcp', url));
  t.true((await client.listTools()).tools.length > 5);
  await close();
  t.is((await fetch(new URL('/readyz', url))).status, 200);
});

test('is mounted by Express, and tells old clients the path that they can reach', async (t) => {
  const bridge = await openBridge(t);
  const app = express();
  app.use('/a/b', bridge.handle);
  app.use(answerSelf);
  const { url } = await startHost(t, app);
  for (const connected of [
    await connectStreamable(new URL('/a/b/mcp', url)),
    await connectSse(new URL('/a/b/sse', url)),
  ]) {
    t.true((await connected.client.listTools()).tools.length > 5);
    await connected.close();
  }
  t.is(await (await fetch(new URL('/mcp', url))).text(), 'mine: GET /mcp ');
});

test('takes its prefix off itself where the framework does not', async (t) => {
  const bridge = await openBridge(t, { prefix: '/tools/' });
  const { url } = await startHost(t, (request, response) => {
    bridge.handle(request, response, () => answerSelf(request, response));
  });
  const { client, close } = await connectSse(new URL('/tools/sse', url));
  t.true((await client.listTools()).tools.length > 5);
  await close();
  for (const path of ['/mcp', '/toolsmcp', '/tools']) {
    t.is(await (await fetch(new URL(path, url))).text(), `mine: GET ${path} `);
  }
});

test('uses what a parser has made of the body, packed or not', async (t) => {
  const bridge = await openBridge(t);
  for (const parser of [express.json(), express.text({ type: '*/*' })]) {
    const app = express();
    app.use(parser);
    app.use(bridge.handle);
    const { url } = await startHost(t, app);
    const { client, close } = await connectStreamable(new URL('/mcp', url));
    const { content } = await client.callTool({ name: 'echo', arguments: { message: 'grüß dich' } });
    t.deepEqual(content, [{ type: 'text', text: 'Echo: grüß dich' }]);
    await close();
  }
});

test('says what to do where a body is gone', async (t) => {
  const bridge = await openBridge(t);
  const { url } = await startHost(t, async (request, response) => {
    await text(request);
    bridge.handle(request, response);
  });
  const response = await postInitialize(new URL('/mcp', url));
  t.is(response.status, 500);
  t.is(await codeOf(response), 'ERR_HTTP_BODY');
});

test('where nobody is asked who they are, refuses what came in at an address that others can reach', async (t) => {
  const bridge = await openBridge(t);
  let address = '192.0.2.1';
  const { url } = await startHost(t, (request, response) => {
    Object.defineProperty(request.socket, 'localAddress', { value: address, configurable: true });
    bridge.handle(request, response);
  });
  const refused = await postInitialize(new URL('/mcp', url));
  t.is(refused.status, 403);
  t.is(await codeOf(refused), 'ERR_HTTP_ADDRESS');
  address = '::ffff:127.0.0.1';
  t.is((await postInitialize(new URL('/mcp', url))).status, 200);
});

test('lets in from elsewhere who shows a token, or everybody where that is said', async (t) => {
  process.env.LIBRARY_TEST_TOKEN = 'a-token-that-is-long-enough';
  t.teardown(() => delete process.env.LIBRARY_TEST_TOKEN);
  const known = await openBridge(t, { authToken: 'alice=env:LIBRARY_TEST_TOKEN' });
  const open = await openBridge(t, { host: '0.0.0.0', allowAnonymous: true, prefix: '/open' });
  const { url } = await startHost(t, (request, response) => {
    Object.defineProperty(request.socket, 'localAddress', { value: '192.0.2.1', configurable: true });
    known.handle(request, response, () => open.handle(request, response));
  });
  t.is((await postInitialize(new URL('/mcp', url))).status, 401);
  const shown = { Authorization: 'Bearer a-token-that-is-long-enough' };
  t.is((await postInitialize(new URL('/mcp', url), shown)).status, 200);
  t.is((await postInitialize(new URL('/open/mcp', url))).status, 200);
});

test('refuses a header that decides who calls when it comes twice', async (t) => {
  const bridge = await openBridge(t);
  const { url } = await startHost(t, (request, response) => void bridge.handle(request, response));
  const request = send(new URL('/mcp', url), { headers: { Authorization: ['Bearer one', 'Bearer two'] } }).end();
  const [response] = await once(request, 'response');
  response.resume();
  t.is(response.statusCode, 400);
});

test('a closed bridge refuses what is its own, ends its streams, and leaves the connections of the server alone', async (t) => {
  const bridge = await openBridge(t, { shutdownGrace: 0 });
  const { url } = await startHost(t, (request, response) => {
    bridge.handle(request, response, () => answerSelf(request, response));
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const ask = async (path: string) => {
    const request = send(new URL(path, url), { agent }).end();
    const [response] = await once(request, 'response');
    await text(response);
    return { status: response.statusCode, isReused: request.reusedSocket };
  };
  t.like(await ask('/healthz'), { status: 200, isReused: false });
  const stream = await fetch(new URL('/sse', url));
  await bridge.close();
  await stream.text().catch(() => undefined);
  t.like(await ask('/orders'), { status: 200, isReused: true });
  t.like(await ask('/mcp'), { status: 503, isReused: true });
});

test('serves several servers below their names, and listens on a port of its own besides', async (t) => {
  const { NODE, EVERYTHING, FILESYSTEM } = await import('../support/config-bridge.ts');
  const bridge = await openBridge(t, {
    port: 0,
    servers: {
      everything: { command: NODE, args: [EVERYTHING] },
      'my files': { command: NODE, args: [FILESYSTEM, process.cwd()], portage: { includeTool: 'read_*' } },
    },
  });
  const { url } = await startHost(t, (request, response) => void bridge.handle(request, response));
  const urls = await bridge.listen();
  const own = urls.find(({ label }) => label === 'my files')?.url ?? '';
  for (const endpoint of [new URL('/my-files/mcp', url), new URL(own)]) {
    const { client, close } = await connectStreamable(endpoint);
    const names = (await client.listTools()).tools.map(({ name }) => name);
    t.true(names.length > 0 && names.every((name) => name.startsWith('read_')), names.join());
    await close();
  }
  t.deepEqual(
    bridge.inspect().map(({ name, state }) => [name, state]),
    [
      ['everything', 'not-started'],
      ['my files', 'ready'],
    ],
  );
});
