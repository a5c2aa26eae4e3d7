/** The session of a legacy server that a request wants, and who may use the same one. */
import type { CanonicalCapabilities } from '../../../mcp/translate/capabilities.ts';
import type { Implementation } from '../../../mcp/vocabulary/meta.ts';
import { callerOf } from '../../../relay/caller-links.ts';
import type { Lane } from '../../../relay/exchange.ts';
import type { ServerListener } from '../../../relay/ports.ts';
import type { ClientIdentity } from '../../../relay/shared/legacy/attribution.ts';

/** Whose session of a legacy server is wanted, and what the server is told of the client. */
export interface SessionClient {
  /** The authenticated caller, or one name for all where nobody is asked. */
  readonly principal: string;
  readonly capabilities: CanonicalCapabilities;
  readonly clientInfo: Implementation;
  /** Keeps callers apart that have the same name. Undefined: a session of its own, which ends with its last user. */
  readonly affinity: string | undefined;
  /** What the user lets pass of the caller's HTTP request; see `Lane`. Who shows other values is another caller. */
  readonly headers: Lane['headers'];
}

/** A session that is wanted; who wants one with an equal `key` can use the same. */
export interface SessionWanted extends SessionClient {
  /** The client that the session is for; undefined: nothing proves which one. */
  readonly identity?: ClientIdentity;
  /** Undefined: nobody can. */
  readonly key: string | undefined;
  /** Equal for all that is one caller's: its share of the pool is counted by it. */
  readonly caller: string;
}

export function sessionFor(client: SessionClient): SessionWanted {
  const { capabilities, clientInfo, affinity } = client;
  const caller = callerOf(client);
  const { name, title, version } = clientInfo;
  const parts = [caller, affinity, capabilities.key, name, title, version];
  return { ...client, caller, key: affinity === undefined ? undefined : JSON.stringify(parts) };
}

/** A listener of a session that knows which client it listens for. */
export interface IdentifiedListener extends ServerListener {
  /** Undefined: nothing proves which client it is. */
  readonly client: ClientIdentity;
}

/** Returns the client whose link to a session has this listener. The session's own listeners are for no client. */
export function clientOf(listener: ServerListener | IdentifiedListener): ClientIdentity {
  return 'client' in listener ? listener.client : undefined;
}
