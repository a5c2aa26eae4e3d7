import { BridgeError, type ErrorCode } from '../../errors.ts';
import type { AuthRefusal } from './authenticator.ts';

/** What a client needs to know to get a token that is taken here. */
export interface TokenHints {
  /** Where the protected resource metadata is; undefined: tokens are handed out by hand. [RFC 9728 5.1] */
  readonly resourceMetadata: string | undefined;
  /** Scopes a token needs, all of them. */
  readonly scopes: readonly string[];
}

/** Why a request is refused, in the words of the client's log. */
export type RefusalCause =
  | { readonly kind: 'missing' }
  /** The request itself is at fault, whatever token it has. */
  | { readonly kind: 'malformed'; readonly reason: string }
  | { readonly kind: 'invalid'; readonly reason: string }
  | { readonly kind: 'scope' }
  | { readonly kind: 'unavailable'; readonly error: BridgeError };

const CODES = {
  missing: 'ERR_AUTH_REQUIRED',
  malformed: 'ERR_AUTH_REQUEST',
  invalid: 'ERR_AUTH_TOKEN',
  scope: 'ERR_AUTH_SCOPE',
} as const satisfies Record<string, ErrorCode>;

/** [RFC 6750 3.1] Nothing is said of an error to who has shown nothing. */
const RFC_ERRORS = {
  missing: undefined,
  malformed: 'invalid_request',
  invalid: 'invalid_token',
  scope: 'insufficient_scope',
} as const;

export function refuse(cause: RefusalCause, hints: TokenHints): AuthRefusal {
  if (cause.kind === 'unavailable') return { error: cause.error, challenge: undefined };
  const message = describe(cause, hints);
  return { error: new BridgeError(CODES[cause.kind], message), challenge: renderChallenge(cause, hints) };
}

function describe(cause: Exclude<RefusalCause, { kind: 'unavailable' }>, { scopes }: TokenHints): string {
  switch (cause.kind) {
    case 'missing':
      return 'Only known callers are served here; send a token in the header Authorization: Bearer <token>.';
    case 'malformed':
      return cause.reason;
    case 'invalid':
      return `The token is not accepted: ${cause.reason}.`;
    case 'scope':
      return `The token lacks a scope; required: ${scopes.join(' ')}.`;
  }
}

/**
 * [spec 2025-11-25 basic/authorization#protected-resource-metadata-discovery-requirements] The scopes go with every
 * challenge, so that a client asks for the right ones at once.
 */
function renderChallenge(cause: RefusalCause & { kind: keyof typeof CODES }, hints: TokenHints): string {
  const error = RFC_ERRORS[cause.kind];
  const parameters = [
    ...(error === undefined ? [] : [`error=${quote(error)}`]),
    ...('reason' in cause ? [`error_description=${quote(cause.reason)}`] : []),
    ...(hints.scopes.length === 0 ? [] : [`scope=${quote(hints.scopes.join(' '))}`]),
    ...(hints.resourceMetadata === undefined ? [] : [`resource_metadata=${quote(hints.resourceMetadata)}`]),
  ];
  return ['Bearer', parameters.join(', ')].join(' ').trimEnd();
}

/** [RFC 6750 3] allows fewer characters in these values than a quoted string could hold. */
function quote(text: string): string {
  return `"${text.replaceAll(/[^\x20-\x7e]|["\\]/g, '')}"`;
}
