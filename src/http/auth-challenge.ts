import type { IncomingHttpHeaders } from 'node:http';

/** What a refusal says about the way in. */
export interface AuthChallenge {
  /** `Bearer`, mostly. */
  readonly scheme: string | undefined;
  /** Where the server's protected resource metadata is. [RFC 9728 5.1] */
  readonly resourceMetadata: URL | undefined;
  /** `invalid_token`, `insufficient_scope`. [RFC 6750 3.1] */
  readonly error: string | undefined;
  readonly scope: string | undefined;
}

const PARAMETER = /([A-Za-z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g;

/** Reads `WWW-Authenticate`. Several challenges are read as one: only one of them names metadata. */
export function parseAuthChallenge(headers: IncomingHttpHeaders): AuthChallenge {
  const text = headers['www-authenticate'] ?? '';
  const parameters = new Map<string, string>();
  for (const [, name = '', quoted, token] of text.matchAll(PARAMETER)) {
    const value = quoted?.replace(/\\(.)/g, '$1') ?? token ?? '';
    if (!parameters.has(name.toLowerCase())) parameters.set(name.toLowerCase(), value);
  }
  const metadata = parameters.get('resource_metadata');
  const isWeb = metadata !== undefined && URL.canParse(metadata) && /^https?:/i.test(metadata);
  return {
    scheme: /^\s*([A-Za-z][A-Za-z0-9-]*)(?=\s|,|$)/.exec(text)?.[1],
    resourceMetadata: isWeb ? new URL(metadata) : undefined,
    error: parameters.get('error'),
    scope: parameters.get('scope'),
  };
}
