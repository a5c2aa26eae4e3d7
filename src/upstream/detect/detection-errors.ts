/** What a client is told when no way to speak with its server was found. */
import { BridgeError } from '../../errors.ts';
import { showUrl } from '../../http/shown-url.ts';
import { findCommonModern, MODERN_REVISION_IDS, REVISION_IDS } from '../../mcp/vocabulary/revisions.ts';
import { toPrintable } from '../../printable.ts';

/** One thing that was tried. */
export interface Attempt {
  /** `POST initialize`, `GET for an event stream`. */
  readonly request: string;
  /** What came of it, in plain words. */
  readonly saw: string;
  readonly status: number | undefined;
  readonly tookMs: number;
}

export function detectError(url: URL, attempts: readonly Attempt[]): BridgeError {
  const tried = attempts.map(({ request, saw }) => `${request}: ${saw}`).join('; ');
  const message =
    `No MCP server was recognised at ${showUrl(url)}. Tried: ${tried}. ` +
    'Is the path right (/mcp and /sse are common)? If you know what the server speaks, say so with --transport or --protocol.';
  return new BridgeError('ERR_UPSTREAM_DETECT', message, { data: { attempts: attempts.map(showAttempt) } });
}

function showAttempt({ request, saw, status }: Attempt): Readonly<Record<string, unknown>> {
  return status === undefined ? { request, saw } : { request, saw, status };
}

/**
 * It speaks modern revisions, but none that is spoken here; or it refuses even the one it offers.
 * @param name its URL or command, as it may be shown
 */
export function noCommonRevisionError(name: string, supported: readonly string[]): BridgeError {
  const theirs = supported
    .slice(0, MAX_SHOWN)
    .map((id) => toPrintable(id, 40))
    .join(', ');
  const ours = [...REVISION_IDS, ...MODERN_REVISION_IDS].join(', ');
  const message =
    findCommonModern(supported) === undefined
      ? `The server at ${name} speaks only revisions of MCP that mcp-portage does not: ${theirs}. Known here: ${ours}. A newer mcp-portage may know them.`
      : `The server at ${name} offers ${theirs} and refuses it at the same time; it has to be repaired.`;
  return new BridgeError('ERR_UPSTREAM_REVISION', message, { data: { supported: supported.slice(0, MAX_SHOWN) } });
}

const MAX_SHOWN = 20;
