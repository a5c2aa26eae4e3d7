/** Names and headers of the gRPC services that MCP uses. */

/** The service whose method `Session` carries JSON-RPC messages both ways. One stream is one client. */
export const SESSION_SERVICE = 'mcp.transport.v1.Mcp';
export const SESSION_PATH = `/${SESSION_SERVICE}/Session`;

/** [gRPC Health Checking Protocol] */
export const HEALTH_CHECK_PATH = '/grpc.health.v1.Health/Check';
export const HEALTH_WATCH_PATH = '/grpc.health.v1.Health/Watch';

export const CONTENT_TYPE = 'application/grpc+proto';
/** The encoding of messages that everybody speaks. Compression could reveal contents by their length. */
export const ENCODING = 'identity';

/** Returns true for gRPC with Protocol Buffers. gRPC-Web is another protocol, with another framing. */
export function isGrpc(contentType: unknown): boolean {
  return typeof contentType === 'string' && /^application\/grpc(?:\+proto)?\s*(?:;|$)/i.test(contentType);
}
