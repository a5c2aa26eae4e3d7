import type { AuthorizationServer } from 'oauth4webapi';
import type { LoginConfig } from '../../config/remote.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { AuthChallenge } from '../client/credentials.ts';
import { showUrl } from '../shown-url.ts';
import { type AddressGuard, isSecure } from './address-guard.ts';
import { type AskToPaste, authorizeInBrowser, type OpenBrowser } from './authorize-in-browser.ts';
import { CallbackListener } from './callback-listener.ts';
import { findRegistration, identifyClient, useConfigured } from './client-identity.ts';
import { authorizeDevice, type DevicePrompt } from './device-code.ts';
import { type AuthorizationSetup, chooseWay, discover, isSameIssuer } from './discover.ts';
import { loginError } from './login-error.ts';
import type { LoginFetch } from './login-fetch.ts';
import type { LoginClient, RegisteredLoginClient, StoredLogin } from './login-store.ts';
import { patiently } from './patience.ts';
import { chooseParameters, type RequestParameters } from './request-parameters.ts';
import { chooseScopes, limitScopes, OFFLINE_ACCESS, OPENID } from './scopes.ts';
import {
  exchangeCode,
  refreshTokens,
  requestOwnTokens,
  type TokenAnswer,
  type TokenContext,
} from './token-requests.ts';

export interface LoginFlowOptions {
  readonly server: URL;
  readonly config: LoginConfig;
  readonly guard: Pick<AddressGuard, 'checkPage'>;
  readonly fetch: LoginFetch;
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

export interface LoginReason {
  readonly status: 401 | 403;
  readonly challenge: AuthChallenge;
  /** The login before this one. */
  readonly previous: StoredLogin | undefined;
  /** Returns a login that another process has finished meanwhile. */
  readonly findNewerLogin: () => StoredLogin | undefined;
  /** Called with the id of a stored registration that the authorization server has forgotten, or may have. */
  readonly registrationFailed: (id: string) => void;
}

/** `client unknown`: the authorization server has forgotten a registration of ours, and another one may help. */
type AskUser = (reason: LoginReason) => Promise<StoredLogin | 'client unknown'>;

/** The steps of a login, from the refusal to the token. All methods reject with a BridgeError. */
export class LoginFlow {
  readonly #options: LoginFlowOptions;

  constructor(options: LoginFlowOptions) {
    this.#options = options;
  }

  /** Undefined: the server offers none. */
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
    switch (chooseWay(grant, found.authorizationServer)) {
      case 'client-credentials':
        return await this.#asItself(reason, found);
      case 'device-code':
        return await this.#asUser((asked) => this.#askForCode(asked, found), reason, found);
      case 'authorization-code':
        return await this.#asUser((asked) => this.#askInBrowser(asked, found), reason, found);
    }
  }

  /**
   * Undefined: the refresh token is no good any more.
   * @param registrationFailed called when the authorization server has forgotten the client that it registered
   */
  async refresh(
    login: StoredLogin,
    refreshToken: string,
    registrationFailed: (id: string) => void,
  ): Promise<StoredLogin | undefined> {
    const { issuer, tokenEndpoint, client, resource } = login;
    const context = this.#context({ issuer, token_endpoint: tokenEndpoint }, client, { resource, extra: new Map() });
    const answer = await refreshTokens(context, refreshToken, login.tokens?.scopes);
    if (answer.kind === 'refused') {
      this.#options.deps.log.debug({ issuer }, `the login cannot be refreshed: ${answer.reason}`);
      if (answer.isClientUnknown && client.origin === 'registered') registrationFailed(client.id);
      return undefined;
    }
    // [RFC 6749 6] Without a new one the old one stays.
    const tokens = { ...answer.tokens, refreshToken: answer.tokens.refreshToken ?? refreshToken };
    return { ...login, tokens };
  }

  // ---- as itself

  async #asItself({ status, challenge, previous }: LoginReason, found: AuthorizationSetup): Promise<StoredLogin> {
    const { config } = this.#options;
    const { client: configured } = config;
    const { authorizationServer: as } = found;
    if (configured === undefined)
      throw loginError('A client with a name of its own is needed', 'Give --oauth-client-id.');
    const client = useConfigured(configured, as, previous);
    const scopes = this.#scopes(status, challenge, previous, found).filter((scope) => scope !== OFFLINE_ACCESS);
    const parameters = chooseParameters(config, found.resource);
    const answer = await requestOwnTokens(this.#context(as, client, parameters), scopes);
    return conclude({ authorizationServer: as, parameters, client, scopes }, answer);
  }

  // ---- in the name of a user

  async #asUser(ask: AskUser, reason: LoginReason, { authorizationServer }: AuthorizationSetup): Promise<StoredLogin> {
    const login = await ask(reason);
    if (login !== 'client unknown') return login;
    const again = await ask({ ...reason, previous: undefined });
    if (again !== 'client unknown') return again;
    throw loginError(`${authorizationServer.issuer} does not know the client that it registered`, '');
  }

  async #askForCode(reason: LoginReason, found: AuthorizationSetup): Promise<StoredLogin | 'client unknown'> {
    const { status, challenge, previous, findNewerLogin } = reason;
    const { config, guard, fetch, showCode, deps, signal } = this.#options;
    const { authorizationServer } = found;
    const parameters = chooseParameters(config, found.resource);
    const registered = findRegistration(previous, authorizationServer.issuer);
    const scopes = this.#scopes(status, challenge, previous, found);
    const client = await identifyClient({ config, authorizationServer, previous, callback: undefined, scopes, fetch });
    if (client !== registered && client.origin === 'registered') this.#options.registered();
    const asked = client.origin === 'registered' ? limitScopes(client.scopes, scopes) : scopes;
    const context = this.#context(authorizationServer, client, parameters);
    const outcome = await authorizeDevice({
      ...{ context, scopes: asked, guard, findNewerLogin, clock: deps.clock, signal },
      show: showCode,
    });
    if (outcome.kind === 'other-process') return outcome.login;
    if (outcome.kind === 'refused' && outcome.isClientUnknown && client === registered) {
      reason.registrationFailed(client.id);
      return 'client unknown';
    }
    return conclude({ authorizationServer, parameters, client, scopes }, outcome);
  }

  // ---- in a browser

  async #askInBrowser(reason: LoginReason, found: AuthorizationSetup): Promise<StoredLogin | 'client unknown'> {
    const { status, challenge, previous, findNewerLogin } = reason;
    const { config, guard, fetch, askToPaste, deps, signal } = this.#options;
    const { authorizationServer } = found;
    const parameters = chooseParameters(config, found.resource);
    const registered = findRegistration(previous, authorizationServer.issuer);
    const { listener, callback } = await this.#listen(registered);
    /** True while the authorization server may have forgotten the registration, and be showing the user an error. */
    let isDoubtful = false;
    try {
      const scopes = this.#scopes(status, challenge, previous, found);
      const client = await identifyClient({ config, authorizationServer, previous, callback, scopes, fetch });
      if (client !== registered && client.origin === 'registered') this.#options.registered();
      const asked = client.origin === 'registered' ? limitScopes(client.scopes, scopes) : scopes;
      const openBrowser = (start: URL): void => {
        isDoubtful = client === registered;
        this.#options.openBrowser(start);
      };
      const outcome = await authorizeInBrowser({
        ...{ authorizationServer, clientId: client.id, listener, callback, parameters, findNewerLogin, signal },
        ...{
          scopes: asked,
          assumesPkce: config.assumesPkce,
          guard,
          openBrowser,
          askToPaste,
          clock: deps.clock,
          log: deps.log,
        },
      });
      isDoubtful &&= outcome.kind === 'refused' && CLIENT_ERRORS.has(outcome.code);
      if (outcome.kind === 'refused') throw outcome.error;
      if (outcome.kind === 'other-process') return outcome.login;
      const context = this.#context(authorizationServer, client, parameters);
      const answer = await patiently(() => exchangeCode(context, outcome.grant, asked), { ...deps, signal }).catch(
        (thrown: unknown) => {
          throw signal.aborted ? thrown : afterUser(thrown);
        },
      );
      isDoubtful = client === registered && answer.kind === 'refused' && answer.isClientUnknown;
      return isDoubtful ? 'client unknown' : conclude({ authorizationServer, parameters, client, scopes }, answer);
    } finally {
      if (isDoubtful && registered !== undefined) reason.registrationFailed(registered.id);
      listener.close();
    }
  }

  /**
   * Many authorization servers insist on the exact address that was registered, so its port is used again if it is
   * free.
   */
  async #listen(
    registered: RegisteredLoginClient | undefined,
  ): Promise<{ listener: CallbackListener; callback: string }> {
    const { callback: configured } = this.#options.config;
    const former = registered?.callback;
    if (former !== undefined && URL.canParse(former) && isSameButPort(new URL(former), configured)) {
      try {
        return await listenAt(new URL(former));
      } catch (thrown) {
        if (!(thrown instanceof BridgeError)) throw thrown;
      }
    }
    return listenAt(configured);
  }

  // ---- what both have in common

  #context(authorizationServer: AuthorizationServer, client: LoginClient, parameters: RequestParameters): TokenContext {
    const { fetch, config, deps } = this.#options;
    const { wallClock } = deps;
    return {
      authorizationServer,
      client,
      proof: config.client?.proof,
      parameters,
      token: config.token,
      fetch,
      wallClock,
    };
  }

  #scopes(
    status: 401 | 403,
    challenge: AuthChallenge,
    previous: StoredLogin | undefined,
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

function correctionsOf({ tokenEndpoint, authMethod }: LoginConfig): Partial<AuthorizationServer> {
  return {
    ...(tokenEndpoint !== undefined && { token_endpoint: tokenEndpoint.href }),
    ...(authMethod !== undefined && { token_endpoint_auth_methods_supported: [authMethod] }),
  };
}

/**
 * An assertion that a client signs is for the issuer in the metadata. Where that calls itself differently from the one
 * that the user trusts, the assertion could be shown to the other one.
 */
function refuseForeignAudience({ authorizationServer: as }: AuthorizationSetup, { issuer, client }: LoginConfig): void {
  if (client?.proof.kind !== 'key' || issuer === undefined || isSameIssuer(as.issuer, issuer)) return;
  const problem = `${issuer} calls itself ${as.issuer}, which an assertion that is signed with --oauth-client-key would be for`;
  throw loginError(problem, 'Authenticate with a secret instead, or name an issuer that calls itself as it is called.');
}

/** [RFC 6749 4.1.2.1] The errors of an authorization server that does not know the client any more. */
const CLIENT_ERRORS: ReadonlySet<string> = new Set(['invalid_client', 'unauthorized_client']);

/** A step that fails once the user has been asked is not repeated at once, as that would open another page. */
function afterUser(thrown: unknown): unknown {
  return thrown instanceof BridgeError ? loginError(thrown.message, 'The next call asks the user again.') : thrown;
}

interface Asked extends Pick<StoredLogin, 'client' | 'scopes'> {
  readonly authorizationServer: AuthorizationServer;
  readonly parameters: RequestParameters;
}

function conclude({ authorizationServer: as, parameters, client, scopes }: Asked, answer: TokenAnswer): StoredLogin {
  if (answer.kind === 'refused') {
    const wayOut =
      answer.isClientUnknown && client.origin === 'configured'
        ? 'Check the id and the secret of the client; --oauth-auth-method says how it shows them.'
        : 'The next call asks again.';
    throw loginError(`${as.issuer} gave no token (${answer.reason})`, wayOut);
  }
  // The token came from this endpoint, so it is present.
  const tokenEndpoint = as.token_endpoint as string;
  const { resource } = parameters;
  const revocation = as.revocation_endpoint === undefined ? {} : { revocationEndpoint: as.revocation_endpoint };
  return { issuer: as.issuer, tokenEndpoint, ...revocation, resource, client, scopes, tokens: answer.tokens };
}

async function listenAt(address: URL): Promise<{ listener: CallbackListener; callback: string }> {
  const listener = new CallbackListener(address);
  return { listener, callback: (await listener.listen()).href };
}

function isSameButPort(former: URL, configured: URL): boolean {
  const isSamePlace = former.hostname === configured.hostname && former.pathname === configured.pathname;
  return isSamePlace && (configured.port === '0' || configured.port === former.port);
}
