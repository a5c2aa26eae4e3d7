/**
 * Records a call as two spans: a server span for the bridge's side toward the client, and within it a client span for
 * its side toward the server. Names follow the OpenTelemetry semantic conventions for MCP.
 * [opentelemetry.io/docs/specs/semconv/gen-ai/mcp]
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
import type { CallEnding, CallOutcome, Transport } from '../../relay/observer.ts';
import type { CallTrace, TracedRequest, Tracer } from '../../relay/tracer.ts';

export type OnTracerFailed = (error: unknown) => void;

/** Limit of a request id, which the client chose, in characters. */
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
   * Returns the parent of a call's span. The trace context in the message takes precedence; a different one in its HTTP
   * request becomes a link. Without one in the message, that of the HTTP request is the parent. A malformed context is
   * ignored. [SEP-414]
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
  /** The server span. */
  readonly server: Span;
  /** Context of that span, for spans within it. */
  readonly context: Context;
}

class TwoSpans implements CallTrace {
  readonly traceId: string;
  readonly #call: BegunCall;
  /** Client span; undefined until the request is sent to the server, and so for one that is rejected. */
  #client: Span | undefined;

  constructor(call: BegunCall) {
    this.#call = call;
    this.traceId = call.server.spanContext().traceId;
  }

  sent(): TraceContext {
    const { spans, propagator, request, name, context } = this.#call;
    this.#client = spans.startSpan(name, { kind: SpanKind.CLIENT, attributes: commonAttributes(request) }, context);
    const carrier: Record<string, string> = {};
    propagator.inject(trace.setSpan(context, this.#client), carrier, defaultTextMapSetter);
    const { traceparent, tracestate, baggage } = carrier;
    // A list that the propagator did not accept is left empty.
    return { traceparent, tracestate: tracestate || undefined, baggage: baggage || undefined };
  }

  ended(ending: CallEnding): void {
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
    // The error's text is left out, since it may quote what was sent.
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end();
}

function nameOf({ method, tool, prompt }: TracedRequest): string {
  const target = tool ?? prompt;
  return target === undefined ? method : `${method} ${target}`;
}

/** Returns the attributes of both spans. They never hold arguments, results, URIs of resources, or session ids. */
function commonAttributes({ client, method, tool, prompt }: TracedRequest): Attributes {
  return {
    'mcp.method.name': method,
    'mcp_portage.server': client.server,
    ...(tool !== undefined && { 'gen_ai.tool.name': tool, 'gen_ai.operation.name': 'execute_tool' }),
    ...(prompt !== undefined && { 'gen_ai.prompt.name': prompt }),
  };
}

/** Returns the attributes of the server span. The request id is the client's; the server may get another one. */
function serverAttributes(request: TracedRequest): Attributes {
  const id = String(request.id).slice(0, MAX_ID_LENGTH);
  return { ...commonAttributes(request), ...sideAttributes(request.client), 'jsonrpc.request.id': id };
}

/** Application protocol below each transport. A pipe and a byte stream have none. */
const PROTOCOLS: Readonly<Partial<Record<Transport, string>>> = {
  'streamable-http': 'http',
  'http-sse': 'http',
  websocket: 'websocket',
  grpc: 'http',
};

/** Returns the attributes of the protocol on one side. */
function sideAttributes(side: { readonly transport: Transport; readonly revision: string | undefined }): Attributes {
  const { transport, revision } = side;
  return {
    'mcp_portage.transport': transport,
    'network.transport': transport === 'stdio' ? 'pipe' : 'tcp',
    ...(PROTOCOLS[transport] !== undefined && { 'network.protocol.name': PROTOCOLS[transport] }),
    ...(revision !== undefined && { 'mcp.protocol.version': revision }),
  };
}

/** Returns the error attributes; undefined: the call did not fail. */
function failureOf({ outcome }: CallEnding): Attributes | undefined {
  return errorAttributes(outcome);
}

function errorAttributes(outcome: CallOutcome): Attributes | undefined {
  switch (outcome.kind) {
    case 'answered':
      return undefined;
    case 'tool-error':
      return { 'error.type': 'tool_error' };
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
