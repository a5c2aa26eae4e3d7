import { hasSeveralNames } from '../config/access.ts';
import type { HttpListenerConfig, ListenerConfig } from '../config/listener.ts';
import type { ServerConfig } from '../config/server.ts';
import { isLoopback } from '../http/addresses.ts';
import { isForOneUser } from '../http/server/listen-addresses.ts';

/** What is known of a server's callers before any of them comes: it decides what they may share, and how much one may take. */
export interface CallerPolicy {
  /**
   * `pipe`: the one client on our own pipes. `user`: programs on this machine, which belong to one user unless the mode of
   * a socket says otherwise. `named`: callers who authenticate. `unidentified`: everybody else; all of them are called
   * "anonymous".
   */
  readonly kind: 'pipe' | 'user' | 'named' | 'unidentified';
  readonly names: 'one' | 'several';
}

export function describeCallers(
  listener: ListenerConfig,
  { mapHeaders, hubs }: Pick<ServerConfig, 'mapHeaders' | 'hubs'>,
): CallerPolicy {
  if (listener.kind === 'pipes') return { kind: 'pipe', names: 'one' };
  // Clients at a hub do not arrive through the listener.
  const names = hubs.length > 0 || hasSeveralNames(listener.access, mapHeaders) ? 'several' : 'one';
  if (listener.access.auth !== undefined) return { kind: 'named', names };
  return { kind: isForOneOfThisMachine(listener) ? 'user' : 'unidentified', names };
}

/** Behind a reverse proxy, callers from anywhere arrive over loopback. */
function isForOneOfThisMachine({ addresses, streams, endpoints: { baseUrl } }: HttpListenerConfig): boolean {
  const isProxied = baseUrl !== undefined && !isLoopback(baseUrl.hostname.replace(/^\[|\]$/g, ''));
  const all = [...addresses, ...streams.map(({ address }) => address)];
  return all.every(isForOneUser) && !isProxied;
}

/**
 * Whether two unidentified callers must not share a session of a server: what it holds, and what it asks, is for one of
 * them. Where the user wants one process for all, they share it anyway.
 */
export function areKeptApart(
  { kind }: CallerPolicy,
  { isolation }: Pick<ServerConfig['sessions'], 'isolation'>,
): boolean {
  return kind === 'unidentified' && isolation !== 'shared';
}

/** Without names all callers have the same one, so none of them can be refused for taking too much. */
export function haveNames({ kind, names }: CallerPolicy): boolean {
  return kind === 'named' || names === 'several';
}

/** Among how many callers capacity is divided: with several names, one caller leaves half to others. */
export function countSharers({ names }: CallerPolicy): number {
  return names === 'several' ? 2 : 1;
}
