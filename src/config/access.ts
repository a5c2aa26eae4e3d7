/** What a request has to show before it is served. */
export interface AccessConfig {
  /** Host header names accepted besides the loopback names and the listening address. */
  readonly allowHosts: readonly string[];
  /** Web origins that may call, and get CORS headers. */
  readonly allowOrigins: readonly string[];
  /** How callers show who they are; undefined: nobody is asked. */
  readonly auth: AuthConfig | undefined;
}

/**
 * Whether there can be callers of several names: where all have one, what is for one caller is for all. What a header says
 * of a caller is part of its name.
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

/** How callers may show who they are: any of these is enough, and there is at least one. */
export interface AuthConfig {
  readonly tokens: readonly TokenSource[];
  readonly oauth: OAuthConfig | undefined;
}

/** A token the user handed out, and the name of whom it belongs to. */
export type TokenSource =
  | { readonly kind: 'value'; readonly principal: string; readonly token: string }
  /** Re-read when it changes. */
  | { readonly kind: 'file'; readonly principal: string; readonly file: string };

/** The issuer whose access tokens are accepted, and what a token must be for. */
export interface OAuthConfig {
  /** What the issuer calls itself, compared as text. */
  readonly issuer: string;
  /** One of these, or the URL of the server that is called. */
  readonly audiences: readonly string[] | 'own-urls';
  readonly keys: KeyLocation;
  readonly scopes: readonly string[];
}

export type KeyLocation =
  /** Where the issuer's metadata says. */
  | { readonly kind: 'discovered' }
  | { readonly kind: 'url'; readonly url: URL }
  | { readonly kind: 'file'; readonly file: string };
