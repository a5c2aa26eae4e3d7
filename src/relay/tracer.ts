/** What joins the calls of the bridge with the traces that its clients and servers take part in. */
import { readTraceContext } from '../mcp/classify/trace-context.ts';
import type { TraceContext } from '../mcp/vocabulary/meta.ts';
import { CALL_TOOL, GET_PROMPT } from '../mcp/vocabulary/methods.ts';
import { readField } from '../mcp/vocabulary/payload.ts';
import type { Frame, JsonRpcId } from '../wire/frame.ts';
import { type CallEnding, MAX_OBSERVED_LENGTH, type ObservedClient, toolOf } from './observer.ts';

/** One request of a client, as far as a trace tells of it. */
export interface TracedRequest {
  readonly client: ObservedClient;
  readonly id: JsonRpcId;
  readonly method: string;
  /** The tool that a `tools/call` names. */
  readonly tool: string | undefined;
  /** The prompt that a `prompts/get` names. */
  readonly prompt: string | undefined;
  /** What the message itself says of its trace. Nobody has checked it. */
  readonly inMessage: TraceContext | undefined;
  /** What the HTTP request says that brought it. */
  readonly inHttp: TraceContext | undefined;
}

export interface TracedEnding extends CallEnding {
  /** The tool was called, and says that it has failed. */
  readonly isToolError: boolean;
}

/** A call on its way. */
export interface CallTrace {
  /** In hexadecimal digits. Also of a call that is not sampled: others may keep what they see of it. */
  readonly traceId: string;
  /** Whether the end is recorded: nothing is read of an answer for a call that is not sampled. */
  readonly isRecorded: boolean;
  /** The request goes to the server now, and says this. Called once at most. */
  sent(): TraceContext;
  /** Called once. */
  ended(ending: TracedEnding): void;
}

export interface Tracer {
  /** A request was taken, or refused: then its end follows at once. May not throw. Undefined: it could not be traced. */
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

/** [spec 2026-07-28 server/tools#error-handling] a tool says so in its result. */
export function isToolError(method: string | undefined, answer: Frame | undefined): boolean {
  return method === CALL_TOOL && answer?.kind === 'result' && readField(answer, 'isError') === true;
}
