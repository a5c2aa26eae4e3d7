/** The interface of the grants, and the parts that they share. */
import type { AuthorizationServer } from 'oauth4webapi';
import type { LoginConfig } from '../../../config/remote.ts';
import type { Deps } from '../../../deps.ts';
import type { AddressGuard } from '../address-guard.ts';
import type { AskToPaste, OpenBrowser } from '../authorize-in-browser.ts';
import type { DevicePrompt } from '../device-code.ts';
import { loginError } from '../login-error.ts';
import type { LoginFetch } from '../login-fetch.ts';
import type { LoginClient, StoredLogin } from '../login-store.ts';
import type { RequestParameters } from '../request-parameters.ts';
import type { TokenAnswer, TokenContext } from '../token-requests.ts';

/** The environment in which the steps of a login take place. */
export interface LoginSurroundings {
  /** The server that the login is for. */
  readonly server: URL;
  readonly config: LoginConfig;
  readonly guard: Pick<AddressGuard, 'checkPage'>;
  readonly fetch: LoginFetch;
  /** Creates `guard` and `fetch` for an address that the user has configured and that names further addresses. */
  readonly reachFrom: (named: URL) => Pick<LoginSurroundings, 'guard' | 'fetch'>;
  readonly openBrowser: OpenBrowser;
  readonly askToPaste: AskToPaste | undefined;
  /** Shows the user the code to enter. */
  readonly showCode: (prompt: DevicePrompt) => void;
  /** Called when an authorization server has registered the bridge as a new client. */
  readonly registered: () => void;
  readonly deps: Deps;
  /** Aborted with the error to reject with. */
  readonly signal: AbortSignal;
}

/** A request for tokens from one authorization server. */
export interface GrantRequest extends LoginSurroundings {
  readonly authorizationServer: AuthorizationServer;
  readonly parameters: RequestParameters;
  readonly scopes: readonly string[];
  /** The previous login. */
  readonly previous: StoredLogin | undefined;
  /** Returns a login that another process has completed meanwhile. */
  readonly findNewerLogin: () => StoredLogin | undefined;
  /**
   * Called with the id of a stored registration that the authorization server no longer knows, or may no longer know.
   */
  readonly registrationFailed: (id: string) => void;
  /** Stores a part of the login that has to survive a failure of the next step. Never rejects. */
  readonly keep: (login: StoredLogin) => Promise<void>;
}

/** Obtains the tokens of a login. Rejects with a BridgeError. */
export type Grant = (request: GrantRequest) => Promise<StoredLogin>;

/**
 * Has the user log in. `client unknown` means that the authorization server no longer knows the registered client, so
 * that a new registration may help.
 */
export type AskUser = (request: GrantRequest) => Promise<StoredLogin | 'client unknown'>;

export function contextOf(
  request: Pick<GrantRequest, 'authorizationServer' | 'parameters' | 'config' | 'fetch' | 'deps'>,
  client: LoginClient,
): TokenContext {
  const { authorizationServer, parameters, config, fetch, deps } = request;
  const { wallClock } = deps;
  return {
    ...{ authorizationServer, client, parameters, fetch, wallClock },
    proof: config.client?.proof,
    token: config.token,
  };
}

export function conclude(
  request: GrantRequest,
  client: LoginClient,
  answer: TokenAnswer,
  adviseRefused = 'The next call asks again.',
): StoredLogin {
  if (answer.kind === 'refused') {
    const wayOut = (answer.isClientUnknown ? ADVICE_UNKNOWN[client.origin] : undefined) ?? adviseRefused;
    throw loginError(`${request.authorizationServer.issuer} gave no token (${answer.reason})`, wayOut);
  }
  return toLogin(request, client, answer.tokens);
}

/** The advice for clients that the authorization server does not know. */
const ADVICE_UNKNOWN: Readonly<Partial<Record<LoginClient['origin'], string>>> = {
  configured: 'Check the id and the secret of the client; --oauth-auth-method says how it shows them.',
  assertion: 'It may want to know the client: --oauth-client-id.',
};

export function toLogin(
  { authorizationServer: as, parameters, scopes }: GrantRequest,
  client: LoginClient,
  tokens: StoredLogin['tokens'],
): StoredLogin {
  // `readServerMetadata` refuses metadata without this endpoint.
  const tokenEndpoint = as.token_endpoint as string;
  const { resource } = parameters;
  const revocation = as.revocation_endpoint === undefined ? {} : { revocationEndpoint: as.revocation_endpoint };
  return { issuer: as.issuer, tokenEndpoint, ...revocation, resource, client, scopes, tokens };
}
