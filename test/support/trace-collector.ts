/** A collector of OpenTelemetry: what it is sent it decodes as the official schema says, and keeps. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import type { ExecutionContext } from 'ava';
import { waitFor } from './wait-for.ts';

/** Later versions of the package can only write. */
const { opentelemetry } = createRequire(import.meta.url)('otlp-decoding/build/src/generated/root.js');
const ExportRequest = opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;

export type Attributes = Readonly<Record<string, unknown>>;

export interface ReceivedSpan {
  readonly name: string;
  readonly kind: 'server' | 'client' | 'other';
  readonly traceId: string;
  readonly spanId: string;
  /** Empty: it has none. */
  readonly parentSpanId: string;
  readonly traceState: string;
  readonly attributes: Attributes;
  /** 2: it failed. */
  readonly status: number;
  readonly statusMessage: string;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly durationMs: number;
  readonly resource: Attributes;
}

/** What a collector does in place of its work. */
export type Misbehavior = (request: IncomingMessage, response: ServerResponse) => void;

export interface TraceCollector {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  readonly requests: readonly { readonly path: string; readonly headers: IncomingHttpHeaders }[];
  /** All bytes that came, uncompressed. */
  readonly received: readonly Buffer[];
  misbehave(how: Misbehavior | undefined): void;
  /** The two spans of the operation of this name, once both are there. */
  pair(name: string, traceId?: string): Promise<{ readonly server: ReceivedSpan; readonly client: ReceivedSpan }>;
  /** Variables that make mcp-portage send its spans here, at once. */
  readonly env: Readonly<Record<string, string>>;
}

/** Listens on 127.0.0.1 until the test ends. */
export async function startCollector(t: ExecutionContext): Promise<TraceCollector> {
  const spans: ReceivedSpan[] = [];
  const requests: { path: string; headers: IncomingHttpHeaders }[] = [];
  const received: Buffer[] = [];
  let misbehavior: Misbehavior | undefined;
  const server = createServer(async (request, response) => {
    response.on('error', () => undefined);
    requests.push({ path: request.url ?? '', headers: request.headers });
    if (misbehavior !== undefined) return misbehavior(request, response);
    const body = await buffer(request);
    const bytes = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
    received.push(bytes);
    const isJson = request.headers['content-type'] === 'application/json';
    spans.push(...spansOf(isJson ? fromJson(bytes) : fromProtobuf(bytes)));
    // An empty message of either format says that all were taken.
    response.writeHead(200, { 'Content-Type': request.headers['content-type'] }).end(isJson ? '{}' : '');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const find = (name: string, traceId: string | undefined, kind: ReceivedSpan['kind']) =>
    spans.find((span) => span.name === name && span.kind === kind && (traceId ?? span.traceId) === span.traceId);
  return {
    url,
    spans,
    requests,
    received,
    misbehave: (how) => {
      misbehavior = how;
    },
    pair: (name, traceId) =>
      waitFor(
        () => {
          const [server, client] = [find(name, traceId, 'server'), find(name, traceId, 'client')];
          return server !== undefined && client !== undefined && { server, client };
        },
        {
          message: () =>
            `the spans of ${name}; there are ${JSON.stringify(spans.map(({ name, kind }) => [name, kind]))}`,
        },
      ),
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: '20' },
  };
}

interface AnyValue {
  readonly [kind: string]: unknown;
}

interface WireSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly attributes?: readonly { readonly key: string; readonly value: AnyValue }[];
  readonly status?: { readonly code?: number; readonly message?: string };
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}

interface WireRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: WireSpan['attributes'] };
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}

function fromJson(bytes: Buffer): WireRequest {
  return JSON.parse(bytes.toString());
}

/** In the form that JSON has, where ids are hexadecimal. */
function fromProtobuf(bytes: Buffer): WireRequest {
  const decoded = ExportRequest.toObject(ExportRequest.decode(bytes), { longs: String, bytes: Buffer });
  return JSON.parse(
    JSON.stringify(decoded, (_key, value) =>
      value?.type === 'Buffer' ? Buffer.from(value.data).toString('hex') : value,
    ),
  );
}

const KINDS: Readonly<Record<number, ReceivedSpan['kind']>> = { 2: 'server', 3: 'client' };

function spansOf({ resourceSpans }: WireRequest): readonly ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans.map((span) => readSpan(span, attributesOf(resource.attributes)))),
  );
}

function readSpan(span: WireSpan, resource: Attributes): ReceivedSpan {
  const { name, kind, traceId, spanId, parentSpanId = '', traceState = '', status, links = [] } = span;
  const nanoseconds = BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano);
  return {
    name,
    kind: KINDS[kind] ?? 'other',
    traceId,
    spanId,
    parentSpanId,
    traceState,
    attributes: attributesOf(span.attributes),
    status: status?.code ?? 0,
    statusMessage: status?.message ?? '',
    links: links.map((link) => ({ traceId: link.traceId, spanId: link.spanId })),
    durationMs: Number(nanoseconds) / 1e6,
    resource,
  };
}

function attributesOf(attributes: WireSpan['attributes'] = []): Attributes {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
