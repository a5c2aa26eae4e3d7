/** Keys of `params._meta` that carry a request's protocol data in the modern era. [spec 2026-07-28 basic#meta] */

export const META = '_meta';

export const META_PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion';
export const META_CLIENT_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
export const META_CLIENT_INFO = 'io.modelcontextprotocol/clientInfo';
export const META_LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

/** A key of results. */
export const META_SERVER_INFO = 'io.modelcontextprotocol/serverInfo';

/** The id of a `subscriptions/listen`, in each message of its stream. */
export const META_SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

/** A key of messages that belong to a task. [spec 2025-11-25 basic/utilities/tasks#related-task-metadata] */
export const META_RELATED_TASK = 'io.modelcontextprotocol/related-task';

/** `clientInfo` and `serverInfo`. */
export interface Implementation {
  readonly name: string;
  readonly title?: string;
  readonly version: string;
}

/**
 * Trace context of a request: members of `params._meta`, and headers of the same names. [spec 2026-07-28 basic#meta;
 * SEP-414; W3C Trace Context, W3C Baggage]
 */
export const TRACE_KEYS = ['traceparent', 'tracestate', 'baggage'] as const;

/** The values in one request, as written; undefined if it has no member of that name. */
export type TraceContext = Readonly<Record<(typeof TRACE_KEYS)[number], string | undefined>>;
