import type { AuthorizationServer } from 'oauth4webapi';
import type { LoginConfig } from '../../config/remote.ts';
import type { AuthChallenge } from '../client/credentials.ts';
import { showUrl } from '../shown-url.ts';
import { isSecure } from './address-guard.ts';
import { bindTokens } from './bind-tokens.ts';
import { type AuthorizationSetup, discover, isSameIssuer } from './discover.ts';
import { logInWithAssertion } from './grants/assertion.ts';
import type { GrantRequest, LoginSurroundings } from './grants/grant.ts';
import { logInAsItself } from './grants/itself.ts';
import { refreshLogin } from './grants/refresh.ts';
import { logInAsUser } from './grants/user.ts';
import { loginError } from './login-error.ts';
import type { StoredLogin } from './login-store.ts';
import { chooseParameters } from './request-parameters.ts';
import { chooseScopes, OPENID } from './scopes.ts';

export interface LoginFlowOptions extends LoginSurroundings {
  readonly server: URL;
}

export interface LoginReason extends Pick<GrantRequest, 'previous' | 'findNewerLogin' | 'registrationFailed' | 'keep'> {
  readonly status: 401 | 403;
  readonly challenge: AuthChallenge;
}

/** The steps of a login, from the refusal to the token. All methods reject with a BridgeError. */
export class LoginFlow {
  readonly #options: LoginFlowOptions;

  constructor(options: LoginFlowOptions) {
    this.#options = options;
  }

  /** Resolves with undefined if the server offers no login. */
  async login(reason: LoginReason): Promise<StoredLogin | undefined> {
    const { server, config, fetch } = this.#options;
    const { resourceMetadata } = reason.challenge;
    if (!isSecure(server)) {
      if (resourceMetadata === undefined) return undefined;
      const problem = `The server at ${showUrl(server)} asks for a login, but anybody on the network path could read the token`;
      throw loginError(problem, 'Use https.');
    }
    const warn = (text: string): void => this.#options.deps.log.warn(text);
    const { issuer, grant } = config;
    const found = await discover({
      ...{ server, resourceMetadata, issuer, grant, warn, fetch },
      corrections: correctionsOf(config),
    });
    if (found === undefined) return undefined;
    refuseForeignAudience(found, config);
    const { authorizationServer, resource } = found;
    const { challenge } = reason;
    const binding = await bindTokens({
      server,
      challenge,
      setup: found,
      token: config.token,
      deps: this.#options.deps,
    });
    const parameters = chooseParameters(config, resource, binding);
    const scopes = this.#scopes(reason, found);
    const request: GrantRequest = { ...this.#options, ...reason, authorizationServer, parameters, scopes };
    switch (grant) {
      case 'client-credentials':
        return await logInAsItself(request);
      case 'jwt-bearer':
        return await logInWithAssertion(request);
      default:
        return await logInAsUser(request, grant);
    }
  }

  /**
   * Resolves with undefined if the refresh token is no longer valid.
   * @param registrationFailed called when the authorization server no longer knows the client that it registered
   */
  refresh(
    login: StoredLogin,
    refreshToken: string,
    registrationFailed: (id: string) => void,
  ): Promise<StoredLogin | undefined> {
    return refreshLogin({ ...this.#options, registrationFailed }, login, refreshToken);
  }

  #scopes(
    { status, challenge, previous }: LoginReason,
    { authorizationServer, scopes }: AuthorizationSetup,
  ): readonly string[] {
    const isSameServer = previous !== undefined && isSameIssuer(previous.issuer, authorizationServer.issuer);
    return chooseScopes({
      status,
      configured: this.#options.config.scopes,
      always: this.#options.config.token === 'id' ? [OPENID] : [],
      challenged: challenge.scopes,
      advertised: scopes,
      previous: isSameServer ? previous.scopes : [],
      supported: authorizationServer.scopes_supported,
    });
  }
}

export function correctionsOf({
  tokenEndpoint,
  authMethod,
}: Pick<LoginConfig, 'tokenEndpoint' | 'authMethod'>): Partial<AuthorizationServer> {
  return {
    ...(tokenEndpoint !== undefined && { token_endpoint: tokenEndpoint.href }),
    ...(authMethod !== undefined && { token_endpoint_auth_methods_supported: [authMethod] }),
  };
}

/**
 * Rejects assertions that another issuer could use. An assertion is made for the issuer in the metadata. If that
 * differs from the issuer that the user trusts, the assertion could be sent on to the other one.
 */
function refuseForeignAudience({ authorizationServer: as }: AuthorizationSetup, config: LoginConfig): void {
  const { issuer, client, assertion } = config;
  const isSigned = client?.proof.kind === 'key';
  if (!(isSigned || assertion !== undefined) || issuer === undefined || isSameIssuer(as.issuer, issuer)) return;
  const named = isSigned ? 'an assertion that is signed with --oauth-client-key' : 'the assertion that it is given';
  const wayOut = isSigned ? 'Authenticate with a secret instead, or name' : 'Name';
  throw loginError(
    `${issuer} calls itself ${as.issuer}, which ${named} would be for`,
    `${wayOut} an issuer that calls itself as it is called.`,
  );
}
