/** The checks that a request must pass before it is served. Without `auth`, callers need no credentials. */
export interface AccessConfig {
  /** Host header names accepted besides the loopback names and the listening address. */
  readonly allowHosts: readonly string[];
  /** Web origins that may call, and get CORS headers. */
  readonly allowOrigins: readonly string[];
  readonly auth: AuthConfig | undefined;
}

/**
 * Returns true if callers can have different names. If all share one name, everything for one caller is for all of
 * them. Mapped headers are part of a caller's name.
 */
export function hasSeveralNames({ auth }: Pick<AccessConfig, 'auth'>, mapHeaders: readonly MappedHeader[]): boolean {
  if (mapHeaders.length > 0 || auth?.oauth !== undefined) return true;
  return new Set(auth?.tokens.map(({ principal }) => principal)).size > 1;
}

/** The value of a caller's header becomes a variable of its own server process. */
export interface MappedHeader {
  /** Lower case. */
  readonly header: string;
  readonly variable: string;
}

/** The accepted credentials. Any one of them is enough, and at least one is configured. */
export interface AuthConfig {
  readonly tokens: readonly TokenSource[];
  readonly oauth: OAuthConfig | undefined;
}

/** A token that the user handed out, and the name of its caller. */
export type TokenSource =
  | { readonly kind: 'value'; readonly principal: string; readonly token: string }
  /** The file is read again when it changes. */
  | { readonly kind: 'file'; readonly principal: string; readonly file: string };

/** The issuer whose access tokens are accepted, and the audiences and scopes that a token must have. */
export interface OAuthConfig {
  /** The issuer's identifier, compared as text. */
  readonly issuer: string;
  /** A token must name one of these audiences, or the URL of the called server. */
  readonly audiences: readonly string[] | 'own-urls';
  readonly keys: KeyLocation;
  readonly scopes: readonly string[];
}

export type KeyLocation =
  /** At the URL that the issuer's metadata names. */
  | { readonly kind: 'discovered' }
  | { readonly kind: 'url'; readonly url: URL }
  | { readonly kind: 'file'; readonly file: string };
