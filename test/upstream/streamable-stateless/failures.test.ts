import { ModernClient } from '../../contract/modern-client.ts';
import { type Act, accept, event, notification, openStream, resultOf } from '../../fixtures/http-servers/scripted.ts';
import { waitFor } from '../../support/wait-for.ts';
import { dialStateless } from '../remote-dialers.ts';
import { askedFor, type ConnectOptions, connectScripted, refuseWith, testBothWays } from './connect-modern.ts';

async function ask(
  t: Parameters<typeof connectScripted>[0],
  method: string,
  answer: Act,
  { params = {}, ...options }: ConnectOptions & { readonly params?: object } = {},
) {
  const connection = await connectScripted(t, { [method]: answer }, options);
  const answered = await connection.client.request(method, { name: 'x', uri: 'x', ...params });
  return { ...connection, error: answered.error, result: answered.result };
}

const bridgeOf = (error: { readonly data?: unknown } | undefined) =>
  (error?.data as { bridge?: Record<string, unknown> } | undefined)?.bridge;

// ---- errors of the server

for (const [title, status, code, data] of [
  ['400 and an error of the envelope', 400, -32602, undefined],
  ['400 and no revision in common', 400, -32022, { supported: ['2027-01-01'], requested: '2026-07-28' }],
  ['400 and a capability it wants', 400, -32021, { requiredCapabilities: { elicitation: {} } }],
  ['404 and a method it does not have', 404, -32601, undefined],
  ['500 and an error of its own', 500, -32603, { own: true }],
] as const) {
  testBothWays(`${title}: the error is the server’s answer and passes untouched`, async (t) => {
    const { error, server } = await ask(t, 'prompts/get', refuseWith(status, code, data));
    t.deepEqual(error, { code, message: 'not like this', ...(data && { data }) });
    t.is(server.order.length, 1);
  });
}

testBothWays('an error without id under 400 or 404 is about the request that was posted', async (t) => {
  for (const status of [400, 404]) {
    for (const id of ['null', undefined]) {
      const { error } = await ask(t, 'prompts/get', (_, response) => {
        const idMember = id === undefined ? '' : `"id":${id},`;
        response.writeHead(status, { 'Content-Type': 'application/json' });
        response.end(`{"jsonrpc":"2.0",${idMember}"error":{"code":-32700,"message":"cannot read"}}`);
      });
      t.like(error, { code: -32700, message: 'cannot read' });
    }
  }
});

const failures: Record<string, { readonly answer: Act; readonly reason: string; readonly message: RegExp }> = {
  'a web page': {
    answer: (_, response) => void response.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>'),
    reason: 'ERR_UPSTREAM_PROTOCOL',
    message: /200 and text\/html instead of JSON/,
  },
  nothing: { answer: accept, reason: 'ERR_UPSTREAM_PROTOCOL', message: /without an answer in it/ },
  'broken JSON': {
    answer: (_, response) => void response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"jsonrpc":'),
    reason: 'ERR_UPSTREAM_PROTOCOL',
    message: /without an answer in it/,
  },
  'an error page': {
    answer: (_, response) =>
      void response
        .writeHead(500, { 'Content-Type': 'text/html' })
        .end('<title>Oh no</title><body>secret stack</body>'),
    reason: 'ERR_UPSTREAM_HTTP',
    message: /answered 500 Internal Server Error: Oh no\.$/,
  },
  'a 404 of something else': {
    answer: (_, response) => void response.writeHead(404).end('nothing here'),
    reason: 'ERR_UPSTREAM_HTTP',
    message: /answered 404 Not Found/,
  },
  'an error about no message in particular': {
    answer: (_, response) =>
      void response
        .writeHead(406, { 'Content-Type': 'application/json' })
        .end('{"jsonrpc":"2.0","error":{"code":-32000,"message":"Not Acceptable"},"id":null}'),
    reason: 'ERR_UPSTREAM_HTTP',
    message: /answered 406 Not Acceptable/,
  },
  'a request for authorization': {
    answer: (_, response) => void response.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end(),
    reason: 'ERR_UPSTREAM_AUTH',
    message: /\(401\)\. Give it a token/,
  },
  'a refusal of the authorization': {
    answer: (_, response) => void response.writeHead(403).end('no'),
    reason: 'ERR_UPSTREAM_AUTH',
    message: /\(403\)\. It says: "no"\. Give it a token/,
  },
};

for (const [name, { answer, reason, message }] of Object.entries(failures)) {
  testBothWays(`an answer that is ${name} fails the call alone, in plain words`, async (t) => {
    const { error, client, server } = await ask(t, 'prompts/get', answer);
    t.is(error?.code, -32603);
    t.is(bridgeOf(error)?.reason, reason);
    t.regex(error?.message ?? '', message);
    t.notRegex(error?.message ?? '', /secret/);
    t.is(server.order.length, 1, 'it is not tried again');
    t.deepEqual((await client.request('tools/list')).result, {}, 'others go on');
  });
}

testBothWays('a server that cannot be reached fails the call, and is not ready', async (t) => {
  const dialer = dialStateless(new URL('http://127.0.0.1:1/mcp'));
  const client = new ModernClient(dialer);
  t.teardown(async () => {
    client.close();
    await dialer.close();
  });
  t.deepEqual(dialer.readiness(), { state: 'ready' });
  const { error } = await client.request('tools/list');
  t.is(bridgeOf(error)?.reason, 'ERR_UPSTREAM_CONNECT');
  t.is(dialer.readiness().state, 'failing');
});

// ---- answers that are lost

const losses: Record<string, Act> = {
  'a stream that ends without an answer': (_, response) => void openStream(response).end(': nothing\n\n'),
  'a stream that breaks': (asked, response) => {
    openStream(response).write(event(resultOf(asked, 'ok')).slice(0, 30));
    setTimeout(() => response.destroy(), 20);
  },
  'a connection that is cut before the answer': (_, response) => void response.destroy(),
  'half a body': (_, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '1000' }).write('{"jsonrpc"');
    setTimeout(() => response.destroy(), 20);
  },
};

for (const [title, lose] of Object.entries(losses)) {
  testBothWays(`${title}: a tool is not called again, and the client is told that nobody knows`, async (t) => {
    const { error, server } = await ask(t, 'tools/call', lose);
    t.is(error?.code, -32603);
    t.like(bridgeOf(error), { reason: 'ERR_UPSTREAM_DELIVERY', delivery: 'unknown' });
    t.regex(error?.message ?? '', /before the answer to tools\/call.*is not known/);
    t.is(askedFor(server, 'tools/call').length, 1);
  });

  for (const method of ['tools/list', 'resources/read', 'prompts/get', 'completion/complete', 'server/discover']) {
    testBothWays(`${title}: ${method} only reads and is asked once more, under a new id`, async (t) => {
      let times = 0;
      const { result, server } = await ask(t, method, (asked, response) => {
        times += 1;
        if (times === 1) lose(asked, response);
        else response.end(JSON.stringify(resultOf(asked, 'second')));
      });
      t.is(result?.content?.[0]?.text, 'second');
      const ids = askedFor(server, method).map(({ message }) => message.id);
      t.is(ids.length, 2);
      t.not(ids[0], ids[1]);
    });
  }
}

testBothWays('what only reads is asked no third time', async (t) => {
  const { error, server } = await ask(t, 'tools/list', (_, response) => void openStream(response).end());
  t.is(bridgeOf(error)?.reason, 'ERR_UPSTREAM_DELIVERY');
  t.is(server.order.length, 2);
});

for (const params of [{ inputResponses: {} }, { requestState: 's' }]) {
  testBothWays(`what carries ${Object.keys(params)} is not asked again: a server may take it once`, async (t) => {
    const lose: Act = (_, response) => void openStream(response).end();
    for (const method of ['prompts/get', 'resources/read']) {
      const { error, server } = await ask(t, method, lose, { params });
      t.is(bridgeOf(error)?.reason, 'ERR_UPSTREAM_DELIVERY');
      t.is(server.order.length, 1);
    }
  });
}

// ---- limits

for (const [limit, answer] of [
  ['firstByteMs', () => {}],
  ['idleMs', (_: unknown, response) => void openStream(response).write(': x\n\n')],
  ['callMs', (_: unknown, response) => void openStream(response).write(': x\n\n')],
] as const satisfies readonly (readonly [string, Act])[]) {
  testBothWays(`the limit ${limit} ends a call, and nothing is asked again`, async (t) => {
    // Time enough for the request to arrive, also where many tests begin at once.
    const { error, server } = await ask(t, 'tools/list', answer, { timeouts: { [limit]: 2000 } });
    t.is(bridgeOf(error)?.reason, 'ERR_UPSTREAM_TIMEOUT');
    t.is(server.order.length, 1);
    await waitFor(() => server.open.size === 0, { message: 'the connection to be let go' });
  });
}

for (const [form, answer] of [
  ['JSON', (asked, response) => void response.end(JSON.stringify(resultOf(asked, 'x'.repeat(200_000))))],
  ['an event', (asked, response) => void openStream(response).end(event(resultOf(asked, 'x'.repeat(200_000))))],
] as const satisfies readonly (readonly [string, Act])[]) {
  testBothWays(`an answer over the limit (${form}) fails its call`, async (t) => {
    const { error, server } = await ask(t, 'prompts/get', answer, { maxMessageBytes: 100_000 });
    t.is(bridgeOf(error)?.reason, 'ERR_UPSTREAM_TOO_LARGE');
    t.is(server.order.length, 1);
  });
}

testBothWays('a notification over the limit is not the answer, which is waited for', async (t) => {
  const answer: Act = (asked, response) => {
    openStream(response).write(event(notification('notifications/message', { data: 'x'.repeat(200_000) })));
    response.end(event(resultOf(asked, 'ok')));
  };
  const { result } = await ask(t, 'prompts/get', answer, { maxMessageBytes: 100_000 });
  t.like(result, { content: [{ text: 'ok' }] });
});
