import type { CanonicalCapabilities } from '../../../mcp/translate/capabilities.ts';
import type { Implementation } from '../../../mcp/vocabulary/meta.ts';
import { callerOf } from '../../../relay/caller-links.ts';
import type { Lane } from '../../../relay/exchange.ts';

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
