import { hasSeveralNames } from '../config/access.ts';
import type { HttpListenerConfig, ListenerConfig } from '../config/listener.ts';
import type { ServerConfig } from '../config/server.ts';
import { isLoopback } from '../http/addresses.ts';
import { isForOneUser } from '../http/server/listen-addresses.ts';

/** What is known of a server's callers before any of them comes: it decides what they may share, and how much one may take. */
export interface CallerPolicy {
  /**
   * `pipe`: the one client on our own pipes. `user`: whoever runs on this machine, which is one user unless the mode of a
   * socket says otherwise. `named`: callers who
   * are asked who they are. `strangers`: the rest of the world, and "anonymous" is the name of them all.
   */
  readonly kind: 'pipe' | 'user' | 'named' | 'strangers';
  readonly names: 'one' | 'several';
}

export function describeCallers(
  listener: ListenerConfig,
  { mapHeaders, hubs }: Pick<ServerConfig, 'mapHeaders' | 'hubs'>,
): CallerPolicy {
  if (listener.kind === 'pipes') return { kind: 'pipe', names: 'one' };
  // Whoever is at a hub is nobody who comes by the listener.
  const names = hubs.length > 0 || hasSeveralNames(listener.access, mapHeaders) ? 'several' : 'one';
  if (listener.access.auth !== undefined) return { kind: 'named', names };
  return { kind: isForOneOfThisMachine(listener) ? 'user' : 'strangers', names };
}

/** Behind a reverse proxy the whole world may come by way of loopback. */
function isForOneOfThisMachine({ addresses, streams, endpoints: { baseUrl } }: HttpListenerConfig): boolean {
  const isProxied = baseUrl !== undefined && !isLoopback(baseUrl.hostname.replace(/^\[|\]$/g, ''));
  const all = [...addresses, ...streams.map(({ address }) => address)];
  return all.every(isForOneUser) && !isProxied;
}

/**
 * Whether two strangers must not meet in one session of a server: what it holds, and what it asks, is for one of them.
 * Where the user wants one process for all, they meet anyway.
 */
export function areKeptApart(
  { kind }: CallerPolicy,
  { isolation }: Pick<ServerConfig['sessions'], 'isolation'>,
): boolean {
  return kind === 'strangers' && isolation !== 'shared';
}

/** Where nobody has a name all have the same one, and none of them can be told to take too much. */
export function haveNames({ kind, names }: CallerPolicy): boolean {
  return kind === 'named' || names === 'several';
}

/** Among how many what there is has to be enough: one of several names leaves half to others. */
export function countSharers({ names }: CallerPolicy): number {
  return names === 'several' ? 2 : 1;
}
