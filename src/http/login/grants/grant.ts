/** The interface of the ways to a token, and the parts that they have in common. */
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

/** Where and how the steps of a login take place. */
export interface LoginSurroundings {
  /** The server that the login is for. */
  readonly server: URL;
  readonly config: LoginConfig;
  readonly guard: Pick<AddressGuard, 'checkPage'>;
  readonly fetch: LoginFetch;
  /** Makes the two for places that the user has named, and that name others in their turn. */
  readonly reachFrom: (named: URL) => Pick<LoginSurroundings, 'guard' | 'fetch'>;
  readonly openBrowser: OpenBrowser;
  readonly askToPaste: AskToPaste | undefined;
  /** Shows the user the code to enter. */
  readonly showCode: (prompt: DevicePrompt) => void;
  /** Called when an authorization server has registered us as a client that it did not know. */
  readonly registered: () => void;
  readonly deps: Deps;
  /** Aborted with the error to reject with. */
  readonly signal: AbortSignal;
}

/** Tokens to get from one authorization server. */
export interface GrantRequest extends LoginSurroundings {
  readonly authorizationServer: AuthorizationServer;
  readonly parameters: RequestParameters;
  readonly scopes: readonly string[];
  /** The login before this one. */
  readonly previous: StoredLogin | undefined;
  /** Returns a login that another process has finished meanwhile. */
  readonly findNewerLogin: () => StoredLogin | undefined;
  /** Called with the id of a stored registration that the authorization server has forgotten, or may have. */
  readonly registrationFailed: (id: string) => void;
  /** Keeps a part of the login that should outlive a failure of the next step. Never rejects. */
  readonly keep: (login: StoredLogin) => Promise<void>;
}

/** Rejects with a BridgeError. */
export type Grant = (request: GrantRequest) => Promise<StoredLogin>;

/** `client unknown`: the authorization server has forgotten a registration of ours, and another one may help. */
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

/** The ways out where the authorization server does not know the client. */
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
