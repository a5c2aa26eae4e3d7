import { Client as LegacySdk } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import {
  CreateMessageRequestSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import test from 'ava';
import { modern, postModern } from '../downstream/streamable-stateless/modern-posts.ts';
import { BRIDGE_COMMAND } from '../support/bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  type AnyClient,
  ask,
  called,
  connectTo,
  ERAS,
  fileOf,
  namesOf,
  type ServerScript,
  serveAggregate,
  tool,
} from './aggregate-world.ts';

const WANTED = { notifications: { toolsListChanged: true } };
const uri = (name: string): string => `test://${name}`;

for (const era of ERAS) {
  test(`${era}: tools and prompts have the prefix of their server, and are otherwise what it wrote`, async (t) => {
    const own = tool('draw', {
      title: 'Draws',
      inputSchema: { type: 'object', properties: { ä: { type: 'string', default: 'ö' } } },
      annotations: { readOnlyHint: true },
      icons: [{ src: 'https://example.com/a.png' }],
      _meta: { ui: { resourceUri: 'ui://own/view' }, 'example.com/x': [1, null] },
    });
    const { url } = await serveAggregate(t, {
      'my server': { tools: [own], prompts: [{ name: 'greet', description: 'Greets' }], label: 'first' },
      other: { tools: [tool('draw')], prompts: [{ name: 'greet' }], label: 'second' },
      plain: { tools: [tool('alone')], portage: { prefix: '' } },
      absent: { tools: [tool('never')], portage: { aggregate: false } },
    });
    const client = await connectTo(t, url, era);
    const { tools } = await client.listTools();
    t.deepEqual(namesOf(tools), ['my-server__draw', 'other__draw', 'alone']);
    t.deepEqual({ ...tools[0], name: 'draw' }, own);
    t.deepEqual(namesOf((await client.listPrompts()).prompts), ['my-server__greet', 'other__greet']);
    t.deepEqual(await called(client, 'other__draw', { a: [1.5] }), { name: 'draw', arguments: { a: [1.5] } });
    t.deepEqual(await called(client, 'alone'), { name: 'alone', arguments: {} });
    t.like(await client.getPrompt({ name: 'other__greet' }), { messages: [{ content: { text: 'second: greet' } }] });
    const ref = { type: 'ref/prompt', name: 'my-server__greet' };
    t.like(await client.complete({ ref, argument: { name: 'a', value: 'b' } }), {
      completion: { values: ['first: greet'] },
    });
  });

  test(`${era}: a name that is too long is shortened, the same way after each start, and can be called`, async (t) => {
    const long = (end: string): string => `${'a'.repeat(70)}${end}`;
    const servers = { long: { tools: [tool(long('1')), tool(long('2'))] } };
    const first = await serveAggregate(t, servers);
    const names = namesOf((await (await connectTo(t, first.url, era)).listTools()).tools);
    t.true(names.every((name) => name.length === 64 && name.startsWith('long__aaa')));
    t.is(new Set(names).size, 2);
    const second = await serveAggregate(t, servers);
    // Nobody has asked this process for a list yet.
    const client = await connectTo(t, second.url, era);
    t.deepEqual(await called(client, names[1] ?? ''), { name: long('2'), arguments: {} });
  });

  test(`${era}: an unknown name is refused as the protocol says, with the names that may be meant`, async (t) => {
    const { url } = await serveAggregate(t, { files: { tools: [tool('read_file'), tool('write_file')] } });
    const client = await connectTo(t, url, era);
    await client.listTools();
    const refused = { code: -32602, message: /Unknown tool: files__raed_file\. Did you mean files__read_file\?/ };
    await t.throwsAsync(client.callTool({ name: 'files__raed_file' }), refused);
    await t.throwsAsync(client.callTool({ name: 'read_file' }), { message: /Did you mean files__read_file\?/ });
    await t.throwsAsync(client.callTool({ name: 'nobody__x' }), { message: /Unknown tool: nobody__x/ });
  });

  test(`${era}: resources keep their URIs, and the second server with the same one gets its prefix`, async (t) => {
    const ui = (own: string) => tool(own, { _meta: { ui: { resourceUri: 'ui://shared/view' } } });
    const { url } = await serveAggregate(t, {
      one: {
        label: 'one',
        tools: [ui('show')],
        resources: [
          { uri: uri('both'), name: 'a' },
          { uri: uri('one'), name: 'b' },
        ],
        resourceTemplates: [{ uriTemplate: 'test://one/{id}', name: 'c' }],
      },
      two: {
        label: 'two',
        tools: [ui('show'), tool('link'), tool('only')],
        resources: [
          { uri: uri('both'), name: 'd' },
          { uri: uri('two'), name: 'e' },
        ],
        resourceTemplates: [{ uriTemplate: 'test://two/{+path}', name: 'f' }],
      },
    });
    const client = await connectTo(t, url, era);
    const { resources } = await client.listResources();
    t.deepEqual(
      resources.map((resource) => resource.uri),
      [uri('both'), uri('one'), `two+${uri('both')}`, uri('two')],
    );
    const textAt = async (place: string): Promise<string | undefined> =>
      ((await client.readResource({ uri: place })) as { contents: { text: string }[] }).contents[0]?.text;
    t.is(await textAt(uri('both')), 'one: test://both');
    t.is(await textAt(`two+${uri('both')}`), 'two: test://both');
    t.is(await textAt(uri('two')), 'two: test://two');
    t.is(await textAt('test://two/a/b'), 'two: test://two/a/b');
    t.is(await textAt('test://one/7'), 'one: test://one/7');
    const { tools } = await client.listTools();
    t.deepEqual(
      tools.map(({ _meta }) => (_meta as { ui: unknown } | undefined)?.ui),
      [{ resourceUri: 'ui://shared/view' }, { resourceUri: 'two+ui://shared/view' }, undefined, undefined],
    );
    t.is(await textAt('ui://shared/view'), 'one: ui://shared/view');
    t.is(await textAt('two+ui://shared/view'), 'two: ui://shared/view');
    // A page of a server knows the server's own names only.
    t.deepEqual(await called(client, 'only', { a: 1 }), { name: 'only', arguments: { a: 1 } });
    await t.throwsAsync(client.callTool({ name: 'show' }), { message: /Unknown tool: show/ });
    const linked = await client.callTool({ name: 'two__link', arguments: { uri: 'ui://shared/view' } });
    t.like(linked, { content: [{ uri: 'two+ui://shared/view' }] });
    t.like(await client.callTool({ name: 'two__link', arguments: { uri: uri('two') } }), {
      content: [{ uri: uri('two') }],
    });
  });

  test(`${era}: the handshake is answered at once, whatever the servers do, and lists leave out who does not come`, async (t) => {
    const { url, bridge } = await serveAggregate(t, {
      mute: { isMute: true, tools: [tool('never')] },
      broken: { tools: [tool('never')] },
      good: { tools: [tool('works'), tool('asked')], instructions: 'Use it well.' },
    });
    const client = await connectTo(t, url, era);
    t.regex(client.getInstructions() ?? '', /# mute\n.*# broken\n.*# good\n/s);
    const promised = { listChanged: true };
    t.like(client.getServerCapabilities(), {
      tools: promised,
      prompts: promised,
      resources: { ...promised, subscribe: true },
      completions: {},
      logging: {},
    });
    // What no server has is an empty list.
    t.deepEqual((await client.listPrompts()).prompts, []);
    // A call waits for nobody else.
    t.deepEqual(await called(client, 'good__works'), { name: 'works', arguments: {} });
    const listedAt = performance.now();
    t.deepEqual(namesOf((await client.listTools()).tools), ['broken__never', 'good__works', 'good__asked']);
    t.true(performance.now() - listedAt > 9000);
    await waitFor(() => bridge.logs.some(({ msg }) => msg?.includes('the server mute is left out of a list') === true));
  });

  test(`${era}: a tool is found by what it does, described and called, with all that a call can do`, async (t) => {
    const weather = tool('get_forecast', {
      description: 'Returns the weather forecast of a place.',
      inputSchema: { type: 'object', properties: { place: { type: 'string' } } },
      outputSchema: { type: 'object' },
    });
    const { url } = await serveAggregate(
      t,
      {
        weather: { tools: [weather, tool('count'), tool('link')] },
        files: { tools: [tool('read_file', { description: 'Reads a file.' })], portage: { alwaysShow: ['read_file'] } },
      },
      ['--aggregate=search'],
    );
    const client = await connectTo(t, url, era);
    const { tools } = await client.listTools();
    t.deepEqual(namesOf(tools), ['search_tools', 'describe_tool', 'call_tool', 'files__read_file']);
    t.true(tools.slice(0, 2).every(({ outputSchema }) => outputSchema !== undefined));
    const found = await client.callTool({
      name: 'search_tools',
      arguments: { query: 'will it rain in Paris, weather' },
    });
    t.like(found, { structuredContent: { tools: [{ name: 'weather__get_forecast', server: 'weather' }] } });
    const described = await client.callTool({ name: 'describe_tool', arguments: { names: ['weather__get_forecast'] } });
    t.deepEqual((described as { structuredContent: unknown }).structuredContent, {
      tools: [{ ...weather, name: 'weather__get_forecast' }],
    });
    const call = (name: string, args: object, ...more: unknown[]): Promise<unknown> =>
      client.callTool({ name: 'call_tool', arguments: { name, arguments: args } }, ...more);
    t.like(await call('weather__link', { uri: 'test://x' }), { content: [{ uri: 'test://x' }] });
    const progress: unknown[] = [];
    const onprogress = (told: unknown): void => void progress.push(told);
    await call(
      'weather__count',
      { label: 'x' },
      ...(era === 'legacy' ? [undefined, { onprogress }] : [{ onprogress }]),
    );
    await waitFor(() => progress.length > 0);
    await t.throwsAsync(call('weather__nothing', {}), { message: /Unknown tool/ });
    t.like(await client.callTool({ name: 'search_tools', arguments: {} }), { isError: true });
  });
}

test('what a server asks reaches the client under an id of its own, and the answer goes back to that server', async (t) => {
  const { url } = await serveAggregate(t, { one: { tools: [tool('sample')] }, two: { tools: [tool('sample')] } });
  const asked: string[] = [];
  const ids: unknown[] = [];
  const answerLater = async (
    request: { params: { messages: { content: { text: string } }[] } },
    extra: { requestId: unknown },
  ) => {
    const text = request.params.messages[0]?.content.text ?? '';
    asked.push(text);
    ids.push(extra.requestId);
    await waitFor(() => asked.length === 2);
    return { model: text, role: 'assistant', content: { type: 'text', text } };
  };
  const client = await connectTo(t, url, 'legacy', {
    capabilities: { sampling: {} },
    prepare: (own) => own.setRequestHandler(CreateMessageRequestSchema, answerLater),
  });
  const [one, two] = await Promise.all([
    called(client, 'one__sample', { text: 'for one' }),
    called(client, 'two__sample', { text: 'for two' }),
  ]);
  t.like(one, { model: 'for one' });
  t.like(two, { model: 'for two' });
  t.is(new Set(ids).size, 2);
});

test('a list is remembered until its server says that it has changed', async (t) => {
  const { url } = await serveAggregate(t, {
    one: { tools: [tool('asked'), tool('grow')] },
    two: { tools: [tool('asked')] },
  });
  let changes = 0;
  const client = await connectTo(t, url, 'legacy', {
    prepare: (own) => own.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++),
  });
  for (let times = 0; times < 3; times++) t.is((await client.listTools()).tools.length, 3);
  t.like(await called(client, 'one__asked'), { 'tools/list': 1 });
  await client.callTool({ name: 'one__grow', arguments: { name: 'new' } });
  await waitFor(() => changes === 1);
  t.true(namesOf((await client.listTools()).tools).includes('one__new'));
  t.like(await called(client, 'one__asked'), { 'tools/list': 2 });
  t.like(await called(client, 'two__asked'), { 'tools/list': 1 });
});

test('a server without a list of tools is not asked for one, and one that does not tell of changes each time', async (t) => {
  const { url } = await serveAggregate(t, {
    silent: { tools: [tool('asked')], capabilities: { tools: {} } },
    bare: { prompts: [{ name: 'p' }] },
  });
  const client = await connectTo(t, url);
  await client.listTools();
  await client.listTools();
  t.like(await called(client, 'silent__asked'), { 'tools/list': 2 });
});

test('calls to others do not notice a server that crashes, hangs, floods, or changes its list all the time', async (t) => {
  const { url } = await serveAggregate(t, {
    bad: { tools: ['crash', 'hang', 'change', 'flood', 'fine'].map((name) => tool(name)) },
    good: { tools: [tool('works')] },
  });
  let changes = 0;
  const client = await connectTo(t, url, 'legacy', {
    prepare: (own) => own.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++),
  });
  await client.listTools();
  const hanging = client.callTool({ name: 'bad__hang' }).catch((error: unknown) => error);
  const changing = client.callTool({ name: 'bad__change' });
  for (let times = 0; times < 20; times++) t.truthy(await called(client, 'good__works'));
  await changing;
  const flooding = client.callTool({ name: 'bad__flood' });
  for (let times = 0; times < 20; times++) t.truthy(await called(client, 'good__works'));
  await flooding;
  // A hundred changes in a second or more, of which twenty are told each second.
  t.true(changes > 2 && changes < 60, `${changes} changes were told`);
  await t.throwsAsync(client.callTool({ name: 'bad__crash' }));
  t.regex(String(await hanging), /ended|exited|gone/);
  t.truthy(await called(client, 'good__works'));
  t.truthy(await called(client, 'bad__fine'));
});

test('a list of five thousand tools comes in pages, and other servers are not in its way', async (t) => {
  const { url } = await serveAggregate(t, {
    many: { tools: [], moreTools: 5000, pageSize: 100 },
    other: { tools: [tool('last')] },
  });
  const client = await connectTo(t, url);
  const names: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    names.push(...namesOf(page.tools));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  t.is(names.length, 5001);
  t.is(names[4999], 'many__tool_4999');
  t.deepEqual(await called(client, 'other__last'), { name: 'last', arguments: {} });
  t.deepEqual(await called(client, 'many__tool_4321'), { name: 'tool_4321', arguments: {} });
  await t.throwsAsync(client.listTools({ cursor: 'made up' }), { code: -32602 });
});

test('callers see the servers that are theirs', async (t) => {
  const { url } = await serveAggregate(
    t,
    { all: { tools: [tool('open')] }, some: { tools: [tool('closed')], portage: { callers: ['anna'] } } },
    ['--aggregate', '--auth-token', 'anna=env:ANNA', '--auth-token', 'bert=env:BERT'],
    { ANNA: 'a-long-token-of-anna', BERT: 'a-long-token-of-bert' },
  );
  const toolsOf = async (token: string): Promise<readonly string[]> => {
    const client = await connectTo(t, url, 'legacy', { headers: { Authorization: `Bearer ${token}` } });
    return namesOf((await client.listTools()).tools);
  };
  t.deepEqual(await toolsOf('a-long-token-of-anna'), ['all__open', 'some__closed']);
  t.deepEqual(await toolsOf('a-long-token-of-bert'), ['all__open']);
});

test('a reload adds and removes servers, which clients are told', async (t) => {
  const first: ServerScript = { tools: [tool('a')] };
  const second: ServerScript = { tools: [tool('b')] };
  const aggregate = await serveAggregate(t, { first });
  let changes = 0;
  const client = await connectTo(t, aggregate.url, 'legacy', {
    prepare: (own) => own.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++),
  });
  const names = async (): Promise<readonly string[]> => namesOf((await client.listTools()).tools);
  t.deepEqual(await names(), ['first__a']);
  await aggregate.rewrite({ first, second });
  aggregate.bridge.kill('SIGHUP');
  await waitFor(() => changes > 0);
  t.deepEqual(await names(), ['first__a', 'second__b']);
  await aggregate.rewrite({ second });
  aggregate.bridge.kill('SIGHUP');
  await waitFor(async () => (await names()).join() === 'second__b');
  t.deepEqual(await called(client, 'second__b'), { name: 'b', arguments: {} });
});

test('a modern subscription hears of a reload, and of the changes of a server that was added', async (t) => {
  const first: ServerScript = { tools: [tool('a')] };
  const second: ServerScript = { tools: [tool('b'), tool('grow')] };
  const { bridge, rewrite } = await serveAggregate(t, { first });
  const at = { port: Number(bridge.url.port) };
  const stream = (await postModern(at, modern(1, 'subscriptions/listen', WANTED))).events();
  const next = async (): Promise<string> => (JSON.parse((await stream.next()).data) as { method: string }).method;
  t.is(await next(), 'notifications/subscriptions/acknowledged');
  await rewrite({ first, second });
  bridge.kill('SIGHUP');
  t.is(await next(), 'notifications/tools/list_changed');
  const grow = modern(2, 'tools/call', { name: 'second__grow', arguments: { name: 'new' } });
  // Until the new server has agreed, a change is told when it has.
  t.like(await (await postModern(at, grow)).json(), { result: { content: [{ text: 'grown' }] } });
  t.is(await next(), 'notifications/tools/list_changed');
  t.deepEqual(
    stream.unread.filter(({ data }) => !data.includes('tools/list_changed')),
    [],
  );
});

test('a modern subscription without a filter is refused, and nothing follows', async (t) => {
  const { bridge } = await serveAggregate(t, { first: { tools: [] } });
  const answer = await postModern({ port: Number(bridge.url.port) }, modern(1, 'subscriptions/listen'));
  t.like(await answer.json(), { error: { code: -32602 } });
});

test('a call that waits for a server which is removed is told so', async (t) => {
  const good: ServerScript = { tools: [tool('a')] };
  const { url, bridge, rewrite } = await serveAggregate(t, { good, mute: { isMute: true, tools: [] } });
  const client = await connectTo(t, url);
  const waiting = client.callTool({ name: 'mute__x' });
  await rewrite({ good });
  bridge.kill('SIGHUP');
  await t.throwsAsync(waiting, { message: /was removed from the aggregate/ });
  t.deepEqual(await called(client, 'good__a'), { name: 'a', arguments: {} });
});

test('a level that is none is refused, as a server would', async (t) => {
  const { url } = await serveAggregate(t, { one: { tools: [] } });
  const client = await connectTo(t, url);
  await t.throwsAsync(ask(client, 'logging/setLevel', { level: 'loud' }), { code: -32602 });
});

test('tasks of several servers have ids of their own, and are found at the server that has them', async (t) => {
  const withTasks = (label: string): ServerScript => ({
    label,
    tools: [tool('start')],
    capabilities: { tasks: { list: {}, requests: { tools: { call: {} } } } },
  });
  const { url } = await serveAggregate(t, { one: withTasks('one'), two: withTasks('two'), none: { tools: [] } });
  const client = await connectTo(t, url);
  const start = (name: string) => ask(client, 'tools/call', { name, task: {} });
  t.like(await start('one__start'), { task: { taskId: 'one+t1' } });
  t.like(await start('two__start'), { task: { taskId: 'two+t1' } });
  t.deepEqual(await ask(client, 'tasks/get', { taskId: 'two+t1' }), {
    taskId: 'two+t1',
    status: 'working',
    statusMessage: 'two',
  });
  t.like(await ask(client, 'tasks/list'), {
    tasks: [
      { taskId: 'one+t1', statusMessage: 'one' },
      { taskId: 'two+t1', statusMessage: 'two' },
    ],
  });
});

test('an update names the resource as the client has to ask for it', async (t) => {
  const resources = [{ uri: uri('both'), name: 'both' }];
  const { url } = await serveAggregate(t, {
    one: { resources, tools: [tool('touch')] },
    two: { resources, tools: [tool('touch')] },
  });
  const updated: string[] = [];
  const client = await connectTo(t, url, 'legacy', {
    prepare: (own) =>
      own.setNotificationHandler(
        ResourceUpdatedNotificationSchema,
        (told: { params: { uri: string } }) => void updated.push(told.params.uri),
      ),
  });
  await client.listResources();
  await ask(client, 'resources/subscribe', { uri: `two+${uri('both')}` });
  await client.callTool({ name: 'two__touch', arguments: { uri: uri('both') } });
  await waitFor(() => updated.length > 0);
  t.deepEqual(updated, [`two+${uri('both')}`]);
});

test('a method that nobody has heard of goes to the servers in their order until one knows it', async (t) => {
  const { url } = await serveAggregate(t, {
    one: { tools: [], label: 'one' },
    two: { tools: [], methods: { 'example.com/do': { done: 'by two' } } },
    three: { tools: [], methods: { 'example.com/do': { done: 'by three' } } },
  });
  const client = await connectTo(t, url);
  t.like(await ask(client, 'example.com/do'), { done: 'by two' });
  await t.throwsAsync(ask(client, 'example.com/other'), { code: -32601 });
});

test('connect with a file and no name is the aggregate on stdio', async (t) => {
  const folder = await createConfigFolder(t);
  const file = await folder.write('mcp.json', fileOf({ one: { tools: [tool('a')] }, two: { tools: [tool('b')] } }));
  const client = new LegacySdk({ name: 'host', version: '1' }) as unknown as AnyClient;
  const [command = '', ...args] = [...BRIDGE_COMMAND, 'connect', '--config', file];
  await client.connect(new StdioClientTransport({ command, args, stderr: 'ignore' }));
  t.teardown(() => client.close());
  t.deepEqual(namesOf((await client.listTools()).tools), ['one__a', 'two__b']);
  t.deepEqual(await called(client, 'two__b', { x: 1 }), { name: 'b', arguments: { x: 1 } });
});
