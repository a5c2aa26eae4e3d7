import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import { DialerByEnvironment } from '../relay/dialer-by-environment.ts';
import type { CallerEnvironment, UpstreamDialer } from '../relay/ports.ts';
import { ChildLimit } from '../upstream/child-limit.ts';
import { createCommandDialer } from './command-dialer.ts';
import { createUrlDialer } from './url-dialer.ts';

/**
 * The way to the server, whatever it is and whatever it speaks.
 * @param urgency aborted when the bridge is about to be killed, and processes have to end before
 */
export async function createDialer(config: Config, deps: Deps, urgency?: AbortSignal): Promise<UpstreamDialer> {
  const { target } = config;
  if (target.kind === 'url') return createUrlDialer(config, target, deps);
  const server = { target, children: new ChildLimit(config.sessions.maxChildren), urgency };
  if (config.access.mapHeaders.length === 0) return createCommandDialer(config, server, deps);
  // Nothing is shared between processes that are told of different callers.
  return new DialerByEnvironment({
    create: (environment) => createCommandDialer(withEnvironment(config, environment), server, deps),
    clock: deps.clock,
  });
}

function withEnvironment(config: Config, environment: CallerEnvironment): Config {
  return { ...config, child: { ...config.child, env: { ...config.child.env, ...environment } } };
}
