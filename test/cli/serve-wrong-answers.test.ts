/** A server may say what it likes: that ends neither the bridge nor the calls of others. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { modern, postModern } from '../downstream/streamable-stateless/modern-posts.ts';
import { say, WRONG } from '../fixtures/servers/says-anything.js';
import { startBridge } from '../support/bridge.ts';
import { callHttp } from '../support/http-call.ts';
import { call, initialize, openHttpSession, POST_HEADERS } from '../support/legacy-clients.ts';
import { waitFor } from '../support/wait-for.ts';

const STDIO = ['--', process.execPath, 'test/fixtures/servers/says-anything.js'];
/** Answers that never become any are waited for so long. */
const PATIENCE = ['--request-timeout', '4s', '--max-sessions', '1000'];
/** Each may start a process. */
const AT_A_TIME = 6;
const NUMBERS = Array.from({ length: WRONG }, (_, n) => n);

async function check(t: ExecutionContext, args: readonly string[]): Promise<void> {
  const bridge = await startBridge([...PATIENCE, ...args]);
  t.teardown(() => bridge.stop());
  const port = Number(bridge.url.port);
  const greet = async (n: number) => {
    const { params } = initialize() as { params: object };
    const body = { ...initialize(), params: { ...params, clientInfo: { name: 'c', version: String(n) } } };
    return callHttp({ port, method: 'POST', headers: POST_HEADERS, body: JSON.stringify(body) });
  };
  // On a busy machine a server may be started too slowly for an answer in time: that is tried again.
  const open = () => waitFor(() => openHttpSession(port).catch(() => undefined), { message: 'a session' });
  const callOnce = async (n: number) => {
    const session = await open();
    await (await session.post({ jsonrpc: '2.0', method: 'notifications/initialized' })).text();
    return session.post(call(1, String(n)));
  };
  const callModern = (n: number) => postModern({ port }, modern(n, 'tools/call', { name: String(n), arguments: {} }));
  for (const ask of [greet, callOnce, callModern]) {
    const answers: string[] = [];
    for (let first = 0; first < WRONG; first += AT_A_TIME) {
      const some = NUMBERS.slice(first, first + AT_A_TIME);
      answers.push(...(await Promise.all(some.map(async (n) => (await ask(n)).text()))));
    }
    t.is(answers.filter((text) => text.includes('"jsonrpc"')).length, WRONG, 'each was answered');
  }
  const session = await open();
  const echo = { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'echo', arguments: { text: 'well' } } };
  const isServed = async () => (await (await session.post(echo)).text()).includes('"text":"well"');
  await waitFor(isServed, { message: 'a call to be answered' });
  t.is((await callHttp({ port, method: 'GET', path: '/healthz' })).status, 200);
  t.deepEqual(
    bridge.logs.filter(({ code, level }) => code === 'ERR_INTERNAL' || level === 60),
    [],
  );
}

test.serial('what a server of its own says wrongly ends with the call it is about', (t) => check(t, STDIO));

test.serial('what a shared server says wrongly ends with the call it is about', (t) =>
  check(t, ['--isolation', 'shared', ...STDIO]),
);

/** A server over Streamable HTTP that says the same. */
async function serveWrongly(t: ExecutionContext): Promise<string> {
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const message = (await json(request)) as { readonly id?: unknown };
    if (message.id === undefined) return void response.writeHead(202).end();
    const events = say(message).map((text: string) => `data: ${text}\n\n`);
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Mcp-Session-Id': 'one' }).end(events.join(''));
  };
  const server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

test.serial('what a remote server says wrongly ends with the call it is about', async (t) =>
  check(t, ['--transport', 'streamable-http', '--protocol', 'legacy', await serveWrongly(t)]),
);

/** The same over HTTP+SSE. */
async function serveWronglyOnStream(t: ExecutionContext): Promise<string> {
  const streams = new Map<string, ServerResponse>();
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method === 'GET') {
      const id = String(streams.size);
      streams.set(id, response);
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      return void response.write(`event: endpoint\ndata: /post?${id}\n\n`);
    }
    const stream = streams.get(request.url?.split('?')[1] ?? '');
    const message = (await json(request)) as object;
    response.writeHead(202).end();
    for (const text of say(message)) stream?.write(`event: message\ndata: ${text}\n\n`);
  };
  const server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/sse`;
}

test.serial('what a remote server over HTTP+SSE says wrongly ends with the call it is about', async (t) =>
  check(t, ['--transport', 'sse', await serveWronglyOnStream(t)]),
);
