import { EVENT_STREAM_TYPE, JSON_TYPE } from '../../http/headers.ts';
import { PROTOCOL_VERSION_HEADER_OUT, SESSION_ID_HEADER_OUT } from '../../mcp/vocabulary/headers.ts';
import type { Revision } from '../../mcp/vocabulary/revisions.ts';

/** What a message is posted under. A server that lost its session gives way to a new key. */
export interface SessionKey {
  /** The server's id; undefined for a server without sessions, and before `initialize` was answered. */
  readonly id: string | undefined;
  /** Counts the sessions of a link. */
  readonly generation: number;
  /** The headers that say so. */
  readonly headers: Readonly<Record<string, string>>;
  /** Those of a message that is posted to a server of Streamable HTTP: the same object for all of them. */
  readonly postHeaders: Readonly<Record<string, string>>;
}

/** Both kinds of answer. */
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
