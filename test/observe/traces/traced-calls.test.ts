/** What a collector gets of calls through the built program, and what the servers see, whatever both sides speak. */
import test, { type ExecutionContext } from 'ava';
import { CLIENTS, type ClientName } from '../../matrix/clients.ts';
import { startFront } from '../../matrix/fronts.ts';
import type { MatrixClient } from '../../matrix/matrix-client.ts';
import { startCollector, type TraceCollector } from '../../support/trace-collector.ts';
import { SERVERS, seenBy } from './traced-servers.ts';

const NAMES = [
  'stdio',
  'httpSse',
  'streamable',
  'webSocket',
  'stream',
  'modernStdio',
  'modernHttp',
] as const satisfies readonly ClientName[];
/** What each is called, and what it is carried by. */
const TRANSPORTS = {
  stdio: ['stdio', undefined],
  httpSse: ['http-sse', 'http'],
  streamable: ['streamable-http', 'http'],
  webSocket: ['websocket', 'websocket'],
  stream: ['byte-stream', undefined],
} as const;

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const CALLER = {
  traceparent: `00-${TRACE_ID}-b7ad6b7169203331-01`,
  tracestate: 'vendor=here,other=there',
  baggage: 'user=ada,plan=free',
};

interface TracedWorld {
  readonly collector: TraceCollector;
  readonly client: MatrixClient;
}

async function connect(t: ExecutionContext, name: ClientName, target: readonly string[]): Promise<TracedWorld> {
  const collector = await startCollector(t);
  const front = await startFront(name, target, { env: collector.env });
  t.teardown(() => front.stop());
  const client = await front.connect({ name });
  t.teardown(() => client.close());
  return { collector, client };
}

for (const name of NAMES) {
  const { title, era, over } = CLIENTS[name];
  for (const [server, { start, transport, revision }] of Object.entries(SERVERS)) {
    test.serial(
      `${title} to ${server}: both spans continue the caller's trace, and the server continues theirs`,
      async (t) => {
        const { client, collector } = await connect(t, name, await start(t));
        const { text } = await client.callTool('see', {}, { meta: { ...CALLER, 'example.com/own': 1 } });
        const { meta, headers } = seenBy(text);
        const spans = await collector.pair('tools/call see', TRACE_ID);
        const passed = { ...CALLER, traceparent: `00-${TRACE_ID}-${spans.client.spanId}-01` };
        t.like(meta, { ...passed, 'example.com/own': 1 });
        if (headers !== null) t.like(headers, passed);
        t.is(spans.server.parentSpanId, 'b7ad6b7169203331');
        t.is(spans.client.parentSpanId, spans.server.spanId);
        t.is(spans.server.traceState, CALLER.tracestate);
        const common = {
          'mcp.method.name': 'tools/call',
          'gen_ai.tool.name': 'see',
          'gen_ai.operation.name': 'execute_tool',
        };
        const asked = over === 'stdio' ? 'pipe' : 'tcp';
        t.like(spans.server.attributes, {
          ...common,
          'mcp.protocol.version': era === 'modern' ? '2026-07-28' : '2025-11-25',
          'network.transport': asked,
          'mcp_portage.transport': TRANSPORTS[over][0],
        });
        t.is(spans.server.attributes['network.protocol.name'], TRANSPORTS[over][1]);
        t.regex(String(spans.server.attributes['jsonrpc.request.id']), /^\w+$/);
        t.like(spans.client.attributes, {
          ...common,
          'network.transport': transport === 'stdio' ? 'pipe' : 'tcp',
          'mcp_portage.transport': transport,
        });
        // Of a legacy server that is asked by a translator nobody tells which revision it has chosen.
        const known = era === 'modern' && revision !== '2026-07-28' ? undefined : revision;
        t.is(spans.client.attributes['mcp.protocol.version'], known);
        t.deepEqual([spans.server.status, spans.client.status], [0, 0]);
      },
    );
  }
}
