/** The interface that connects the bridge's calls with the traces of its clients and servers. */
import { readTraceContext } from '../mcp/classify/trace-context.ts';
import type { TraceContext } from '../mcp/vocabulary/meta.ts';
import { GET_PROMPT } from '../mcp/vocabulary/methods.ts';
import { readField } from '../mcp/vocabulary/payload.ts';
import type { Frame, JsonRpcId } from '../wire/frame.ts';
import { type CallEnding, MAX_OBSERVED_LENGTH, type ObservedClient, toolOf } from './observer.ts';

/** One request of a client, as far as a trace describes it. */
export interface TracedRequest {
  readonly client: ObservedClient;
  readonly id: JsonRpcId;
  readonly method: string;
  /** The name of the tool in a `tools/call`. */
  readonly tool: string | undefined;
  /** The name of the prompt in a `prompts/get`. */
  readonly prompt: string | undefined;
  /** Trace context in the message itself. It is not verified. */
  readonly inMessage: TraceContext | undefined;
  /** Trace context in the headers of the HTTP request that carried the message. */
  readonly inHttp: TraceContext | undefined;
}

/** An open call that is traced. */
export interface CallTrace {
  /**
   * In hexadecimal digits. Calls that are not sampled have one too, because other programs may record their part of the
   * call.
   */
  readonly traceId: string;
  /** Called at most once, when the request goes to the server. Returns the trace context for it. */
  sent(): TraceContext;
  /** Called once. */
  ended(ending: CallEnding): void;
}

export interface Tracer {
  /**
   * Called when a request was taken or refused. A refused request ends at once. May not throw. Returns undefined if the
   * call cannot be traced.
   */
  begin(request: TracedRequest): CallTrace | undefined;
}

export function describeForTrace(
  request: Frame,
  client: ObservedClient,
  inHttp: TraceContext | undefined,
): TracedRequest {
  return {
    client,
    id: request.id as JsonRpcId, // a request has one
    method: (request.method as string).slice(0, MAX_OBSERVED_LENGTH),
    tool: toolOf(request),
    prompt: promptOf(request),
    inMessage: readTraceContext(request),
    inHttp,
  };
}

function promptOf(request: Frame): string | undefined {
  const name = request.method === GET_PROMPT ? readField(request, 'name') : undefined;
  return typeof name === 'string' ? name.slice(0, MAX_OBSERVED_LENGTH) : undefined;
}
