/** The token that a caller has shown, and what it says of the caller besides the subject. */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { asFields } from '../../mcp/vocabulary/payload.ts';

/** Clocks of two machines differ by seconds. */
export const CLOCK_TOLERANCE_S = 30;

/** An access token of the issuer, which was checked when its request was let in. */
export interface CallerToken {
  readonly token: string;
  /** A digest that is equal for all tokens of one caller: those of one subject, for one client, with the same scopes. */
  readonly caller: string;
  /** Seconds since 1970, by which the later of two tokens is found; where the token does not say, when it expires. */
  readonly issuedAt: number;
  /** Milliseconds since 1970 after which the token lets nobody in any more. */
  readonly endsAtMs: number;
}

/** The token of a request; undefined for other schemes. What follows `Bearer` is returned as it is. */
export function presentedToken({ headers }: IncomingMessage): string | undefined {
  return /^Bearer +(\S.*)$/i.exec(headers.authorization ?? '')?.[1]?.trimEnd();
}

/**
 * Reads a token that was checked before, which is why its signature does not matter here.
 * @param principal the name that the caller was let in by
 * @returns undefined where the name does not come from the token, which is one that the user has handed out
 */
export function readCallerToken(token: string, principal: string): CallerToken | undefined {
  const claims = readClaims(token);
  const { iss, sub, exp, iat } = claims;
  if (principalOf(iss, sub) !== principal || typeof exp !== 'number') return undefined;
  // Issuers from before RFC 9068 name the client in other claims: Keycloak and Auth0, Entra, Okta.
  const client = claims.client_id ?? claims.azp ?? claims.appid ?? claims.cid;
  const text = JSON.stringify([principal, client, [...scopesOf(claims)].sort()]);
  const caller = createHash('sha256').update(text).digest('base64url');
  return { token, caller, issuedAt: typeof iat === 'number' ? iat : exp, endsAtMs: (exp + CLOCK_TOLERANCE_S) * 1000 };
}

/** The name of whoever shows a token. An issuer has no fragment [RFC 8414 2], so two callers never come to the same text. */
export function principalOf(issuer: unknown, subject: unknown): string {
  return `${issuer}#${subject}`;
}

/** [RFC 8693 4.2] `scope` is text with spaces; some issuers write `scp`, as text or as a list. */
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
