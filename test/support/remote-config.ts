import type { RemoteConfig } from '../../src/config/remote.ts';

/** How a remote server is reached where the user says nothing. */
export const REMOTE: RemoteConfig = {
  transport: 'auto',
  account: { user: undefined, password: undefined },
  headers: new Map(),
  bearerTokenFile: undefined,
  tls: { caFile: undefined, certFile: undefined, keyFile: undefined },
  forwardHeaders: [],
  // A machine may be held up for some seconds.
  timeouts: { connectMs: 60_000, firstByteMs: 0, idleMs: 0, callMs: 0 },
  exchange: undefined,
  login: undefined,
  keepAliveMs: 0,
  proxyEnv: {},
};
