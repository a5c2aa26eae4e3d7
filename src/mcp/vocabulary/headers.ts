/** Names of the HTTP headers that MCP defines, in the two spellings Node wants: lower case to read, canonical to write. */

export const SESSION_ID_HEADER = 'mcp-session-id';
export const SESSION_ID_HEADER_OUT = 'Mcp-Session-Id';
export const PROTOCOL_VERSION_HEADER = 'mcp-protocol-version';
export const PROTOCOL_VERSION_HEADER_OUT = 'MCP-Protocol-Version';
export const LAST_EVENT_ID_HEADER = 'last-event-id';
export const LAST_EVENT_ID_HEADER_OUT = 'Last-Event-ID';
/** [spec 2026-07-28 transports/streamable-http#standard-request-headers] */
export const METHOD_HEADER = 'mcp-method';
export const METHOD_HEADER_OUT = 'Mcp-Method';
export const NAME_HEADER = 'mcp-name';
export const NAME_HEADER_OUT = 'Mcp-Name';
/** Followed by the name that a tool's schema gives. [spec 2026-07-28 transports/streamable-http#schema-extension] */
export const PARAM_HEADER_PREFIX = 'mcp-param-';
export const PARAM_HEADER_PREFIX_OUT = 'Mcp-Param-';
