import test from 'ava';
import { MAX_KEPT_INITIALIZE_BYTES } from '../../../src/relay/sessions/session-state.ts';
import {
  type AskedMessage,
  accept,
  event,
  listenScripted,
  openStream,
  resultOf,
  type Script,
  type ScriptedOptions,
} from '../../fixtures/http-servers/scripted.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { startStreamable } from '../../support/sdk-servers.ts';
import { waitFor } from '../../support/wait-for.ts';
import { connectClient } from '../connect.ts';
import { dialStreamable } from '../remote-dialers.ts';

/** A server that can forget its session: what comes with an old id then gets `status`. */
async function listenForgetful(script: Script = {}, options: ScriptedOptions = {}) {
  const server = await listenScripted(script, options);
  let current = 1;
  return {
    server,
    forget: (status = 404, body: string | ((asked: AskedMessage) => object) = '') => {
      current += 1;
      const refuseOld =
        (act: Script[string]): Script[string] =>
        (asked, response) => {
          const id = asked.headers['mcp-session-id'];
          if (id !== undefined && id !== `session-${current}`) {
            const text = typeof body === 'string' ? body : JSON.stringify(body(asked));
            return void response.writeHead(status, { 'Content-Type': 'application/json' }).end(text);
          }
          act(asked, response);
        };
      const answerPlain: Script[string] = (asked, response) => {
        if (asked.message.id === undefined || asked.message.method === undefined) return accept(asked, response);
        response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(resultOf(asked, 'ok')));
      };
      const names = ['tools/call', 'tools/list', 'ping', 'resources/subscribe', 'logging/setLevel', 'answer'];
      server.rewrite({
        POST: refuseOld(answerPlain),
        'notifications/initialized': refuseOld(accept),
        ...Object.fromEntries(names.map((name) => [name, refuseOld(script[name] ?? answerPlain)])),
        GET: refuseOld(script.GET ?? ((_, response) => void response.writeHead(405).end())),
      });
    },
  };
}

test('a server that forgot the session gets a new one, and the call that found out is sent once more', async (t) => {
  const { server, forget } = await listenForgetful();
  const client = await connectClient(t, server, dialStreamable(server.url));
  await client.request('tools/list');
  forget();
  t.is(await client.call('x'), 'ok');
  const calls = server.messages.filter(({ message }) => message.method === 'tools/call');
  t.deepEqual(
    calls.map(({ headers }) => headers['mcp-session-id']),
    ['session-1', 'session-2'],
  );
  const [first, second] = server.messages.filter(({ message }) => message.method === 'initialize');
  t.deepEqual(second?.message.params, first?.message.params);
  t.is(second?.headers['mcp-session-id'], undefined);
  t.is(
    client.received.filter(({ result }) => result?.serverInfo !== undefined).length,
    1,
    'the client sees one handshake',
  );
  t.is(client.ended, undefined);
});

test('a server that forgets sessions as fast as it opens them gets one more for its event stream, and the next for a message', async (t) => {
  let streams = 0;
  const server = await listenScripted({
    // Each session has a stream once, and is not known anymore when the bridge comes back for it.
    GET: (_, response) => {
      streams += 1;
      if (streams % 2 === 1) openStream(response).end('retry: 0\nid: 1\ndata:\n\n');
      else response.writeHead(404).end();
    },
  });
  const clock = new FakeClock();
  const client = await connectClient(t, server, dialStreamable(server.url, { client: { clock } }));
  const sessions = () => server.order.filter((name) => name === 'initialize').length;
  const streamsAre = (count: number) =>
    waitFor(() => {
      clock.advance(10);
      return streams >= count;
    });
  await streamsAre(2);
  await waitFor(() => sessions() === 2);
  await streamsAre(4);
  const forgetful: Script[string] = (asked, response) => {
    if (asked.headers['mcp-session-id'] === 'session-2') return void response.writeHead(404).end();
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(resultOf(asked, 'ok')));
  };
  t.deepEqual((await client.request('tools/list')).result, {});
  t.is(sessions(), 2, 'not for the stream of a session that was as short');
  server.rewrite({ 'tools/call': forgetful });
  t.is(await client.call('x'), 'ok');
  t.is(sessions(), 3, 'but for a call');
});

const refusals: Record<string, readonly [status: number, answer: (asked: AskedMessage) => object]> = {
  '400 with the id of the request': [400, ({ message: { id } }) => rpcError(id ?? null, -32000, 'No valid session ID')],
  '401 that names the session': [401, () => rpcError(null, -32000, 'Unauthorized: Session not found')],
  '403 that names the session': [403, () => rpcError(null, -32001, 'Mcp-Session-Id principal mismatch')],
  '503 that names the session': [503, () => rpcError(null, -32000, 'Session unknown or expired')],
  '200 with -32600 and without id': [200, () => rpcError(null, -32600, 'Invalid Request')],
  '200 with -32600 and the id of the request': [200, ({ message: { id } }) => rpcError(id ?? null, -32600, 'Invalid')],
};

function rpcError(id: string | number | null, code: number, message: string): object {
  return { jsonrpc: '2.0', id, error: { code, message } };
}

for (const [name, [status, answer]] of Object.entries(refusals)) {
  test(`a session that is lost with ${name} is opened anew within the call, which is carried out once`, async (t) => {
    const { server, forget } = await listenForgetful();
    const client = await connectClient(t, server, dialStreamable(server.url));
    await client.request('tools/list');
    forget(status, answer);
    t.is(await client.call('x'), 'ok');
    const calls = server.messages.filter(({ message }) => message.method === 'tools/call');
    t.deepEqual(
      calls.map(({ headers }) => headers['mcp-session-id']),
      ['session-1', 'session-2'],
    );
    t.is(await client.call('x'), 'ok');
    t.is(server.order.filter((name) => name === 'initialize').length, 2);
  });

  test(`${name} in a session that lives is the answer to the call`, async (t) => {
    const server = await listenScripted({
      'tools/call': (asked, response) =>
        void response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer(asked))),
    });
    const client = await connectClient(t, server, dialStreamable(server.url));
    t.truthy((await client.request('tools/call', { name: 'x' })).error);
    t.is(server.order.filter((name) => name === 'tools/call').length, 1);
    t.is(server.order.filter((name) => name === 'initialize').length, 1);
  });
}

test('a call that the server may have carried out fails with its answer, and the next has a new session', async (t) => {
  const { server, forget } = await listenForgetful();
  const client = await connectClient(t, server, dialStreamable(server.url));
  await client.request('tools/list');
  forget(200, ({ message: { id } }) => rpcError(id ?? null, -32001, 'Session not found'));
  t.is((await client.request('tools/call', { name: 'x' })).error?.code, -32001);
  t.is(server.order.filter((name) => name === 'tools/call').length, 1);
  t.is(await client.call('x'), 'ok');
});

test('a server that refuses everything in each session loses one of them, not one for each call', async (t) => {
  const refuse: Script[string] = ({ message: { id } }, response) =>
    void response
      .writeHead(200, { 'Content-Type': 'application/json' })
      .end(JSON.stringify(rpcError(id ?? null, -32600, 'Invalid Request')));
  const server = await listenScripted({ 'tools/call': refuse, ping: refuse });
  const client = await connectClient(t, server, dialStreamable(server.url));
  for (const _ of [1, 2, 3]) t.is((await client.request('tools/call', { name: 'x' })).error?.code, -32600);
  t.is(server.order.filter((name) => name === 'initialize').length, 2);
});

test('a call that is withdrawn while the server is asked for the session is not repeated in the next', async (t) => {
  let answerPing: (() => void) | undefined;
  const { server, forget } = await listenForgetful();
  const client = await connectClient(t, server, dialStreamable(server.url));
  await client.request('tools/list');
  forget(400);
  server.rewrite({
    ping: (_, response) => {
      answerPing = () => response.writeHead(400).end();
    },
  });
  const id = client.start('tools/call', { name: 'x' });
  const answer = await waitFor(() => answerPing);
  client.notify('notifications/cancelled', { requestId: id });
  await waitFor(() => server.order.includes('notifications/cancelled'));
  answer();
  t.deepEqual((await client.request('tools/list')).result?.content, [{ type: 'text', text: 'ok' }]);
  t.is(server.order.filter((name) => name === 'tools/call').length, 1);
});

test('many calls at once make one new session, and each is answered once', async (t) => {
  const { server, forget } = await listenForgetful();
  const client = await connectClient(t, server, dialStreamable(server.url));
  forget();
  t.deepEqual(await Promise.all(Array.from({ length: 20 }, () => client.call('x'))), Array(20).fill('ok'));
  t.is(server.order.filter((name) => name === 'initialize').length, 2);
});

test('restores log level and subscriptions before anything else is sent, and tells the client to look again', async (t) => {
  const capabilities = { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, prompts: {} };
  const { server, forget } = await listenForgetful({}, { capabilities });
  const client = await connectClient(t, server, dialStreamable(server.url));
  await client.request('logging/setLevel', { level: 'warning' });
  for (const uri of ['test://a', 'test://b', 'test://c']) await client.request('resources/subscribe', { uri });
  await client.request('resources/unsubscribe', { uri: 'test://b' });
  forget();
  const before = server.order.length;
  t.is(await client.call('x'), 'ok');
  t.deepEqual(
    server.order.slice(before).filter((name) => name !== 'GET'),
    [
      'tools/call',
      'initialize',
      'notifications/initialized',
      'logging/setLevel',
      'resources/subscribe',
      'resources/subscribe',
      'tools/call',
    ],
  );
  const restored = server.messages.slice(-4, -1).map(({ message }) => message.params);
  t.deepEqual(restored, [{ level: 'warning' }, { uri: 'test://a' }, { uri: 'test://c' }]);
  const missed = client.received.filter(({ method }) => method !== undefined);
  t.deepEqual(
    missed.map(({ method, params }) => params?.uri ?? method),
    ['notifications/tools/list_changed', 'notifications/resources/list_changed', 'test://a', 'test://c'],
  );
});

test('a call is sent twice at most', async (t) => {
  const server = await listenScripted({
    'tools/call': (_, response) => void response.writeHead(404).end('no such thing'),
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  const { error } = await client.request('tools/call', { name: 'x' });
  t.like(error?.data, { bridge: { reason: 'ERR_UPSTREAM_HTTP', status: 404 } });
  t.is(server.order.filter((name) => name === 'tools/call').length, 2);
});

test('calls whose answer had begun fail: nobody knows whether they were carried out', async (t) => {
  const { server, forget } = await listenForgetful({
    'tools/call': (asked, response) => {
      if (asked.message.params?.name === 'long') openStream(response).write(':\n\n');
      else response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(resultOf(asked, 'ok')));
    },
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  const long = client.start('tools/call', { name: 'long' });
  await waitFor(() => server.order.includes('tools/call'));
  await client.request('tools/list');
  forget();
  t.is(await client.call('x'), 'ok');
  const { error } = await client.answer(long);
  t.is(error?.code, -32603);
  t.regex(error?.message ?? '', /forgot the session while tools\/call was under way/);
  t.like(error?.data, { bridge: { reason: 'ERR_UPSTREAM_CLOSED' } });
  t.is(server.messages.filter(({ message }) => message.params?.name === 'long').length, 1);
});

test('questions of the old session are withdrawn, and late answers to them do not reach the new one', async (t) => {
  const { server, forget } = await listenForgetful({
    'tools/call': (asked, response) => {
      if (asked.message.params?.name === 'x') {
        return void response
          .writeHead(200, { 'Content-Type': 'application/json' })
          .end(JSON.stringify(resultOf(asked, 'ok')));
      }
      openStream(response).write(event({ jsonrpc: '2.0', id: 1, method: 'roots/list' }));
    },
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  client.start('tools/call', { name: 'asks' });
  await waitFor(() => client.received.some(({ method }) => method === 'roots/list'));
  forget();
  await client.call('x');
  t.deepEqual(client.notifications('notifications/cancelled')[0]?.params?.requestId, 1);
  client.send({ id: 1, result: { roots: [] } });
  await client.call('x');
  t.false(server.order.includes('answer'));
});

test('the event stream notices a lost session while nothing else happens', async (t) => {
  const { server, forget } = await listenForgetful({
    GET: (_, response) => {
      openStream(response).write('retry: 20\n\n');
    },
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  await waitFor(() => server.order.includes('GET'));
  await client.request('tools/list');
  forget();
  server.cut();
  await waitFor(
    () => server.messages.filter(({ message }) => message.method === 'notifications/initialized').length === 2,
  );
  t.is(await client.call('x'), 'ok');
  t.is(server.order.filter((name) => name === 'tools/call').length, 1);
});

test('400 for an unknown session is recognized by asking once more', async (t) => {
  const { server, forget } = await listenForgetful();
  const client = await connectClient(t, server, dialStreamable(server.url));
  forget(400, '{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID"},"id":null}');
  t.is(await client.call('x'), 'ok');
  t.is(server.order.filter((name) => name === 'ping').length, 1);
});

test('400 for a message, from a server that knows the session, is just a failed call', async (t) => {
  const server = await listenScripted({
    'tools/call': (_, response) => void response.writeHead(400).end('bad arguments'),
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  const { error } = await client.request('tools/call', { name: 'x' });
  t.regex(error?.message ?? '', /answered 400 Bad Request: bad arguments/);
  t.is(server.order.filter((name) => name === 'initialize').length, 1);
  t.is(server.order.filter((name) => name === 'tools/call').length, 1);
});

test('a server that refuses the new session fails the call, and is asked again for the next one', async (t) => {
  const { server, forget } = await listenForgetful();
  const client = await connectClient(t, server, dialStreamable(server.url));
  forget();
  let refusals = 0;
  server.rewrite({
    initialize: (_, response) => {
      refusals += 1;
      response.writeHead(503).end('starting');
    },
  });
  const { error } = await client.request('tools/call', { name: 'x' });
  t.regex(error?.message ?? '', /503 Service Unavailable: starting/);
  t.is(refusals, 1);
  t.is((await client.request('tools/call', { name: 'x' })).error?.code, -32603);
  t.is(refusals, 2);
  t.is(client.ended, undefined);
});

test('a client that said too much in initialize to have it kept has its calls failed when the session is forgotten', async (t) => {
  const { server, forget } = await listenForgetful();
  const capabilities = { experimental: { x: { y: 'y'.repeat(MAX_KEPT_INITIALIZE_BYTES) } } };
  const client = await connectClient(t, server, dialStreamable(server.url), { capabilities });
  await client.request('tools/list');
  forget();
  for (const _ of ['at first', 'and again']) {
    const { error } = await client.request('tools/call', { name: 'x' });
    t.like(error?.data, { bridge: { reason: 'ERR_UPSTREAM_PROTOCOL' } });
  }
  t.is(server.order.filter((name) => name === 'initialize').length, 1);
});

test('a server that never answers for the new session is given up after a minute, and asked again for the next call', async (t) => {
  const clock = new FakeClock();
  const { server, forget } = await listenForgetful();
  const client = await connectClient(t, server, dialStreamable(server.url, { client: { clock } }));
  forget();
  let isHanging = true;
  server.rewrite({
    initialize: ({ message }, response) => {
      if (isHanging) return;
      const { id, params } = message;
      const result = { protocolVersion: params?.protocolVersion, capabilities: {} };
      response
        .writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 'session-2' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    },
  });
  const call = client.request('tools/call', { name: 'x' });
  await waitFor(() => server.order.filter((name) => name === 'initialize').length === 2);
  clock.advance(60_000);
  t.like((await call).error?.data, { bridge: { reason: 'ERR_UPSTREAM_TIMEOUT' } });
  isHanging = false;
  t.is(await client.call('x'), 'ok');
});

test('a new session whose server never says that it took initialized is gone on with', async (t) => {
  const clock = new FakeClock();
  const { server, forget } = await listenForgetful();
  const client = await connectClient(t, server, dialStreamable(server.url, { client: { clock } }));
  await client.request('tools/list');
  forget();
  server.rewrite({ 'notifications/initialized': () => {} });
  const call = client.call('x');
  await waitFor(() => server.order.filter((name) => name === 'notifications/initialized').length === 2);
  clock.advance(60_000);
  t.is(await call, 'ok');
});

test('a server that never says whether it knows the session is taken to know it after a minute', async (t) => {
  const clock = new FakeClock();
  const { server } = await listenForgetful();
  const client = await connectClient(t, server, dialStreamable(server.url, { client: { clock } }));
  server.rewrite({ 'tools/call': (_, response) => void response.writeHead(400).end('no'), ping: () => {} });
  const call = client.request('tools/call', { name: 'x' });
  await waitFor(() => server.order.includes('ping'));
  clock.advance(60_000);
  t.regex((await call).error?.message ?? '', /answered 400/);
});

test('a server that comes back with another revision ends the session instead of pretending', async (t) => {
  const { server, forget } = await listenForgetful();
  const client = await connectClient(t, server, dialStreamable(server.url));
  forget();
  server.rewrite({
    initialize: (asked, response) => {
      const result = { protocolVersion: '2025-03-26', capabilities: {} };
      response
        .writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 'of-another-revision' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: asked.message.id, result }));
    },
  });
  client.send({ id: 7, method: 'tools/call', params: { name: 'x' } });
  await waitFor(() => client.ended !== undefined);
  t.regex(client.ended?.message ?? '', /speaks another revision now/);
  await waitFor(() => server.order.includes('DELETE'));
  const left = server.messages.filter(({ headers }) => headers['mcp-session-id'] === 'of-another-revision');
  t.deepEqual(left, [], 'the new session is used for nothing but its end');
});

test('an SDK server that restarts is found again: the call at hand is answered, the state restored', async (t) => {
  const server = await startStreamable();
  const client = await connectClient(t, server, dialStreamable(server.url));
  await client.request('logging/setLevel', { level: 'error' });
  await client.request('resources/subscribe', { uri: 'test://a' });
  await server.stop();
  t.is((await client.request('tools/call', { name: 'echo' })).error?.code, -32603, 'it is down');
  await server.forget();
  await server.restart();
  const { pid: _, ...state } = JSON.parse(await client.call('state'));
  t.deepEqual(state, { cancellations: 0, level: 'error', subscriptions: ['test://a'] });
});
