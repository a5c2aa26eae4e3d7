import { EVENT_STREAM_TYPE, JSON_TYPE } from '../../http/headers.ts';
import { PROTOCOL_VERSION_HEADER_OUT, SESSION_ID_HEADER_OUT } from '../../mcp/vocabulary/headers.ts';
import type { Revision } from '../../mcp/vocabulary/revisions.ts';

/**
 * Session id and headers under which messages are posted. A new key replaces it when the server has lost the session.
 */
export interface SessionKey {
  /** The server's session id. Undefined for a server without sessions, and before `initialize` has been answered. */
  readonly id: string | undefined;
  /** Number of the session within its link. */
  readonly generation: number;
  /** Headers for session id and revision. */
  readonly headers: Readonly<Record<string, string>>;
  /** Headers of a POST over Streamable HTTP, one object shared by all POSTs. */
  readonly postHeaders: Readonly<Record<string, string>>;
}

/** Value of the Accept header, which allows JSON and event streams. */
export const ACCEPT_ANSWER = `${JSON_TYPE}, ${EVENT_STREAM_TYPE}`;

function postHeadersWith(headers: SessionKey['headers']): SessionKey['postHeaders'] {
  return { 'Content-Type': JSON_TYPE, Accept: ACCEPT_ANSWER, ...headers };
}

export const NO_SESSION: SessionKey = { id: undefined, generation: 0, headers: {}, postHeaders: postHeadersWith({}) };

export function createSessionKey(id: string | undefined, revision: Revision, generation: number): SessionKey {
  const headers = {
    ...(id !== undefined && { [SESSION_ID_HEADER_OUT]: id }),
    ...(revision.versionHeader && { [PROTOCOL_VERSION_HEADER_OUT]: revision.id }),
  };
  return { id, generation, headers, postHeaders: postHeadersWith(headers) };
}
