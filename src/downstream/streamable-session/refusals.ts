/** Refusals of requests over Streamable HTTP that name no session, or no revision that is served. */
import { BridgeError } from '../../errors.ts';
import { type HeaderMap, missingHeader, SESSION_ID_HEADER_OUT } from '../../mcp/vocabulary/headers.ts';
import { REVISION_IDS } from '../../mcp/vocabulary/revisions.ts';

export const SESSION_MISSING = new BridgeError(
  'ERR_SESSION_MISSING',
  `This request needs a session, and ${missingHeader(SESSION_ID_HEADER_OUT)}. Without a session only lists, reads, completions, tools and prompts are served; for everything else send initialize first and repeat the id from its response.`,
);

const MAX_SHOWN_LENGTH = 40;

/** @param version the value of MCP-Protocol-Version */
export function unsupportedVersion(version: HeaderMap[string]): BridgeError {
  const shown = JSON.stringify(String(version).slice(0, MAX_SHOWN_LENGTH));
  return new BridgeError(
    'ERR_UNSUPPORTED_REVISION',
    `MCP-Protocol-Version ${shown} is not supported here; supported: ${REVISION_IDS.join(', ')}.`,
  );
}
