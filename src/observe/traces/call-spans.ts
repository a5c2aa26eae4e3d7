/**
 * A call as two spans: that of the server which the bridge is to its client, and within it that of the client which it is
 * to the server. Names by the semantic conventions of OpenTelemetry for MCP. [opentelemetry.io/docs/specs/semconv/gen-ai/mcp]
 */
import {
  type Attributes,
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  type Link,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type Tracer as SpanMaker,
  SpanStatusCode,
  type TextMapPropagator,
  trace,
} from '@opentelemetry/api';
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import type { TraceContext } from '../../mcp/vocabulary/meta.ts';
import type { CallOutcome, Transport } from '../../relay/observer.ts';
import type { CallTrace, TracedEnding, TracedRequest, Tracer } from '../../relay/tracer.ts';

export type OnTracerFailed = (error: unknown) => void;

/** Characters of an id that a client chose. */
const MAX_ID_LENGTH = 256;

export class CallSpans implements Tracer {
  readonly #spans: SpanMaker;
  readonly #onFailed: OnTracerFailed;
  readonly #propagator: TextMapPropagator = new CompositePropagator({
    propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()],
  });

  constructor(spans: SpanMaker, onFailed: OnTracerFailed) {
    this.#spans = spans;
    this.#onFailed = onFailed;
  }

  begin(request: TracedRequest): CallTrace | undefined {
    try {
      return this.#begin(request);
    } catch (error) {
      this.#onFailed(error);
      return undefined;
    }
  }

  #begin(request: TracedRequest): CallTrace {
    const { parent, links } = this.#callerOf(request);
    const name = nameOf(request);
    const attributes = serverAttributes(request);
    const server = this.#spans.startSpan(name, { kind: SpanKind.SERVER, attributes, links }, parent);
    const context = trace.setSpan(parent, server);
    return new TwoSpans({ spans: this.#spans, propagator: this.#propagator, request, name, server, context });
  }

  /**
   * What a message says of its trace counts, and what its HTTP request says is linked where it says something else; it
   * counts where the message says nothing. Texts that are not well-formed say nothing. [SEP-414]
   */
  #callerOf({ inMessage, inHttp }: TracedRequest): { readonly parent: Context; readonly links: Link[] } {
    const message = this.#read(inMessage);
    const http = this.#read(inHttp);
    const [told, carried] = [trace.getSpanContext(message), trace.getSpanContext(http)];
    const baggage = propagation.getBaggage(message) ?? propagation.getBaggage(http);
    const caller = told === undefined ? http : message;
    const isOther = told !== undefined && carried !== undefined && told.spanId !== carried.spanId;
    return {
      parent: baggage === undefined ? caller : propagation.setBaggage(caller, baggage),
      links: isOther ? [{ context: carried }] : [],
    };
  }

  #read(context: TraceContext | undefined): Context {
    if (context === undefined) return ROOT_CONTEXT;
    return this.#propagator.extract(ROOT_CONTEXT, context, defaultTextMapGetter);
  }
}

interface BegunCall {
  readonly spans: SpanMaker;
  readonly propagator: TextMapPropagator;
  readonly request: TracedRequest;
  readonly name: string;
  /** The span of the server that the bridge is. */
  readonly server: Span;
  /** What lies within that span. */
  readonly context: Context;
}

class TwoSpans implements CallTrace {
  readonly traceId: string;
  readonly isRecorded: boolean;
  readonly #call: BegunCall;
  /** Undefined until the request has gone to the server; of one that is refused it stays so. */
  #client: Span | undefined;

  constructor(call: BegunCall) {
    this.#call = call;
    this.traceId = call.server.spanContext().traceId;
    this.isRecorded = call.server.isRecording();
  }

  sent(): TraceContext {
    const { spans, propagator, request, name, context } = this.#call;
    this.#client = spans.startSpan(name, { kind: SpanKind.CLIENT, attributes: commonAttributes(request) }, context);
    const carrier: Record<string, string> = {};
    propagator.inject(trace.setSpan(context, this.#client), carrier, defaultTextMapSetter);
    const { traceparent, tracestate, baggage } = carrier;
    // A list that was not accepted is left empty.
    return { traceparent, tracestate: tracestate || undefined, baggage: baggage || undefined };
  }

  ended(ending: TracedEnding): void {
    const failure = failureOf(ending);
    if (this.#client !== undefined) {
      const { server } = ending;
      if (server !== undefined) this.#client.setAttributes(sideAttributes(server));
      end(this.#client, failure);
    }
    end(this.#call.server, failure);
  }
}

function end(span: Span, failure: Attributes | undefined): void {
  if (failure !== undefined) {
    span.setAttributes(failure);
    // No text of the error: it may quote what was sent.
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end();
}

function nameOf({ method, tool, prompt }: TracedRequest): string {
  const target = tool ?? prompt;
  return target === undefined ? method : `${method} ${target}`;
}

/** What both spans say. Never arguments, results, addresses of resources, or ids of sessions. */
function commonAttributes({ client, method, tool, prompt }: TracedRequest): Attributes {
  return {
    'mcp.method.name': method,
    'mcp_portage.server': client.server,
    ...(tool !== undefined && { 'gen_ai.tool.name': tool, 'gen_ai.operation.name': 'execute_tool' }),
    ...(prompt !== undefined && { 'gen_ai.prompt.name': prompt }),
  };
}

/** The id is that of the client: the server may get another one. */
function serverAttributes(request: TracedRequest): Attributes {
  const id = String(request.id).slice(0, MAX_ID_LENGTH);
  return { ...commonAttributes(request), ...sideAttributes(request.client), 'jsonrpc.request.id': id };
}

/** What the transport is carried by; a pipe and a byte stream carry its lines themselves. */
const PROTOCOLS: Readonly<Partial<Record<Transport, string>>> = {
  'streamable-http': 'http',
  'http-sse': 'http',
  websocket: 'websocket',
};

/** How one of the two sides is spoken to. */
function sideAttributes(side: { readonly transport: Transport; readonly revision: string | undefined }): Attributes {
  const { transport, revision } = side;
  return {
    'mcp_portage.transport': transport,
    'network.transport': transport === 'stdio' ? 'pipe' : 'tcp',
    ...(PROTOCOLS[transport] !== undefined && { 'network.protocol.name': PROTOCOLS[transport] }),
    ...(revision !== undefined && { 'mcp.protocol.version': revision }),
  };
}

/** Undefined: it did not fail. */
function failureOf({ outcome, isToolError }: TracedEnding): Attributes | undefined {
  if (isToolError) return { 'error.type': 'tool_error' };
  return outcome.kind === 'answered' ? undefined : errorAttributes(outcome);
}

function errorAttributes(outcome: Exclude<CallOutcome, { kind: 'answered' }>): Attributes {
  switch (outcome.kind) {
    case 'cancelled':
      return { 'error.type': 'cancelled' };
    case 'failed':
      return { 'error.type': outcome.code };
    case 'error': {
      if (outcome.code === undefined) return { 'error.type': '_OTHER' };
      const code = String(outcome.code);
      return { 'error.type': code, 'rpc.response.status_code': code };
    }
  }
}
