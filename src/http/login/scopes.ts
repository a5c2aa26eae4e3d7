const OFFLINE_ACCESS = 'offline_access';

export interface ScopeRequest {
  /** 403: what was granted is not enough. */
  readonly status: 401 | 403;
  /** By the user's choice; empty: as the server says. */
  readonly configured: readonly string[];
  /** The scopes named in the refusal. */
  readonly challenged: readonly string[];
  /** The scopes named in the metadata of the server. */
  readonly advertised: readonly string[];
  /** What was asked for before: whoever asks for one thing more should not lose the others. */
  readonly previous: readonly string[];
  /** The scopes that the authorization server supports; undefined: it names none. */
  readonly supported: readonly string[] | undefined;
}

/**
 * What to ask for. [spec 2025-11-25 basic/authorization#scope-selection-strategy] The refusal says what is needed now; else
 * the server's metadata does; else nothing is said. Empty: leave the parameter out.
 */
export function chooseScopes(request: ScopeRequest): readonly string[] {
  const { status, configured, challenged, advertised, previous, supported } = request;
  const needed = challenged.length > 0 ? challenged : advertised;
  const isUsersChoice = status === 401 && configured.length > 0;
  // [spec 2026-07-28 basic/authorization#step-up-authorization-flow] the union with what was asked for
  const chosen = new Set(isUsersChoice ? configured : [...previous, ...configured, ...needed]);
  // [spec 2026-07-28 basic/authorization#refresh-tokens] Not alone: it would take the place of what is the default.
  if (chosen.size > 0 && supported?.includes(OFFLINE_ACCESS)) chosen.add(OFFLINE_ACCESS);
  return [...chosen];
}

/** [OpenID Connect Core 11] No refresh token is given for this scope unless the user is asked. */
export function needsConsent(scopes: readonly string[]): boolean {
  return scopes.includes(OFFLINE_ACCESS);
}
