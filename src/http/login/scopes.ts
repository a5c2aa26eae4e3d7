/** Decides which scopes a login asks for. */

/** [OpenID Connect Core 3.1.2.1] The scope of an ID token. */
export const OPENID = 'openid';

/** [OpenID Connect Core 11] The scope of a refresh token, which is given only if the user is asked. */
export const OFFLINE_ACCESS = 'offline_access';

export interface ScopeRequest {
  /** 403: what was granted is not enough. */
  readonly status: 401 | 403;
  /** Scopes that the user has chosen; empty: the server decides. */
  readonly configured: readonly string[];
  /** Scopes that are asked for in any case. */
  readonly always: readonly string[];
  /** The scopes named in the refusal. */
  readonly challenged: readonly string[];
  /** The scopes named in the metadata of the server. */
  readonly advertised: readonly string[];
  /** The scopes asked for before, which a request for one more should not lose. */
  readonly previous: readonly string[];
  /** The scopes that the authorization server supports; undefined: it names none. */
  readonly supported: readonly string[] | undefined;
}

/**
 * Chooses the scopes to ask for. [spec 2025-11-25 basic/authorization#scope-selection-strategy] The refusal says what
 * is needed now; else the server's metadata does; else nothing is said. Empty: leave the parameter out.
 */
export function chooseScopes(request: ScopeRequest): readonly string[] {
  const { status, configured, always, challenged, advertised, previous, supported } = request;
  const needed = challenged.length > 0 ? challenged : advertised;
  const isUsersChoice = status === 401 && configured.length > 0;
  // [spec 2026-07-28 basic/authorization#step-up-authorization-flow] the union with what was asked for
  const chosen = new Set(isUsersChoice ? configured : [...previous, ...configured, ...needed]);
  for (const scope of always) chosen.add(scope);
  // [spec 2026-07-28 basic/authorization#refresh-tokens] It is not asked for alone, as it would then replace the
  // default scopes.
  if (chosen.size > 0 && supported?.includes(OFFLINE_ACCESS)) chosen.add(OFFLINE_ACCESS);
  return [...chosen];
}

/** The scopes of a registration. [RFC 7591 3.2.1] An authorization server may grant less than it is asked for. */
export interface RegisteredScopes {
  readonly asked: readonly string[];
  readonly granted: readonly string[];
}

/**
 * Reads the response to a registration. Undefined: it limits nothing. One that grants no refresh token grants no
 * `offline_access` either.
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

/** Returns true if it is known of each of these scopes whether the registration has been granted it. */
export function coversScopes(registered: RegisteredScopes | undefined, scopes: readonly string[]): boolean {
  if (registered === undefined) return true;
  const { asked, granted } = registered;
  return scopes.every((name) => asked.includes(name) || granted.includes(name));
}

/** Returns the scopes that the registration allows to ask for. */
export function limitScopes(registered: RegisteredScopes | undefined, scopes: readonly string[]): readonly string[] {
  return registered === undefined ? scopes : scopes.filter((name) => registered.granted.includes(name));
}
