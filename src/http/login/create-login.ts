import { spawn } from 'node:child_process';
import type { Logger } from 'pino';
import type { LoginConfig, RemoteConfig } from '../../config/remote.ts';
import type { Deps } from '../../deps.ts';
import { HttpClient } from '../client/client.ts';
import type { Credentials } from '../client/credentials.ts';
import { Login, type LoginOptions } from './login.ts';
import { LoginFile, type OpenSharedText, SharedLogin } from './login-storage.ts';

export interface LoginRequest {
  readonly server: URL;
  readonly config: LoginConfig;
  readonly remote: Pick<RemoteConfig, 'tls' | 'proxyEnv'>;
  readonly userAgent: string;
  /** Undefined if no replicas share the login, which is then stored in a file. */
  readonly openShared: OpenSharedText | undefined;
  /** Called when an authorization server has registered the bridge as a new client. */
  readonly registered: () => void;
  /** See `LoginOptions` for `waits`, `askToPaste` and `waiting`. */
  readonly waits: LoginOptions['waits'];
  readonly askToPaste?: LoginOptions['askToPaste'];
  readonly waiting?: LoginOptions['waiting'];
  readonly deps: Deps;
}

/**
 * Creates a login whose requests use the same proxies and TLS files as those to the server, without its headers and
 * credentials. Rejects with ERR_CONFIG_OPTION if a login that should be forgotten cannot be deleted, and with
 * ERR_STORE_UNAVAILABLE.
 */
export async function createLogin(request: LoginRequest): Promise<Credentials> {
  const { server, config, remote, userAgent, openShared, registered, waits, askToPaste, deps } = request;
  const { waiting = () => {} } = request;
  const { tls, proxyEnv } = remote;
  const createClient = () =>
    new HttpClient({
      headers: new Map(),
      bearerTokenFile: undefined,
      credentials: undefined,
      tls,
      proxyEnv,
      socketPath: undefined,
      userAgent,
      clock: deps.clock,
    });
  const { browser } = config;
  const open = browser === undefined ? () => {} : (page: URL) => openBrowser(browser, page, deps.log);
  const storage =
    openShared === undefined ? new LoginFile(server, config, deps) : await SharedLogin.open(server, config, openShared);
  return new Login({
    ...{ server, config, storage, createClient, openBrowser: open, askToPaste, registered, waiting, waits, deps },
  });
}

/**
 * Opens the address in the user's browser, if possible. The log already contains the address in case that fails.
 * @param command a program and its arguments, with `%s` for the address
 */
export function openBrowser(command: readonly string[], url: URL, log: Logger): void {
  const [program = '', ...args] = command.map((word) => word.replaceAll('%s', url.href));
  const cannotOpen = ({ code }: NodeJS.ErrnoException): void => log.debug({ code }, 'cannot open a browser');
  try {
    // No shell is used, so that no part of an address can become a command.
    const child = spawn(program, args, { detached: true, stdio: 'ignore' });
    child.on('error', cannotOpen);
    child.unref();
  } catch (thrown) {
    // Some failures are thrown, for example if the address is too long for the system.
    cannotOpen(thrown as NodeJS.ErrnoException);
  }
}
