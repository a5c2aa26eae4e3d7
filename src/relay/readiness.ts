/** Readiness of a server: if its clients could be served now, as far as is known without trying. */
import type { BridgeError } from '../errors.ts';

/**
 * - `ready`: nothing is known to be wrong.
 * - `starting`: it was started, and has not answered yet.
 * - `failing`: the last attempt failed, and it is tried again.
 * - `stopped`: it is not tried at the moment, because it failed too often or its bridge ends.
 */
export type Readiness = { readonly state: 'ready' } | NotReady;

export interface NotReady {
  readonly state: 'starting' | 'failing' | 'stopped';
  readonly error: BridgeError;
  /** Time since when it has been so, by the clock of the bridge. */
  readonly sinceMs: number;
  /** `refused`: dialing fails with the error, or waits. */
  readonly dialing: 'allowed' | 'refused';
}

export const READY: Readiness = { state: 'ready' };

/** Returns why no client should be sent to the server now. Clients of a server that is starting wait for it. */
export function unreadinessOf(readiness: Readiness): NotReady | undefined {
  if (readiness.state === 'ready') return undefined;
  return readiness.state === 'starting' && readiness.dialing === 'allowed' ? undefined : readiness;
}

/** Returns the error with which dialing would fail now. */
export function dialRefusalOf(readiness: Readiness): BridgeError | undefined {
  return readiness.state !== 'ready' && readiness.dialing === 'refused' ? readiness.error : undefined;
}
