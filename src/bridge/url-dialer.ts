import type { Config, LoginConfig, RemoteConfig, UrlTarget } from '../config.ts';
import type { Deps } from '../deps.ts';
import type { Credentials } from '../http/credentials.ts';
import { createPingingDialer } from '../relay/pinging-dialer.ts';
import type { UpstreamDialer } from '../relay/ports.ts';
import { createRevivingDialer } from '../relay/reviving-dialer.ts';
import { CLIENT_INFO } from './client-info.ts';
import { toLegacy, toModern } from './join-eras.ts';

/** A server at a URL, for clients of every era. */
export async function createUrlDialer(config: Config, target: UrlTarget, deps: Deps): Promise<UpstreamDialer> {
  // Loaded where it is used: its libraries would double the heap, and with it the cost of each collection.
  const { createDetectedRemoteDialer } = await import('../upstream/detected-remote.ts');
  const { protocol, remote, limits, verb } = config;
  const credentials = remote.login === undefined ? undefined : await createLogin(remote.login, remote, target, deps);
  let dialer = createDetectedRemoteDialer({
    target,
    protocol,
    remote,
    maxMessageBytes: limits.maxMessageBytes,
    clientInfo: CLIENT_INFO,
    credentials,
    deps,
    joinEras: ({ legacy, modern }) => ({
      modern,
      legacyToModern: toModern(modern, deps),
      modernToLegacy: toLegacy(legacy, config, deps),
    }),
  });
  if (remote.keepAliveMs > 0) dialer = createPingingDialer(dialer, remote.keepAliveMs, deps);
  // A client over HTTP is told to open a new session; one on stdio cannot be.
  if (verb !== 'connect') return dialer;
  return createRevivingDialer(dialer, { deps, handshakeTimeoutMs: limits.requestTimeoutMs });
}

/** Loaded where it may be needed: a server whose token is given asks for no login. */
async function createLogin(
  config: LoginConfig,
  remote: RemoteConfig,
  { url: server }: UrlTarget,
  deps: Deps,
): Promise<Credentials> {
  const login = await import('../http/login/create-login.ts');
  const userAgent = `${CLIENT_INFO.name}/${CLIENT_INFO.version}`;
  return login.createLogin({ server, config, remote, userAgent, deps });
}
