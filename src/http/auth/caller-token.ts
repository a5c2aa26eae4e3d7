/** The token of a caller, and its claims about the caller besides the subject. */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { asFields } from '../../mcp/vocabulary/payload.ts';

/** Tolerance in seconds for the difference between the clocks of two machines. */
export const CLOCK_TOLERANCE_S = 30;

/** An access token of the issuer that was verified when its request was admitted. */
export interface CallerToken {
  readonly token: string;
  /** A digest that is equal for all tokens of one caller, which have the same subject, client and scopes. */
  readonly caller: string;
  /**
   * The time of issue in seconds since 1970, which tells the later of two tokens; the expiry if the token does not
   * contain it.
   */
  readonly issuedAt: number;
  /** The time in milliseconds since 1970 after which the token is no longer accepted. */
  readonly endsAtMs: number;
}

/** Returns the token of a request, without checking it; undefined for schemes other than `Bearer`. */
export function presentedToken({ headers }: IncomingMessage): string | undefined {
  return /^Bearer +(\S.*)$/i.exec(headers.authorization ?? '')?.[1]?.trimEnd();
}

/**
 * Reads a token that was verified before, so its signature is not checked again.
 * @param principal the name with which the caller was admitted
 * @returns undefined if the name does not come from the token, because the user has handed it out
 */
export function readCallerToken(token: string, principal: string): CallerToken | undefined {
  const claims = readClaims(token);
  const { iss, sub, exp, iat } = claims;
  if (principalOf(iss, sub) !== principal || typeof exp !== 'number') return undefined;
  // Issuers that do not follow RFC 9068 name the client in other claims: Keycloak and Auth0, Entra, Okta.
  const client = claims.client_id ?? claims.azp ?? claims.appid ?? claims.cid;
  const text = JSON.stringify([principal, client, [...scopesOf(claims)].sort()]);
  const caller = createHash('sha256').update(text).digest('base64url');
  return { token, caller, issuedAt: typeof iat === 'number' ? iat : exp, endsAtMs: (exp + CLOCK_TOLERANCE_S) * 1000 };
}

/**
 * Returns the principal for a token. An issuer has no fragment [RFC 8414 2], so two callers never get the same name.
 */
export function principalOf(issuer: unknown, subject: unknown): string {
  return `${issuer}#${subject}`;
}

/** [RFC 8693 4.2] `scope` is text with spaces; some issuers use `scp`, which is text or a list. */
export function scopesOf({ scope, scp }: Readonly<Record<string, unknown>>): ReadonlySet<unknown> {
  const named = scope ?? scp;
  if (typeof named === 'string') return new Set(named.split(' '));
  return new Set(Array.isArray(named) ? named : []);
}

function readClaims(token: string): Readonly<Record<string, unknown>> {
  try {
    return asFields(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())) ?? {};
  } catch {
    return {};
  }
}
