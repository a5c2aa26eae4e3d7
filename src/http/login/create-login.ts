import type { LoginConfig, RemoteConfig } from '../../config.ts';
import type { Deps } from '../../deps.ts';
import { HttpClient } from '../client/client.ts';
import type { Credentials } from '../client/credentials.ts';
import { Login } from './login.ts';
import { openBrowser } from './open-browser.ts';

export interface LoginRequest {
  readonly server: URL;
  readonly config: LoginConfig;
  readonly remote: Pick<RemoteConfig, 'tls' | 'proxyEnv'>;
  readonly userAgent: string;
  readonly deps: Deps;
}

/**
 * Asks authorization servers as we ask the server, but shows them nothing that is meant for it.
 * @throws BridgeError ERR_CONFIG_OPTION when a login that is to be forgotten cannot be
 */
export function createLogin({ server, config, remote, userAgent, deps }: LoginRequest): Credentials {
  const { tls, proxyEnv } = remote;
  const createClient = () =>
    new HttpClient({ headers: new Map(), bearerTokenFile: undefined, tls, proxyEnv, userAgent, clock: deps.clock });
  const { browser } = config;
  const open = browser === undefined ? () => {} : (page: URL) => openBrowser(browser, page, deps.log);
  return new Login({ server, config, createClient, openBrowser: open, deps });
}
