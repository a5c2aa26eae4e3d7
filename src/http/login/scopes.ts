/** Decides which scopes a login asks for. */

/** [OpenID Connect Core 3.1.2.1] The scope of an ID token. */
export const OPENID = 'openid';

/** [OpenID Connect Core 11] The scope of a refresh token, which is issued only if the user is asked for consent. */
export const OFFLINE_ACCESS = 'offline_access';

export interface ScopeRequest {
  /** 403 if the granted scopes are not enough. */
  readonly status: 401 | 403;
  /** The scopes that the user has configured; empty to let the server decide. */
  readonly configured: readonly string[];
  /** Scopes that are always requested. */
  readonly always: readonly string[];
  /** The scopes named in the refusal. */
  readonly challenged: readonly string[];
  /** The scopes named in the metadata of the server. */
  readonly advertised: readonly string[];
  /** The scopes requested before, which a request for another one should not lose. */
  readonly previous: readonly string[];
  /** The scopes that the authorization server supports; undefined if it lists none. */
  readonly supported: readonly string[] | undefined;
}

/**
 * Chooses the scopes to request. [spec 2025-11-25 basic/authorization#scope-selection-strategy] The scopes in the
 * refusal take precedence over those in the server's metadata. An empty result means that the parameter is left out.
 */
export function chooseScopes(request: ScopeRequest): readonly string[] {
  const { status, configured, always, challenged, advertised, previous, supported } = request;
  const needed = challenged.length > 0 ? challenged : advertised;
  const isUsersChoice = status === 401 && configured.length > 0;
  // [spec 2026-07-28 basic/authorization#step-up-authorization-flow] The union with the scopes requested before.
  const chosen = new Set(isUsersChoice ? configured : [...previous, ...configured, ...needed]);
  for (const scope of always) chosen.add(scope);
  // [spec 2026-07-28 basic/authorization#refresh-tokens] OFFLINE_ACCESS is never requested alone, because it would then
  // replace the default scopes.
  if (chosen.size > 0 && supported?.includes(OFFLINE_ACCESS)) chosen.add(OFFLINE_ACCESS);
  return [...chosen];
}

/** The scopes of a registration. [RFC 7591 3.2.1] An authorization server may grant fewer than it is asked for. */
export interface RegisteredScopes {
  readonly asked: readonly string[];
  readonly granted: readonly string[];
}

/**
 * Reads the response to a registration. Returns undefined if it does not limit the scopes. A registration without
 * refresh tokens does not grant OFFLINE_ACCESS either.
 */
export function readRegisteredScopes(
  asked: readonly string[],
  { scope, grant_types: grants }: Readonly<Record<string, unknown>>,
): RegisteredScopes | undefined {
  const named = typeof scope === 'string' ? scope.split(' ').filter((name) => name !== '') : undefined;
  const isRefreshed = !Array.isArray(grants) || grants.includes('refresh_token');
  if (named === undefined && isRefreshed) return undefined;
  const granted = (named ?? asked).filter((name) => isRefreshed || name !== OFFLINE_ACCESS);
  return { asked, granted };
}

/** True if the authorization server has decided about each of these scopes, whether it granted them or not. */
export function coversScopes(registered: RegisteredScopes | undefined, scopes: readonly string[]): boolean {
  if (registered === undefined) return true;
  const { asked, granted } = registered;
  return scopes.every((name) => asked.includes(name) || granted.includes(name));
}

/** Returns those of the scopes that the registration was granted. */
export function limitScopes(registered: RegisteredScopes | undefined, scopes: readonly string[]): readonly string[] {
  return registered === undefined ? scopes : scopes.filter((name) => registered.granted.includes(name));
}
