/** A guard on a connection whose server is played by the test, with a file of its own. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { acceptPins } from '../../src/pins/accept.ts';
import { LIST_TIMEOUT_MS } from '../../src/pins/own-listing.ts';
import { PinFile } from '../../src/pins/pin-file.ts';
import { KnownTools, PinGuard, TRUST_MS } from '../../src/pins/pin-guard.ts';
import { PinnedServer } from '../../src/pins/pinned-server.ts';
import { collectLog } from '../process/collected-log.ts';
import { ENVELOPE } from '../relay/call-pair.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { FakeConnection } from '../support/fake-connections.ts';
import { FakeServerListener } from '../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../support/frames.ts';

interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: { readonly tools?: readonly { readonly name: string }[] };
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

const tool = (name: string, description = `does ${name}`) => ({ name, description, inputSchema: { type: 'object' } });

/** Everything that can go on has. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
}

class Bench {
  readonly clock = new FakeClock();
  readonly #collected = collectLog();
  readonly file: PinFile;
  readonly deps;
  connection = new FakeConnection();
  listener = new FakeServerListener();
  #pins: PinnedServer | undefined;

  constructor(t: ExecutionContext, server = 'one') {
    const folder = mkdtempSync(join(tmpdir(), 'portage-pins-'));
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    let ids = 0;
    this.deps = { clock: this.clock, log: this.#collected.log, randomId: () => `random${ids++}` };
    this.file = new PinFile(join(folder, 'pins.json'), this.deps);
    this.#pins = new PinnedServer(this.file, server, this.deps.log);
    this.connect();
  }

  /** Opens another connection, as to another process of the server. */
  connect(tools = new KnownTools()): void {
    this.connection = new FakeConnection();
    this.listener = new FakeServerListener();
    const { connection, deps } = this;
    connection.guard = new PinGuard({ connection, pins: this.#pins as PinnedServer, tools, deps });
    connection.listener = this.listener;
  }

  get logged() {
    return this.#collected.entries;
  }

  client(message: object): boolean {
    return this.connection.send(clientFrame(message));
  }

  server(message: object): void {
    this.connection.server.fromServer(serverFrame(message));
  }

  /** What the server was sent since the last look. */
  asked(): readonly Message[] {
    return this.connection.take().map(({ frame }) => frame.json() as Message);
  }

  /** What the client was sent since the last look. */
  heard(): readonly Message[] {
    return this.listener.received.splice(0).map(({ frame }) => frame.json() as Message);
  }

  /** Answers the guard's own request for tools. */
  async listed(...tools: readonly object[]): Promise<void> {
    const own = this.asked();
    if (own.length !== 1 || own[0]?.method !== 'tools/list') throw new Error(`not a list: ${JSON.stringify(own)}`);
    this.server({ id: own[0].id, result: { tools } });
    await settled();
  }

  call(id: number, name: string, meta?: object): boolean {
    return this.client({ id, method: 'tools/call', params: { name, ...(meta && { _meta: meta }) } });
  }

  /** Pins these tools, as with the first list of a client. */
  async pin(...tools: readonly object[]): Promise<void> {
    this.client({ id: 'first', method: 'tools/list' });
    await this.listed(...tools);
    this.asked();
    this.server({ id: 'first', result: { tools } });
    this.heard();
  }
}

const namesOf = ({ result }: Message | undefined = {}) => result?.tools?.map(({ name }) => name);

test('a list of a server without pins waits until all its tools are pinned, page by page', async (t) => {
  const bench = new Bench(t);
  t.true(bench.client({ id: 1, method: 'tools/list' }));
  const [first] = bench.asked();
  t.like(first, { method: 'tools/list', params: {} });
  t.regex(String(first?.id), /^mcp-portage-pins-/);
  bench.server({ id: first?.id, result: { tools: [tool('a')], nextCursor: 'more' } });
  const [second] = bench.asked();
  t.like(second, { id: first?.id, method: 'tools/list', params: { cursor: 'more' } });
  bench.server({ id: second?.id, result: { tools: [tool('b')] } });
  await settled();
  t.deepEqual([...(bench.file.pins.get('one')?.pinned.keys() ?? [])], ['a', 'b']);
  t.deepEqual(bench.asked(), [{ jsonrpc: '2.0', id: 1, method: 'tools/list' }] as never);
  bench.server({ id: 1, result: { tools: [tool('a')], nextCursor: 'more' } });
  t.deepEqual(namesOf(bench.heard()[0]), ['a']);
});

test('with pins, a list does not wait, and tools that differ are hidden; all else stays byte for byte', async (t) => {
  const bench = new Bench(t);
  await bench.pin(tool('a'), tool('b'), tool('c'));
  t.true(bench.client({ id: 2, method: 'tools/list' }));
  t.is(bench.asked().length, 1);
  const text = (tools: string) => `{"jsonrpc":"2.0","id":2, "result":{"tools":${tools},"nextCursor":"x","n":1e400}}`;
  const same = `{"inputSchema":{"type":"object"}, "description":"does a","name":"a","icons":[1.0]}`;
  const changed = JSON.stringify(tool('b', 'does b and more'));
  bench.connection.server.fromServer(serverFrame(text(`[${same},${changed},${JSON.stringify(tool('new'))}]`)));
  t.is(bench.listener.received[0]?.frame.bytes.toString(), text(`[${same}]`));
});

test('a call waits until the list is known, with all that comes after it, in its order', async (t) => {
  const bench = new Bench(t);
  await bench.pin(tool('a'));
  bench.connect();
  t.true(bench.client({ method: 'notifications/initialized' }));
  bench.asked();
  t.true(bench.call(5, 'a'));
  bench.client({ id: 6, method: 'resources/read', params: { uri: 'a:b' } });
  bench.client({ method: 'notifications/x' });
  bench.call(7, 'a');
  await bench.listed(tool('a'));
  t.deepEqual(
    bench.asked().map(({ id, method }) => id ?? method),
    [5, 6, 'notifications/x', 7],
  );
  t.true(bench.call(8, 'a'));
  t.like(bench.asked(), [{ id: 8, method: 'tools/call' }]);
  t.deepEqual(bench.heard(), []);
});

test('a question of the server is answered while it lists its tools', (t) => {
  const bench = new Bench(t);
  bench.call(5, 'a');
  bench.asked();
  bench.server({ id: 'mine', method: 'roots/list' });
  t.like(bench.heard(), [{ id: 'mine', method: 'roots/list' }]);
  t.true(bench.client({ id: 'mine', result: { roots: [] } }));
  t.like(bench.asked(), [{ id: 'mine' }]);
});

test('a request that is canceled while it waits never reaches the server', async (t) => {
  const bench = new Bench(t);
  await bench.pin(tool('a'));
  bench.connect();
  bench.call(5, 'a');
  bench.call(6, 'a');
  bench.client({ method: 'notifications/cancelled', params: { requestId: 5 } });
  bench.client({ method: 'notifications/cancelled', params: { requestId: 4 } });
  await bench.listed(tool('a'));
  t.deepEqual(
    bench.asked().map(({ id, params }) => id ?? params?.requestId),
    [6, 4],
  );
});

test('a tool that has changed is not called, and the error says what changed and how to accept it', async (t) => {
  const bench = new Bench(t);
  await bench.pin(tool('a'), tool('b'));
  bench.connect();
  bench.call(5, 'a');
  bench.call(6, 'b');
  bench.call(7, 'new');
  bench.call(8, 'nope');
  await bench.listed({ ...tool('a', 'other'), title: 'x' }, tool('b'), tool('new'));
  t.deepEqual(
    bench.asked().map(({ id }) => id),
    [6],
  );
  const [changed, appeared, unknown] = bench.heard();
  const command = `mcp-portage pin --accept ${bench.file.path}`;
  t.like(changed, { id: 5, error: { code: -32602, data: { bridge: { reason: 'ERR_PIN_DIFFERS' } } } });
  t.is(
    changed?.error?.message,
    `The tool "a" is not called: its title and description are not as when it was pinned. If that is right, whoever runs mcp-portage accepts it with: ${command} a`,
  );
  t.like(appeared, { id: 7, error: { code: -32602 } });
  t.regex(appeared?.error?.message ?? '', /^The tool "new" is not called: it has appeared since .* --accept .* new$/);
  t.like(unknown, { id: 8, error: { code: -32602, message: 'Unknown tool: nope' } });
  t.like(
    bench.logged.filter(({ level }) => level === 40),
    [{ tool: 'a' }, { tool: 'new' }],
  );
  // A notification has no answer.
  bench.client({ method: 'tools/call', params: { name: 'a' } });
  t.deepEqual([bench.asked(), bench.heard()], [[], []]);
});

test('what is accepted counts for the next call and the next list', async (t) => {
  const bench = new Bench(t);
  await bench.pin(tool('a'));
  const changed = tool('a', 'other');
  bench.server({ method: 'notifications/tools/list_changed' });
  bench.call(5, 'a');
  await bench.listed(changed);
  t.like(bench.heard(), [{ method: 'notifications/tools/list_changed' }, { id: 5, error: { code: -32602 } }]);
  await bench.file.close();
  await acceptPins(new PinFile(bench.file.path, bench.deps), []);
  bench.call(6, 'a');
  await bench.listed(changed);
  t.like(bench.asked(), [{ id: 6 }]);
  bench.client({ id: 7, method: 'tools/list' });
  bench.server({ id: 7, result: { tools: [changed] } });
  t.deepEqual(namesOf(bench.heard()[0]), ['a']);
});

test('after a change is announced, or some time, the next call asks again', async (t) => {
  const bench = new Bench(t);
  await bench.pin(tool('a'));
  bench.call(2, 'a');
  t.like(bench.asked(), [{ id: 2 }], 'the tools were listed to be pinned');
  bench.server({ method: 'notifications/tools/list_changed' });
  bench.call(3, 'a');
  await bench.listed(tool('a'));
  t.like(bench.asked(), [{ id: 3 }]);
  bench.clock.advance(TRUST_MS);
  bench.call(4, 'a');
  await bench.listed(tool('a', 'changed in silence'));
  t.deepEqual(bench.asked(), []);
  t.like(bench.heard(), [{ method: 'notifications/tools/list_changed' }, { id: 4, error: { code: -32602 } }]);
});

test('a change that a client lists counts for calls at once', async (t) => {
  const bench = new Bench(t);
  await bench.pin(tool('a'));
  bench.client({ id: 2, method: 'tools/list' });
  bench.server({ id: 2, result: { tools: [tool('a', 'other')] } });
  t.deepEqual(namesOf(bench.heard()[0]), []);
  bench.asked();
  bench.call(3, 'a');
  t.like(bench.heard(), [{ id: 3, error: { code: -32602 } }]);
  bench.client({ id: 4, method: 'tools/list' });
  bench.server({ id: 4, result: { tools: [tool('a')] } });
  t.deepEqual(namesOf(bench.heard()[0]), ['a']);
  bench.asked();
  bench.call(5, 'a');
  t.like(bench.asked(), [{ id: 5 }]);
});

test('a server that announces a change while it lists its tools is asked again, but not for ever', async (t) => {
  const bench = new Bench(t);
  await bench.pin(tool('a'));
  bench.connect();
  bench.call(5, 'a');
  for (let round = 1; round <= 3; round++) {
    const [own, ...others] = bench.asked();
    t.deepEqual(others, []);
    bench.server({ method: 'notifications/tools/list_changed' });
    bench.server({ id: own?.id, result: { tools: [tool('a')] } });
  }
  await settled();
  t.like(bench.asked(), [{ id: 5 }]);
  bench.call(6, 'a');
  t.like(bench.asked(), [{ method: 'tools/list' }]);
});

for (const [what, fail] of [
  [
    'refuses to list its tools',
    (bench: Bench, id: unknown) => bench.server({ id, error: { code: 1, message: 'no\u001b' } }),
  ],
  ['sends what is no list', (bench: Bench, id: unknown) => bench.server({ id, result: { tools: {} } })],
  [
    'cannot be read',
    (bench: Bench, id: unknown) => {
      const error = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
      bench.connection.server.serverFault({ error, kind: 'result', id: String(id) });
    },
  ],
  ['does not answer', (bench: Bench) => bench.clock.advance(LIST_TIMEOUT_MS)],
] as const) {
  test(`no call goes on if the server ${what}, and the next one tries again`, async (t) => {
    const bench = new Bench(t);
    await bench.pin(tool('a'));
    bench.connect();
    bench.call(5, 'a');
    bench.client({ id: 6, method: 'ping' });
    const [own] = bench.asked();
    fail(bench, own?.id);
    await settled();
    const sent = bench.asked().filter(({ method }) => method !== 'notifications/cancelled');
    t.like(sent, [{ id: 6, method: 'ping' }]);
    const [refused, ...others] = bench.heard();
    t.like(refused, { id: 5, error: { code: -32603, data: { bridge: { reason: 'ERR_PIN_UNSURE' } } } });
    t.deepEqual(others, []);
    bench.server({ id: own?.id, result: { tools: [] } });
    t.deepEqual(bench.heard(), [], 'a late answer is for nobody');
    bench.call(7, 'a');
    await bench.listed(tool('a'));
    t.like(bench.asked(), [{ id: 7 }]);
  });
}

test('a list that cannot be pinned is not shown', async (t) => {
  const bench = new Bench(t);
  bench.client({ id: 1, method: 'tools/list' });
  const [own] = bench.asked();
  bench.server({ id: own?.id, error: { code: -32601, message: 'no tools' } });
  await settled();
  bench.server({ id: 1, error: { code: -32601, message: 'no tools' } });
  t.like(bench.heard(), [{ id: 1, error: { code: -32601, message: 'no tools' } }], 'the error of the server');
  t.false(bench.file.pins.has('one'));
  bench.client({ id: 2, method: 'tools/list' });
  bench.server({ id: bench.asked().at(-1)?.id, error: { code: 1, message: 'not now' } });
  await settled();
  bench.server({ id: 2, result: { tools: [tool('a')] } });
  t.like(bench.heard(), [{ id: 2, error: { data: { bridge: { reason: 'ERR_PIN_UNSURE' } } } }]);
});

test('a list that cannot be compared is not shown', async (t) => {
  const bench = new Bench(t);
  await bench.pin(tool('a'));
  bench.client({ id: 2, method: 'tools/list' });
  bench.server({ id: 2, result: { tools: { a: tool('a', 'other') } } });
  t.like(bench.heard(), [{ id: 2, error: { data: { bridge: { reason: 'ERR_PIN_UNSURE' } } } }]);
});

test('tools that could be read in several ways are neither pinned nor shown nor called', async (t) => {
  const bench = new Bench(t);
  const unclear = { ...tool('u'), Description: 'other' };
  await bench.pin(tool('a'), unclear, tool('twice'), tool('twice', 'other'));
  t.deepEqual([...(bench.file.pins.get('one')?.pinned.keys() ?? [])], ['a']);
  bench.call(2, 'u');
  t.regex(bench.heard()[0]?.error?.message ?? '', /^The tool "u" is not called: its definition can be read in several/);
  bench.client({ id: 3, method: 'tools/list' });
  bench.server({ id: 3, result: { tools: [tool('a'), unclear, tool('twice'), tool('twice', 'other')] } });
  t.deepEqual(namesOf(bench.heard()[0]), ['a']);
  for (const params of [{ name: 7 }, {}, { Name: 'a' }]) {
    bench.client({ id: 4, method: 'tools/call', params });
    t.like(bench.heard(), [{ id: 4, error: { code: -32602 } }]);
  }
  t.deepEqual(
    bench.asked().filter(({ method }) => method === 'tools/call'),
    [],
  );
});

test('in the modern era, the request for the tools carries what the call does, but asks for no logs', async (t) => {
  const bench = new Bench(t);
  const meta = { ...ENVELOPE, 'io.modelcontextprotocol/logLevel': 'debug', progressToken: 1 };
  bench.call(1, 'a', meta);
  const [own] = bench.connection.sent;
  t.deepEqual((own?.frame.json() as Message).params, { _meta: ENVELOPE });
  await bench.listed(tool('a'));
  t.deepEqual(Object.keys(bench.file.pins.get('one')?.pinned.get('a') ?? {}), ['modern']);
  t.like(bench.asked(), [{ id: 1, method: 'tools/call' }]);
});

test('what the server says on the way of the list is for the client in general', async (t) => {
  const bench = new Bench(t);
  bench.call(1, 'a');
  const [own] = bench.connection.sent;
  bench.connection.server.fromServer(serverFrame({ method: 'notifications/x' }), own?.call);
  t.deepEqual(
    bench.listener.received.map(({ call }) => call),
    [undefined],
  );
});

test('when the connection ends while a call waits, nothing more happens', async (t) => {
  const bench = new Bench(t);
  bench.call(1, 'a');
  bench.asked();
  bench.connection.server.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', 'gone'));
  t.is(bench.listener.closedWith.length, 1);
  t.is(bench.clock.pendingTimers, 0);
  t.deepEqual([bench.asked(), bench.heard()], [[], []]);
});

test('what waits is limited, and pauses its sender before', async (t) => {
  const bench = new Bench(t);
  for (let id = 1; id <= 1024; id++) t.is(bench.call(id, 'a'), id < 64);
  bench.call(2000, 'a');
  bench.client({ method: 'notifications/x' });
  t.like(bench.heard(), [{ id: 2000, error: { data: { bridge: { reason: 'ERR_SESSION_BUSY' } } } }]);
  t.is(bench.listener.drains, 0);
  await bench.listed(tool('a'));
  t.is(bench.asked().length, 1024);
  t.is(bench.listener.drains, 1);
  bench.server({ method: 'notifications/tools/list_changed' });
  t.true(bench.call(3000, 'a'));
  await bench.listed(tool('a'));
  t.is(bench.listener.drains, 1);
});

test('a tool that waits at several servers is accepted by the name of its server', async (t) => {
  const bench = new Bench(t);
  await bench.pin(tool('a'));
  await bench.file.change(
    (pins) => new Map([...pins, ['two', { pinned: new Map(), waiting: new Map([['a', { legacy: {} }]]) }]]),
  );
  bench.call(1, 'a');
  await bench.listed(tool('a', 'other'));
  t.regex(bench.heard()[0]?.error?.message ?? '', / --accept \S+ one\/a$/);
});
