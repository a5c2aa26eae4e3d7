import { connectStdio } from './bridge/connect-stdio.ts';
import type { ClientPipes, RunningBridge, StrayClient } from './bridge/running-bridge.ts';
import { serveHttp } from './bridge/serve-http.ts';
import type { Config } from './config.ts';
import type { Deps } from './deps.ts';

export { changeLogins, type LoginJob, type LoginTerminal, listLogins } from './bridge/logins.ts';
export type { ClientPipes, RunningBridge, StrayClient } from './bridge/running-bridge.ts';

/**
 * The composition root: only this file and bridge/ depend on every other folder. Resolves once a client can connect.
 */
export function runBridge(
  config: Config,
  deps: Deps,
  openPipes: () => ClientPipes,
  strayClient?: StrayClient,
): Promise<RunningBridge> {
  const { listener } = config;
  switch (listener.kind) {
    case 'http':
      return serveHttp(listener, config, { ...deps, observers: [], strayClient });
    case 'pipes':
      return connectStdio(config, { ...deps, observers: [] }, openPipes());
  }
}
