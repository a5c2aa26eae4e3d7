/** How calls end, and where their callers say which trace they are part of, by the built program. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import test, { type ExecutionContext } from 'ava';
import { modernCall, postModern } from '../../downstream/streamable-stateless/modern-posts.ts';
import { type Bridge, startBridge } from '../../support/bridge.ts';
import { connectClient, connectStreamable } from '../../support/sdk-client.ts';
import { startCollector, type TraceCollector } from '../../support/trace-collector.ts';
import { waitFor } from '../../support/wait-for.ts';
import { LEGACY_COMMAND, MODERN_COMMAND, type Seen, seenBy } from './traced-servers.ts';

type Environment = Readonly<Record<string, string>>;

interface TracingBridge {
  readonly bridge: Bridge;
  readonly collector: TraceCollector;
  readonly port: { readonly port: number };
}

const MINE = '0af7651916cd43dd8448eb211c80319c';
const THEIRS = '4bf92f3577b34da6a3ce929d0e0e4736';
const IN_META = `00-${MINE}-b7ad6b7169203331-01`;
const IN_HEADER = `00-${THEIRS}-00f067aa0ba902b7-01`;

async function start(
  t: ExecutionContext,
  {
    args = [],
    server = LEGACY_COMMAND,
    env = {},
  }: { args?: readonly string[]; server?: readonly string[]; env?: Environment } = {},
): Promise<TracingBridge> {
  const collector = await startCollector(t);
  const bridge = await startBridge([...args, ...server], { env: { ...collector.env, ...env } });
  t.teardown(() => bridge.stop());
  return { bridge, collector, port: { port: Number(bridge.url.port) } };
}

async function openClient(t: ExecutionContext, { bridge }: TracingBridge, headers: Environment = {}) {
  const { client, close } = await connectStreamable(bridge.url, { headers });
  t.teardown(close);
  return client;
}

async function see(t: ExecutionContext, world: TracingBridge, meta?: object, headers: Environment = {}): Promise<Seen> {
  const client = await openClient(t, world, headers);
  const result = await client.callTool({ name: 'see', arguments: {}, ...(meta && { _meta: { ...meta } }) });
  return seenOf(result);
}

const seenOf = (result: unknown): Seen =>
  seenBy((result as { readonly content: readonly { readonly text: string }[] }).content[0]?.text ?? '');

// ---- How calls end

test.serial('a tool that says it failed is an error of both spans', async (t) => {
  for (const [server, ask] of [
    [LEGACY_COMMAND, async (world: TracingBridge) => (await openClient(t, world)).callTool({ name: 'fail' })],
    [MODERN_COMMAND, ({ port }: TracingBridge) => postModern(port, modernCall(1, 'fail'))],
  ] as const) {
    const world = await start(t, { server });
    await ask(world);
    const spans = await world.collector.pair('tools/call fail');
    for (const { status, attributes } of Object.values(spans)) {
      t.is(status, 2);
      t.is(attributes['error.type'], 'tool_error');
      t.is(attributes['rpc.response.status_code'], undefined);
    }
  }
});

test.serial('an error of the server is told by its code, and never by its words', async (t) => {
  const world = await start(t);
  const client = await openClient(t, world);
  await t.throwsAsync(client.callTool({ name: 'refuse', arguments: { password: 'hunter2' } }));
  const spans = await world.collector.pair('tools/call refuse');
  for (const span of Object.values(spans)) {
    t.is(span.status, 2);
    t.is(span.statusMessage, '');
    t.like(span.attributes, { 'error.type': '-32042', 'rpc.response.status_code': '-32042' });
  }
  const sent = Buffer.concat([...world.collector.received]).toString('latin1');
  t.false(/secret of the server|hunter2/.test(sent));
  t.false(sent.includes('session'), 'no ids of sessions');
});

test.serial('a call that its client withdraws, and one whose server exits, end as errors', async (t) => {
  const world = await start(t);
  const client = await openClient(t, world);
  const leaving = new AbortController();
  const waiting = client.callTool({ name: 'wait' }, undefined, { signal: leaving.signal });
  await waitFor(async () => (await statusOf(world)).includes('wait'));
  leaving.abort();
  await t.throwsAsync(waiting);
  const canceled = await world.collector.pair('tools/call wait');
  t.is(canceled.client.attributes['error.type'], 'cancelled');
  await t.throwsAsync(client.callTool({ name: 'exit' }));
  const exited = await world.collector.pair('tools/call exit');
  t.is(exited.server.attributes['error.type'], 'ERR_UPSTREAM_EXITED');
  t.is(exited.client.status, 2);
});

async function statusOf({ bridge }: TracingBridge): Promise<string> {
  return await (await fetch(new URL('/status.json', bridge.url))).text();
}

test.serial('a modern client that leaves has canceled its call', async (t) => {
  const world = await start(t, { server: MODERN_COMMAND });
  const leaving = new AbortController();
  const waiting = postModern(world.port, modernCall(1, 'wait'), {}, leaving.signal);
  await waitFor(async () => (await statusOf(world)).includes('wait'));
  leaving.abort();
  await t.throwsAsync(waiting);
  const { server } = await world.collector.pair('tools/call wait');
  t.is(server.attributes['error.type'], 'cancelled');
});

test.serial('a refused call has the span of a server alone', async (t) => {
  const world = await start(t, { args: ['--max-in-flight', '1'] });
  const client = await openClient(t, world);
  const leaving = new AbortController();
  const waiting = client.callTool({ name: 'wait' }, undefined, { signal: leaving.signal });
  await waitFor(async () => (await statusOf(world)).includes('wait'));
  await t.throwsAsync(client.listTools());
  const refused = await waitFor(() => world.collector.spans.find(({ name }) => name === 'tools/list'));
  t.like(refused, { kind: 'server', status: 2 });
  t.is(refused.attributes['error.type'], 'ERR_SESSION_BUSY');
  leaving.abort();
  await t.throwsAsync(waiting);
  await world.collector.pair('tools/call wait');
  t.is(world.collector.spans.filter(({ name }) => name === 'tools/list').length, 1);
});

test.serial('a prompt is named, a resource is not, and the handshake is an operation as well', async (t) => {
  const world = await start(t);
  const client = await openClient(t, world);
  await client.getPrompt({ name: 'greeting' });
  await t.throwsAsync(client.readResource({ uri: 'file:///etc/secret' }));
  const prompt = await world.collector.pair('prompts/get greeting');
  t.is(prompt.client.attributes['gen_ai.prompt.name'], 'greeting');
  await world.collector.pair('resources/read');
  await world.collector.pair('initialize');
  t.false(Buffer.concat([...world.collector.received]).includes('/etc/secret'));
});

// ---- The trace of the caller

test.serial('without a caller that traces a call begins a trace, which the server goes on with', async (t) => {
  const world = await start(t);
  const { meta } = await see(t, world);
  const { server, client } = await world.collector.pair('tools/call see');
  t.is(server.parentSpanId, '');
  t.deepEqual(meta, { traceparent: `00-${client.traceId}-${client.spanId}-01` });
});

test.serial('what only the HTTP request says is continued, in either era and over HTTP+SSE', async (t) => {
  const headers = { traceparent: IN_HEADER, baggage: 'user=ada' };
  const legacy = await start(t);
  const seen = await see(t, legacy, undefined, headers);
  const spans = await legacy.collector.pair('tools/call see', THEIRS);
  t.is(spans.server.parentSpanId, '00f067aa0ba902b7');
  t.deepEqual(seen.meta, { traceparent: `00-${THEIRS}-${spans.client.spanId}-01`, baggage: 'user=ada' });

  const sse = new SSEClientTransport(legacy.bridge.sseUrl, { requestInit: { headers } });
  const { client, close } = await connectClient(sse);
  await client.callTool({ name: 'fail' });
  t.is((await legacy.collector.pair('tools/call fail', THEIRS)).server.parentSpanId, '00f067aa0ba902b7');
  await close();

  const modern = await start(t, { server: MODERN_COMMAND });
  await postModern(modern.port, modernCall(1, 'see'), headers);
  t.is((await modern.collector.pair('tools/call see', THEIRS)).server.parentSpanId, '00f067aa0ba902b7');
});

test.serial('what the message says counts, and what its HTTP request says is linked', async (t) => {
  const world = await start(t);
  await see(t, world, { traceparent: IN_META }, { traceparent: IN_HEADER });
  const { server } = await world.collector.pair('tools/call see', MINE);
  t.is(server.parentSpanId, 'b7ad6b7169203331');
  t.deepEqual(server.links, [{ traceId: THEIRS, spanId: '00f067aa0ba902b7' }]);
});

test.serial('what is malformed or too long counts as nothing, and goes no further', async (t) => {
  const world = await start(t);
  const client = await openClient(t, world);
  const malformed = [
    'nonsense',
    `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
    `ff-${MINE}-b7ad6b7169203331-01`,
    `${IN_META}${'x'.repeat(10_000)}`,
    7,
    { deep: [] },
  ];
  for (const traceparent of malformed) {
    const _meta = { traceparent, tracestate: 'a=1', baggage: `a=${'b'.repeat(9000)}`, 'example.com/own': 1 };
    const { meta } = seenOf(await client.callTool({ name: 'see', _meta }));
    t.deepEqual(Object.keys(meta ?? {}).sort(), ['example.com/own', 'traceparent']);
    t.regex(String(meta?.traceparent), /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  }
  const _meta = { traceparent: IN_META, tracestate: `a=${'b'.repeat(2000)}` };
  const { meta } = seenOf(await client.callTool({ name: 'see', _meta }));
  t.is(meta?.tracestate, undefined);
});

test.serial('the audit file names the trace of each call', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'portage-traces-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'audit.log');
  const world = await start(t, { args: ['--audit-file', file] });
  await see(t, world, { traceparent: IN_META });
  const line = await waitFor(async () =>
    (await readFile(file, 'utf8').catch(() => '')).split('\n').find((text) => text.includes('"see"')),
  );
  t.is(JSON.parse(line).traceId, MINE);
});

// ---- Sampling

test.serial('a call that is not sampled sends no spans, and tells the server so', async (t) => {
  const world = await start(t, { env: { OTEL_TRACES_SAMPLER: 'parentbased_always_off' } });
  const client = await openClient(t, world);
  const unsampled = seenOf(await client.callTool({ name: 'see' }));
  t.regex(String(unsampled.meta?.traceparent), /^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  // A caller that samples is followed.
  await client.callTool({ name: 'fail', _meta: { traceparent: IN_META } });
  await world.collector.pair('tools/call fail', MINE);
  t.deepEqual(
    world.collector.spans.map(({ name }) => name),
    ['tools/call fail', 'tools/call fail'],
  );
});

test.serial('a share of all calls can be sampled, whatever their callers do', async (t) => {
  const world = await start(t, { env: { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' } });
  const { meta } = await see(t, world, { traceparent: IN_META });
  t.regex(String(meta?.traceparent), new RegExp(`^00-${MINE}-[0-9a-f]{16}-00$`));
});

// ---- Off

for (const [how, env] of Object.entries<Environment>({
  OTEL_SDK_DISABLED: { OTEL_SDK_DISABLED: 'true' },
  'an exporter called none': { OTEL_TRACES_EXPORTER: 'none' },
  'no endpoint': { OTEL_EXPORTER_OTLP_ENDPOINT: '' },
})) {
  test.serial(`with ${how} nothing is traced, and _meta passes as it is`, async (t) => {
    const world = await start(t, { env });
    const mine = { traceparent: 'as it is', 'example.com/own': 1 };
    t.deepEqual((await see(t, world, mine, { traceparent: IN_HEADER })).meta, mine);
    await world.bridge.stop();
    t.deepEqual(world.collector.requests, []);
  });
}

test.serial('grpc is refused with what is supported, and the bridge starts all the same', async (t) => {
  const world = await start(t, { env: { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' } });
  t.is((await see(t, world)).meta, null);
  const warnings = world.bridge.logs.filter(({ msg = '' }) => msg.includes('OTEL_'));
  t.is(warnings.length, 1);
  t.regex(
    warnings[0]?.msg ?? '',
    /OTEL_EXPORTER_OTLP_PROTOCOL names grpc; http\/protobuf and http\/json are supported/,
  );
});
