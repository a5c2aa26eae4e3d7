import test from 'ava';
import { pino } from 'pino';
import { type Act, answerResult, event, notification, openStream } from '../../fixtures/http-servers/scripted.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';
import { askedFor, connectScripted, refuseWith, testBothWays } from './connect-modern.ts';

const tool = (name: string, header?: string, type = 'string') => ({
  name,
  inputSchema: { type: 'object', properties: { a: { type, ...(header !== undefined && { 'x-mcp-header': header }) } } },
});

const list =
  (tools: readonly object[], more: object = {}): Act =>
  (asked, response) =>
    answerResult(asked, response, { tools, ...more });

const params = (name: string) => ({ name, arguments: { a: 'v' } });
const paramHeader = (server: Parameters<typeof askedFor>[0], name: string, call = -1) =>
  askedFor(server, 'tools/call').at(call)?.headers[`mcp-param-${name}`];

testBothWays('the list is fetched before the first call, once, as the client would ask', async (t) => {
  const { client, server } = await connectScripted(
    t,
    { 'tools/list': list([tool('x', 'A'), tool('y')]) },
    { capabilities: { elicitation: {} } },
  );
  const meta = { 'io.modelcontextprotocol/logLevel': 'debug', progressToken: 1 };
  await client.request('tools/call', { ...params('x'), _meta: meta });
  await client.request('tools/call', params('y'));
  await client.request('tools/call', params('unknown'));
  t.deepEqual(server.order, ['tools/list', 'tools/call', 'tools/call', 'tools/call']);
  t.deepEqual(
    [0, 1, 2].map((call) => paramHeader(server, 'a', call)),
    ['v', undefined, undefined],
  );
  t.deepEqual(server.messages[0]?.message.params, {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
      'io.modelcontextprotocol/clientInfo': { name: 'modern-client', version: '1.0.0' },
    },
  });
});

testBothWays('calls that come together wait for one list', async (t) => {
  const { client, server } = await connectScripted(t, { 'tools/list': list([tool('x', 'A')]) });
  const ids = [1, 2, 3].map(() => client.start('tools/call', params('x')));
  for (const id of ids) t.truthy((await client.answer(id)).result);
  t.is(askedFor(server, 'tools/list').length, 1);
  for (const { headers } of askedFor(server, 'tools/call')) t.is(headers['mcp-param-a'], 'v');
});

testBothWays('all pages are fetched, up to fifty', async (t) => {
  const { client, server } = await connectScripted(t, {
    'tools/list': (asked, response) => {
      const page = Number(asked.message.params?.cursor ?? 0);
      answerResult(asked, response, { tools: [tool(`tool-${page}`, `H${page}`)], nextCursor: String(page + 1) });
    },
  });
  await client.request('tools/call', params('tool-49'));
  t.is(paramHeader(server, 'h49'), 'v');
  t.is(askedFor(server, 'tools/list').length, 50);
  await client.request('tools/call', params('tool-50'));
  t.is(askedFor(server, 'tools/list').length, 50, 'and not again at once');
});

testBothWays('a list that passes to the client is as good as one that is fetched', async (t) => {
  const { client, server } = await connectScripted(t, { 'tools/list': list([tool('x', 'A')]) });
  await client.request('tools/list');
  await client.request('tools/call', params('x'));
  t.is(paramHeader(server, 'a'), 'v');
  t.deepEqual(server.order, ['tools/list', 'tools/call']);
});

testBothWays(
  'a tool whose annotations are not valid is taken out of the list, and the rest stays byte for byte',
  async (t) => {
    const lines: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    const kept = [
      '{ "name" : "good","n":1.0,"inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}} }',
      '{"name":"plain"}',
    ];
    const bad = [
      '{"name":"empty","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":""}}}}',
      '{"name":"array","inputSchema":{"properties":{"a":{"items":{"type":"string","x-mcp-header":"A"}}}}}',
      '{"name":"escaped","inputSchema":{"properties":{"a":{"type":"object","x-mcp-h\\u0065ader":"A"}}}}',
    ];
    const { client, server } = await connectScripted(
      t,
      {
        'tools/list': ({ message }, response) => {
          const tools = [bad[0], kept[0], bad[1], bad[2], kept[1]].join(', ');
          response.writeHead(200, { 'Content-Type': 'application/json' });
          response.end(`{"jsonrpc":"2.0","id":${message.id},"result":{"ttlMs":5, "tools" : [ ${tools} ],"x":1.0}}`);
        },
      },
      { log },
    );
    const id = client.start('tools/list');
    await client.answer(id);
    t.is(
      client.receivedBytes[0]?.toString(),
      `{"jsonrpc":"2.0","id":${id},"result":{"ttlMs":5, "tools" : [${kept.join(',')}],"x":1.0}}`,
    );
    t.deepEqual(
      lines.map((line) => JSON.parse(line).tool),
      ['empty', 'array', 'escaped'],
    );
    await client.request('tools/list');
    t.is(lines.length, 3, 'it is said once');

    const { error } = await client.request('tools/call', params('array'));
    t.like(error, { code: -32602, data: { bridge: { reason: 'ERR_UPSTREAM_TOOL' } } });
    t.is(askedFor(server, 'tools/call').length, 0);
  },
);

testBothWays('a tool that names a header for a number is hidden too, but called with it if it is called', async (t) => {
  const { client, server } = await connectScripted(t, { 'tools/list': list([tool('x', 'A', 'number'), tool('y')]) });
  const { result } = await client.request('tools/list');
  t.is((result?.tools as unknown[]).length, 1);
  await client.request('tools/call', { name: 'x', arguments: { a: 1.5 } });
  t.is(paramHeader(server, 'a'), '1.5');
});

testBothWays('a list that is empty after that is an empty list', async (t) => {
  const { client } = await connectScripted(t, { 'tools/list': list([tool('x', ' ')]) });
  t.deepEqual((await client.request('tools/list')).result, { tools: [] });
});

testBothWays(
  'headers the server does not accept are made anew from its list, and the call is sent once more',
  async (t) => {
    let header = 'Old';
    const { client, server } = await connectScripted(t, {
      'tools/list': (asked, response) => list([tool('x', header)])(asked, response),
      'tools/call': (asked, response) => {
        const isRight = asked.headers[`mcp-param-${header.toLowerCase()}`] === 'v';
        if (isRight) answerResult(asked, response, { content: [{ type: 'text', text: 'done' }] });
        else refuseWith(400, -32020)(asked, response);
      },
    });
    t.is(await client.call('x', { a: 'v' }), 'done');
    header = 'New';
    t.is(await client.call('x', { a: 'v' }), 'done');
    t.deepEqual(server.order, ['tools/list', 'tools/call', 'tools/call', 'tools/list', 'tools/call']);
    const ids = askedFor(server, 'tools/call').map(({ message }) => message.id);
    t.is(new Set(ids).size, 3);
  },
);

testBothWays('it is sent once more, not for ever', async (t) => {
  const { client, server } = await connectScripted(t, { 'tools/call': refuseWith(400, -32020) });
  t.is((await client.request('tools/call', params('x'))).error?.code, -32020);
  t.is(askedFor(server, 'tools/call').length, 2);
});

testBothWays('what is wrong with the headers of another request is told the client', async (t) => {
  const { client, server } = await connectScripted(t, { 'prompts/get': refuseWith(400, -32020) });
  t.is((await client.request('prompts/get', params('x'))).error?.code, -32020);
  t.deepEqual(server.order, ['prompts/get']);
});

testBothWays('a list that cannot be had holds no call back, and is not asked for at each call', async (t) => {
  for (const act of [
    refuseWith(400, -32601),
    (_, response) => void response.writeHead(500).end(),
    (_, response) => void response.destroy(),
  ] satisfies readonly Act[]) {
    const { client, server } = await connectScripted(t, { 'tools/list': act });
    for (const name of ['x', 'y', 'z']) t.truthy((await client.request('tools/call', params(name))).result);
    t.is(askedFor(server, 'tools/list').length, 1);
  }
});

testBothWays('a list that does not come in time is not waited for', async (t) => {
  const clock = new FakeClock();
  const { client, server } = await connectScripted(t, { 'tools/list': () => {} }, { clock });
  const id = client.start('tools/call', params('x'));
  await waitFor(() => server.order.length === 1);
  clock.advance(10_000);
  t.truthy((await client.answer(id)).result);
});

testBothWays('a call withdrawn while the list is fetched is not sent', async (t) => {
  let answer = (): void => {};
  const { client, server } = await connectScripted(t, {
    'tools/list': (asked, response) => {
      answer = () => list([])(asked, response);
    },
  });
  const id = client.start('tools/call', params('x'));
  await waitFor(() => server.order.length === 1);
  client.cancel(id);
  answer();
  await client.request('tools/call', params('y'));
  t.deepEqual(
    askedFor(server, 'tools/call').map(({ message }) => message.params?.name),
    ['y'],
  );
});

testBothWays('a tool nobody knew is asked for again after a while', async (t) => {
  const clock = new FakeClock();
  let tools = [tool('x')];
  const { client, server } = await connectScripted(
    t,
    { 'tools/list': (asked, response) => list(tools, { ttlMs: 60_000 })(asked, response) },
    { clock },
  );
  await client.request('tools/call', params('new'));
  tools = [tool('new', 'A')];
  clock.advance(59_999);
  await client.request('tools/call', params('new'));
  t.is(paramHeader(server, 'a'), undefined);
  clock.advance(1);
  await client.request('tools/call', params('new'));
  t.is(paramHeader(server, 'a'), 'v');
  t.is(askedFor(server, 'tools/list').length, 2);
});

testBothWays('a tool that is right again can be called again', async (t) => {
  const clock = new FakeClock();
  let tools = [tool('x', 'not a token')];
  const { client, server } = await connectScripted(
    t,
    { 'tools/list': (asked, response) => list(tools)(asked, response) },
    { clock },
  );
  t.is((await client.request('tools/call', params('x'))).error?.code, -32602);
  tools = [tool('x', 'A')];
  t.is((await client.request('tools/call', params('x'))).error?.code, -32602);
  clock.advance(10_000);
  t.truthy((await client.request('tools/call', params('x'))).result);
  t.is(paramHeader(server, 'a'), 'v');
});

testBothWays('a change the server reports makes the list be fetched again', async (t) => {
  let tools = [tool('x', 'Old')];
  let change = (): void => {};
  const { client, server } = await connectScripted(t, {
    'tools/list': (asked, response) => list(tools)(asked, response),
    'subscriptions/listen': ({ message }, response) => {
      const _meta = { 'io.modelcontextprotocol/subscriptionId': message.id };
      openStream(response).write(event(notification('notifications/subscriptions/acknowledged', { _meta })));
      change = () => void response.write(event(notification('notifications/tools/list_changed', { _meta })));
    },
  });
  await client.listen({ toolsListChanged: true });
  await client.request('tools/call', params('x'));
  tools = [tool('x', 'New')];
  change();
  await waitFor(() => client.notifications('notifications/tools/list_changed').length === 1);
  await client.request('tools/call', params('x'));
  t.is(paramHeader(server, 'new'), 'v');
});

testBothWays('a list that was asked for before a change is not gone by after it', async (t) => {
  let answer: (() => void) | undefined;
  let change = (): void => {};
  const { client, server } = await connectScripted(t, {
    'tools/list': (asked, response) => {
      if (answer === undefined) answer = () => list([tool('x', 'Old')])(asked, response);
      else list([tool('x', 'New')])(asked, response);
    },
    'subscriptions/listen': ({ message }, response) => {
      const _meta = { 'io.modelcontextprotocol/subscriptionId': message.id };
      openStream(response).write(event(notification('notifications/subscriptions/acknowledged', { _meta })));
      change = () => void response.write(event(notification('notifications/tools/list_changed', { _meta })));
    },
  });
  await client.listen({ toolsListChanged: true }, 'sub');
  const early = client.start('tools/call', params('x'));
  await waitFor(() => answer !== undefined);
  change();
  await waitFor(() => client.notifications('notifications/tools/list_changed').length === 1);
  answer?.();
  await client.answer(early);
  await client.request('tools/call', params('x'));
  t.is(paramHeader(server, 'new'), 'v');
});

test('each principal has a list of its own, which its conversations share', async (t) => {
  const { server, connect } = await connectScripted(t, { 'tools/list': list([tool('x', 'A')]) });
  for (const principal of ['a', 'b', 'a', 'b']) await connect({ principal }).request('tools/call', params('x'));
  t.is(askedFor(server, 'tools/list').length, 2);
  for (let n = 0; n < 2; n += 1) await connect({}).request('tools/call', params('x'));
  t.is(askedFor(server, 'tools/list').length, 4, 'those without a name share nothing');
});

testBothWays('tools with names of JavaScript are tools', async (t) => {
  const names = ['__proto__', 'constructor', 'toString'];
  const { client, server } = await connectScripted(t, { 'tools/list': list(names.map((name) => tool(name, 'A'))) });
  for (const name of [...names, 'hasOwnProperty']) t.truthy((await client.request('tools/call', params(name))).result);
  t.deepEqual(
    askedFor(server, 'tools/call').map(({ headers }) => headers['mcp-param-a']),
    ['v', 'v', 'v', undefined],
  );
});
