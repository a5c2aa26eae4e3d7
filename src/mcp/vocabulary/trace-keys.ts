/**
 * What says of a request which trace it belongs to: members of `params._meta`, and headers of the same names.
 * [spec 2026-07-28 basic#meta; SEP-414; W3C Trace Context, W3C Baggage]
 */
export const TRACE_KEYS = ['traceparent', 'tracestate', 'baggage'] as const;

/** The texts of one request, as they were written; undefined: it has none of that name. */
export type TraceContext = Readonly<Record<(typeof TRACE_KEYS)[number], string | undefined>>;
