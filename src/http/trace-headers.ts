import type { IncomingHttpHeaders } from 'node:http';
import type { TraceContext } from '../mcp/vocabulary/meta.ts';

/** What the headers of a client's request say of its trace; undefined: nothing. */
export function traceContextOf({ traceparent, tracestate, baggage }: IncomingHttpHeaders): TraceContext | undefined {
  if (traceparent === undefined && baggage === undefined) return undefined;
  return { traceparent: textOf(traceparent), tracestate: textOf(tracestate), baggage: textOf(baggage) };
}

/** A header that came several times counts as one list, as both of the specifications say. */
function textOf(header: string | readonly string[] | undefined): string | undefined {
  return typeof header === 'object' ? header.join(',') : header;
}
