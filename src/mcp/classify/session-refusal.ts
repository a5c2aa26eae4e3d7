import { INTERNAL_ERROR, INVALID_REQUEST, SESSION_ERROR, SESSION_NOT_FOUND } from '../vocabulary/rpc-codes.ts';

/** A server's refusal of a message that was posted in a session. */
export interface SessionRefusal {
  /** Status of the response; 200 for an error that came as an ordinary answer. */
  readonly status: number;
  /** Code of the JSON-RPC error in the response; undefined if there is none. */
  readonly code: unknown;
  /** The error has the id of the request. */
  readonly namesRequest: boolean;
  /** The server's own words. */
  readonly reason: string;
}

/**
 * - `forgotten`: the server does not know the session, so it has not carried out the message.
 * - `refused`: the server has not carried out the message, maybe for want of the session.
 * - `answered`: the reason is maybe the session, but the server may have carried out the message.
 * - `unrelated`: the refusal is about the message itself, or about something else.
 */
export type SessionVerdict = 'forgotten' | 'refused' | 'answered' | 'unrelated';

/** Codes that servers use for an unknown session. All others are about the content of a request. */
const SESSION_CODES: ReadonlySet<unknown> = new Set([
  INVALID_REQUEST,
  INTERNAL_ERROR,
  SESSION_ERROR,
  SESSION_NOT_FOUND,
]);

/** Words of servers that answer with a status or code that means something else as a rule. */
const NAMES_SESSION = /session|not initialized/i;

/**
 * Decides what a refusal means for the session. [spec 2025-11-25 transports#session-management] requires 404. Servers
 * in use also send 400 (examples of the official SDK), 401 "Unauthorized: Session not found" (rmcp), 403
 * "Mcp-Session-Id principal mismatch", 410, 503, and 200 with -32600 (zilla). Most of these usually mean something
 * else, so the caller confirms them by sending the server a `ping`. A request may be repeated only after `forgotten`
 * and `refused`.
 */
export function classifySessionRefusal({ status, code, namesRequest, reason }: SessionRefusal): SessionVerdict {
  const isAboutContent = namesRequest && !SESSION_CODES.has(code);
  const namesSession = NAMES_SESSION.test(reason);
  switch (status) {
    case 404:
      return isAboutContent ? 'unrelated' : 'forgotten';
    case 400:
    case 410:
      return isAboutContent ? 'unrelated' : 'refused';
    default:
  }
  if (isAboutContent) return 'unrelated';
  if (status < 300) {
    if (code === INVALID_REQUEST) return 'refused';
    return namesSession && code !== undefined ? 'answered' : 'unrelated';
  }
  if (!namesSession) return 'unrelated';
  // A gateway may send 502 or 504 for a server that is still working, and a server 500 for a call that failed halfway.
  return status < 500 || status === 503 ? 'refused' : 'answered';
}
