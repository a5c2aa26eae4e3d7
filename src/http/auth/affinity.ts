import type { Config } from '../../config.ts';
import { isLoopback } from '../addresses.ts';

/** Who asks, as far as it decides with whom a session is shared. */
export interface AffinityCaller {
  readonly principal: string;
}

/**
 * Which callers of one name may share sessions of a server: those with equal values. Undefined: each call of theirs gets
 * a session of its own.
 *
 * A name stands for one caller when callers are asked for it, and when only this machine can call. Beyond that, "anonymous"
 * is the name of strangers, who must not meet in one session: what it holds, and what it asks, is for one of them.
 */
export function affinityOf(config: Config): (caller: AffinityCaller) => string | undefined {
  return keepsStrangersApart(config) ? () => undefined : () => SAME;
}

/** Callers of one name get sessions of their own. */
export function keepsStrangersApart(config: Config): boolean {
  return !isOneCaller(config) && config.sessions.isolation !== 'shared';
}

const SAME = '';

function isOneCaller({ verb, access, listen, endpoints }: Config): boolean {
  if (verb === 'connect' || access.auth !== undefined) return true;
  // Behind a reverse proxy the whole world may come by way of loopback.
  const { baseUrl } = endpoints;
  const isProxied = baseUrl !== undefined && !isLoopback(baseUrl.hostname.replace(/^\[|\]$/g, ''));
  return isLoopback(listen.host) && !isProxied;
}
