import type { Implementation } from '../mcp/vocabulary/meta.ts';
import { INITIALIZE } from '../mcp/vocabulary/methods.ts';
import { LATEST_LEGACY_REVISION } from '../mcp/vocabulary/revisions.ts';
import type { Frame } from '../wire/frame.ts';
import { requestFrame } from '../wire/write-message.ts';

/** Asks for the newest revision with a handshake, and offers the server nothing. */
export function createInitializeRequest(id: number, clientInfo: Implementation): Frame {
  const protocolVersion = LATEST_LEGACY_REVISION.id;
  return requestFrame(id, INITIALIZE, { protocolVersion, capabilities: {}, clientInfo });
}
