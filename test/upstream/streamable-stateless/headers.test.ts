import test from 'ava';
import { answerResult, type Script } from '../../fixtures/http-servers/scripted.ts';
import { waitFor } from '../../support/wait-for.ts';
import { askedFor, connectScripted, testBothWays } from './connect-modern.ts';

testBothWays('each request says in headers what its body says, and nothing of sessions', async (t) => {
  const { client, server } = await connectScripted(t, {});
  await client.request('server/discover');
  await client.request('resources/read', { uri: 'file:///a b' });
  await client.request('prompts/get', { name: 'grüß' });
  await client.request('x-vendor/do', { name: 'n' });
  const seen = server.messages.map(({ headers }) => [
    headers['mcp-protocol-version'],
    headers['mcp-method'],
    headers['mcp-name'],
  ]);
  t.deepEqual(seen, [
    ['2026-07-28', 'server/discover', undefined],
    ['2026-07-28', 'resources/read', 'file:///a b'],
    ['2026-07-28', 'prompts/get', '=?base64?Z3LDvMOf?='],
    ['2026-07-28', 'x-vendor/do', undefined],
  ]);
  for (const { headers } of server.messages) {
    t.is(headers.accept, 'application/json, text/event-stream');
    t.is(headers['content-type'], 'application/json');
    t.is(headers['mcp-session-id'], undefined);
    t.is(headers['last-event-id'], undefined);
  }
});

testBothWays('the revision in the header is that of the body, whatever it is', async (t) => {
  const { client, server } = await connectScripted(t, {});
  client.send({
    id: 1,
    method: 'server/discover',
    params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2030-01-01' } },
  });
  await client.answer(1);
  t.is(server.messages[0]?.headers['mcp-protocol-version'], '2030-01-01');
});

testBothWays('a name with line breaks cannot end its header', async (t) => {
  const { client, server } = await connectScripted(t, {});
  const uri = 'file:///x\r\nX-Evil: 1\r\n\r\nGET / HTTP/1.1';
  await client.request('resources/read', { uri });
  const name = String(server.messages[0]?.headers['mcp-name']);
  t.is(server.messages[0]?.headers['x-evil'], undefined);
  t.is(Buffer.from(name.slice('=?base64?'.length, -'?='.length), 'base64').toString(), uri);
});

testBothWays(
  'forwarded headers of the client’s request go along, also with the list of tools that is fetched for it',
  async (t) => {
    const options = { headers: { 'x-tenant': 'acme', 'mcp-name': 'forged', cookie: 'a=b' } };
    const { client, server } = await connectScripted(t, {}, options);
    await client.request('tools/call', { name: 'x' });
    t.deepEqual(
      server.messages.map(({ headers, message }) => [message.method, headers['x-tenant'], headers['mcp-name']]),
      [
        ['tools/list', 'acme', undefined],
        ['tools/call', 'acme', 'x'],
      ],
    );
    for (const { headers } of server.messages) t.is(headers.cookie, undefined);
  },
);

test('a notification that belongs to no request goes with the headers of the client’s latest request', async (t) => {
  const { client, server } = await connectScripted(t, {}, { headers: { 'x-tenant': 'acme' } });
  await client.request('server/discover');
  client.notify('notifications/x-vendor/changed');
  await waitFor(() => server.messages.length === 2);
  t.is(server.messages[1]?.headers['x-tenant'], 'acme');
});

testBothWays('a name too long for a header is refused here', async (t) => {
  const { client, server } = await connectScripted(t, {});
  const { error } = await client.request('resources/read', { uri: `file:///${'x'.repeat(9000)}` });
  t.is(error?.code, -32602);
  t.like(error?.data, { bridge: { reason: 'ERR_UPSTREAM_HEADERS' } });
  t.deepEqual(server.order, []);
});

for (const [title, method, params] of [
  ['a name', 'tools/call', { name: 'x\ud800' }],
  ['a URI', 'resources/read', { uri: 'file:///\udc00' }],
  ['an argument for a header', 'tools/call', { name: 'x', arguments: { region: '\ud800' } }],
] as const) {
  testBothWays(`${title} with half a surrogate pair is refused here: no header can repeat it`, async (t) => {
    const { client, server } = await connectScripted(t, listing({ name: 'x', inputSchema: annotated }));
    const { error } = await client.request(method, params);
    t.like(error, { code: -32602, data: { bridge: { reason: 'ERR_UPSTREAM_HEADERS' } } });
    t.regex(error?.message ?? '', /is no Unicode text/);
    t.false(server.order.includes(method));
  });
}

// ---- arguments in headers

const annotated = {
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    count: { type: 'integer', 'x-mcp-header': 'Count' },
    dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
    plain: { type: 'string' },
    deep: { type: 'object', properties: { er: { type: 'string', 'x-mcp-header': 'Deeper' } } },
  },
};

const listing = (...tools: readonly object[]): Script => ({
  'tools/list': (asked, response) => answerResult(asked, response, { tools }),
});

for (const [title, args, expected] of [
  ['plain values', { region: 'us-west1', plain: 'x' }, { region: 'us-west1' }],
  ['numbers and booleans', { count: -7, dry: false }, { count: '-7', dry: 'false' }],
  ['a value further down', { deep: { er: 'x' } }, { deeper: 'x' }],
  ['null and nothing', { region: null }, {}],
  ['what is of the wrong type', { region: 7, count: 1.5, dry: 'true' }, {}],
  ['an integer beyond what doubles hold', { count: 9007199254740992 }, {}],
  ['letters beyond ASCII', { region: 'Zürich' }, { region: '=?base64?WsO8cmljaA==?=' }],
  ['line breaks', { region: 'a\r\nb' }, { region: '=?base64?YQ0KYg==?=' }],
  ['a tab', { region: 'a\tb' }, { region: '=?base64?YQli?=' }],
  ['blanks around', { region: ' a ' }, { region: '=?base64?IGEg?=' }],
  ['nothing but quotes', { region: '' }, { region: '=?base64??=' }],
  ['what looks encoded', { region: '=?base64?x?=' }, { region: '=?base64?PT9iYXNlNjQ/eD89?=' }],
  ['what looks encoded, with one mark', { region: '=?base64?=' }, { region: '=?base64?PT9iYXNlNjQ/PQ==?=' }],
] as const) {
  testBothWays(`arguments go into the headers the tool names: ${title}`, async (t) => {
    const { client, server } = await connectScripted(t, listing({ name: 'x', inputSchema: annotated }));
    await client.request('tools/call', { name: 'x', arguments: args });
    const { headers } = askedFor(server, 'tools/call')[0] ?? {};
    const sent = Object.entries(headers ?? {}).filter(([name]) => name.startsWith('mcp-param-'));
    t.deepEqual(Object.fromEntries(sent.map(([name, value]) => [name.slice('mcp-param-'.length), value])), expected);
  });
}

testBothWays('an argument too long for a header is refused here', async (t) => {
  const { client, server } = await connectScripted(t, listing({ name: 'x', inputSchema: annotated }));
  const { error } = await client.request('tools/call', { name: 'x', arguments: { region: 'x'.repeat(9000) } });
  t.like(error, { code: -32602, data: { bridge: { reason: 'ERR_UPSTREAM_HEADERS' } } });
  t.deepEqual(server.order, ['tools/list']);
});
