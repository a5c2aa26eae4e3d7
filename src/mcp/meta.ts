/** Keys of `params._meta` that carry a request's protocol data in the modern era. [spec 2026-07-28 basic#meta] */

export const META_PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion';
export const META_CLIENT_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
export const META_CLIENT_INFO = 'io.modelcontextprotocol/clientInfo';

/** In results. */
export const META_SERVER_INFO = 'io.modelcontextprotocol/serverInfo';

/** `clientInfo` and `serverInfo`. */
export interface Implementation {
  readonly name: string;
  readonly version: string;
}
