/** How spans reach a collector, and what happens with one that does not do its work, by the built program. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { startConnect } from '../../cli/stdio-program.ts';
import { type Bridge, type LogLine, startBridge } from '../../support/bridge.ts';
import { ownPort } from '../../support/own-port.ts';
import { connectStreamable } from '../../support/sdk-client.ts';
import { type Misbehavior, startCollector } from '../../support/trace-collector.ts';
import { waitFor } from '../../support/wait-for.ts';
import { LEGACY_COMMAND } from './traced-servers.ts';

type Environment = Readonly<Record<string, string>>;

async function start(t: ExecutionContext, env: Environment): Promise<Bridge> {
  const bridge = await startBridge(LEGACY_COMMAND, { env });
  t.teardown(() => bridge.stop());
  return bridge;
}

async function call(t: ExecutionContext, { url }: Bridge, count = 1): Promise<void> {
  const { client, close } = await connectStreamable(url);
  t.teardown(close);
  for (let index = 0; index < count; index += 1) await client.callTool({ name: 'see' });
}

test.serial('spans travel as protobuf to /v1/traces, by a resource that the environment describes', async (t) => {
  const collector = await startCollector(t);
  const bridge = await start(t, {
    ...collector.env,
    OTEL_SERVICE_NAME: 'tools-of-ada',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=lab,service.version=mine',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=a%20b,authorization=Bearer%20t0ken',
  });
  await call(t, bridge);
  const { server } = await collector.pair('tools/call see');
  const [request] = collector.requests;
  t.is(request?.path, '/v1/traces');
  t.like(request?.headers, {
    'content-type': 'application/x-protobuf',
    'x-tenant': 'a b',
    authorization: 'Bearer t0ken',
  });
  t.like(server.resource, {
    'service.name': 'tools-of-ada',
    'service.version': 'mine',
    'deployment.environment.name': 'lab',
    'telemetry.sdk.language': 'nodejs',
  });
  t.deepEqual(
    Object.keys(server.resource).filter((key) => /process|command|host/.test(key)),
    [],
    'a command line may hold secrets',
  );
  t.false(JSON.stringify(bridge.logs).includes('t0ken'));
});

test.serial('it is called mcp-portage where nothing else is said', async (t) => {
  const collector = await startCollector(t);
  await call(t, await start(t, collector.env));
  t.is((await collector.pair('tools/call see')).server.resource['service.name'], 'mcp-portage');
});

test.serial('the endpoint and protocol for traces alone come first, and JSON can be compressed', async (t) => {
  const collector = await startCollector(t);
  const bridge = await start(t, {
    OTEL_BSP_SCHEDULE_DELAY: '20',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own/path`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
  });
  await call(t, bridge);
  await collector.pair('tools/call see');
  t.is(collector.requests[0]?.path, '/own/path');
  t.like(collector.requests[0]?.headers, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
});

test.serial('what waits is delivered when a bridge is told to end', async (t) => {
  const collector = await startCollector(t);
  const bridge = await start(t, { ...collector.env, OTEL_BSP_SCHEDULE_DELAY: '3600000' });
  await call(t, bridge);
  t.deepEqual(collector.requests, []);
  t.is((await bridge.stop()).code, 0);
  await collector.pair('tools/call see');
});

test.serial('what waits is delivered when the client on a pipe has left', async (t) => {
  const collector = await startCollector(t);
  const program = startConnect(t, LEGACY_COMMAND, {
    env: { ...collector.env, OTEL_BSP_SCHEDULE_DELAY: '3600000' },
  });
  await program.initialize();
  program.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'see' } });
  await program.answerTo(1);
  program.child.stdin.end();
  t.is((await program.exited).code, 0);
  await collector.pair('tools/call see');
});

const GARBAGE = Buffer.from('\u0000\u0007<html>nonsense</html>'.repeat(50));

const COLLECTORS: Readonly<Record<string, Misbehavior>> = {
  'never answers': () => undefined,
  'cuts the connection': (request) => void request.socket.destroy(),
  'answers with 503': (_, response) => void response.writeHead(503).end(),
  'refuses every span': (_, response) => void response.writeHead(401, 'who are you').end('a word of its own'),
  'answers nonsense': (_, response) => void response.writeHead(200).end(GARBAGE),
  'answers without end': (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(200);
    const more = (): void => {
      while (!response.destroyed && response.write(GARBAGE)) {
        // Until the other side reads no more.
      }
      response.once('drain', more);
    };
    more();
  },
};

const complaints = (logs: readonly LogLine[]): readonly LogLine[] =>
  logs.filter(({ msg = '' }) => msg.startsWith('traces: '));

for (const [what, misbehavior] of Object.entries(COLLECTORS)) {
  test.serial(`a collector that ${what} costs its spans, one line, and no call`, async (t) => {
    const collector = await startCollector(t);
    collector.misbehave(misbehavior);
    const bridge = await start(t, {
      ...collector.env,
      OTEL_BSP_MAX_QUEUE_SIZE: '8',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '4',
      OTEL_EXPORTER_OTLP_TIMEOUT: '200',
    });
    await call(t, bridge, 50);
    await waitFor(() => complaints(bridge.logs)[0], { message: 'a line about it' });
    await call(t, bridge, 20);
    const stopping = Date.now();
    t.is((await bridge.stop()).code, 0);
    t.true(Date.now() - stopping < 20_000, 'it is not waited for');
    const lines = complaints(bridge.logs);
    t.is(lines.length, 1);
    t.false(JSON.stringify(lines).includes('a word of its own'));
  });
}

test.serial('with no collector at all calls go on, and the end does not wait for it', async (t) => {
  const bridge = await start(t, {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await ownPort()}`,
    OTEL_BSP_SCHEDULE_DELAY: '20',
    OTEL_EXPORTER_OTLP_TIMEOUT: '500',
  });
  await call(t, bridge, 20);
  const [line] = await waitFor(() => complaints(bridge.logs).length > 0 && complaints(bridge.logs));
  t.regex(line?.msg ?? '', /spans are lost: ECONNREFUSED/);
  t.is((await bridge.stop()).code, 0);
});

test.serial('a setting of the sampler that cannot be used is told at the start', async (t) => {
  const collector = await startCollector(t);
  const bridge = await start(t, { ...collector.env, OTEL_TRACES_SAMPLER: 'sometimes' });
  t.regex(complaints(bridge.logs)[0]?.msg ?? '', /OTEL_TRACES_SAMPLER value "sometimes" invalid/);
});
