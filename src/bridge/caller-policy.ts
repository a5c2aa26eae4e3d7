import { hasSeveralNames } from '../config/access.ts';
import type { HttpListenerConfig, ListenerConfig } from '../config/listener.ts';
import type { ServerConfig } from '../config/server.ts';
import { isLoopback } from '../http/addresses.ts';
import { isForOneUser } from '../http/server/listen-addresses.ts';

/**
 * Policy for a server's callers, fixed before the first request. It decides what callers may share and how much one may
 * take.
 */
export interface CallerPolicy {
  /**
   * - `pipe`: the one client on our own pipes.
   * - `user`: programs on this machine, which belong to one user unless the mode of a socket says otherwise.
   * - `named`: callers that authenticate.
   * - `unidentified`: all other callers, which share the name "anonymous".
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

/**
 * Returns true if only programs of one user on this machine can connect. Behind a reverse proxy, callers from anywhere
 * arrive over loopback.
 */
function isForOneOfThisMachine({ addresses, streams, grpc, endpoints: { baseUrl } }: HttpListenerConfig): boolean {
  const isProxied = baseUrl !== undefined && !isLoopback(baseUrl.hostname.replace(/^\[|\]$/g, ''));
  const all = [...addresses, ...[...streams, ...grpc].map(({ address }) => address)];
  return all.every(isForOneUser) && !isProxied;
}

/**
 * Returns true if unidentified callers must not share a session of a server, whose state and questions belong to one of
 * them. If the user configures one process for all (`isolation: shared`), they share it anyway.
 */
export function areKeptApart(
  { kind }: CallerPolicy,
  { isolation }: Pick<ServerConfig['sessions'], 'isolation'>,
): boolean {
  return kind === 'unidentified' && isolation !== 'shared';
}

/**
 * Returns true if callers have names. Without names all callers look the same, so a limit per caller would hit all of
 * them.
 */
export function haveNames({ kind, names }: CallerPolicy): boolean {
  return kind === 'named' || names === 'several';
}

/**
 * Returns the number of parts that capacity is divided into. With several names, one caller leaves half to the others.
 */
export function countSharers({ names }: CallerPolicy): number {
  return names === 'several' ? 2 : 1;
}
