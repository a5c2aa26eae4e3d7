/** The session of a legacy server that a request needs, and the key by which requests share one. */
import type { CanonicalCapabilities } from '../../../mcp/translate/capabilities.ts';
import type { Implementation } from '../../../mcp/vocabulary/meta.ts';
import type { Lane } from '../../../relay/call.ts';
import { callerOf } from '../../../relay/caller-links.ts';
import type { ClientIdentity } from '../../../relay/shared/legacy/attribution.ts';

/** The client that a session of a legacy server is opened for, as the server is told of it. */
export interface SessionClient {
  /** The authenticated caller, or one name for all callers if none has to authenticate. */
  readonly principal: string;
  readonly capabilities: CanonicalCapabilities;
  readonly clientInfo: Implementation;
  /** Keeps callers of one name apart. Undefined: the session is not shared, and ends with its last user. */
  readonly affinity: string | undefined;
  /** Forwarded headers of the caller's HTTP request; see `Lane`. Requests with other values are of another caller. */
  readonly headers: Lane['headers'];
}

/** The session that a request needs. Requests with an equal `key` can share one. */
export interface SessionWanted extends SessionClient {
  /** The client that the session is for; undefined: no proof of which client it is. */
  readonly identity?: ClientIdentity;
  /** Undefined: the session is for this request alone. */
  readonly key: string | undefined;
  /** Equal for all requests of one caller; the caller's share of the pool is counted by it. */
  readonly caller: string;
}

export function sessionFor(client: SessionClient): SessionWanted {
  const { capabilities, clientInfo, affinity } = client;
  const caller = callerOf(client);
  const { name, title, version } = clientInfo;
  const parts = [caller, affinity, capabilities.key, name, title, version];
  return { ...client, caller, key: affinity === undefined ? undefined : JSON.stringify(parts) };
}
