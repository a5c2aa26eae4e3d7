/** The seam to the JWT library, which is loaded only where it is used. */
import type { BridgeError } from '../../errors.ts';

export type JwtOutcome =
  | { readonly kind: 'principal'; readonly principal: string }
  /** Whoever sent it has to get another. */
  | { readonly kind: 'invalid'; readonly reason: string }
  /** Good, but not for this. */
  | { readonly kind: 'scope' }
  /** Nobody can tell now; nobody comes in either. */
  | { readonly kind: 'unavailable'; readonly error: BridgeError };

export interface JwtVerifier {
  /** Calls `done` once, before it returns for a token that was seen a moment ago. */
  verify(token: string, done: (outcome: JwtOutcome) => void): void;
}
