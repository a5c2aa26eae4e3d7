import type { BridgeError } from '../../src/errors.ts';
import type { NotReady } from '../../src/relay/readiness.ts';

/** A server that is not tried for a while. */
export const stopped = (error: BridgeError): NotReady => ({ state: 'stopped', error, sinceMs: 0, dialing: 'refused' });
/** A server whose last attempt failed, and which may be tried. */
export const failing = (error: BridgeError): NotReady => ({ state: 'failing', error, sinceMs: 0, dialing: 'allowed' });
