/** Decides whether the tokens of a login are bound to a key, and with which algorithm. */
import type { AuthChallenge } from '../client/credentials.ts';
import { showUrl } from '../shown-url.ts';
import type { AuthorizationSetup } from './discover.ts';
import { loginError, quoteOthers } from './login-error.ts';
import { PROOF_ALGORITHMS } from './proof-key.ts';
import { type BindingOptions, TokenBinding } from './token-binding.ts';

export interface BindingRequest {
  readonly server: URL;
  readonly challenge: Pick<AuthChallenge, 'dpop'>;
  readonly setup: Pick<AuthorizationSetup, 'authorizationServer' | 'boundTokens'>;
  /** The kind of token that is sent to the server. An ID token is not bound to a key. */
  readonly token: 'access' | 'id';
  readonly deps: BindingOptions['deps'];
}

/**
 * Creates a key if the server asks for tokens that are bound to one. If only the authorization server supports bound
 * tokens, none is requested, because the server may not know how to handle one; an authorization server that requires
 * proofs says so in a later answer.
 */
export async function bindTokens({ server, challenge, setup, token, deps }: BindingRequest): Promise<TokenBinding> {
  const { authorizationServer: as, boundTokens } = setup;
  const { dpop_signing_alg_values_supported: offered = [] } = as;
  const lists = [offered, boundTokens.algorithms, challenge.dpop?.algorithms].filter((list) => list !== undefined);
  const algorithm = PROOF_ALGORITHMS.find((name) => lists.every((list) => list.includes(name)));
  const isAsked = token === 'access' && (boundTokens.areRequired || challenge.dpop !== undefined);
  const isRequired = isAsked && (boundTokens.areRequired || challenge.dpop?.isOnly === true);
  if (isRequired && algorithm === undefined) {
    const asks = `The server at ${showUrl(server)} takes only tokens that are bound to a key (DPoP)`;
    if (offered.length === 0) {
      const found = 'Its metadata has no dpop_signing_alg_values_supported.';
      throw loginError(`${asks}, and ${as.issuer} does not give any`, `${found} Tell their operators.`);
    }
    const [ofIssuer, ...ofServer] = lists.map((list) => quoteOthers(list.join(' ')));
    const found = [`${as.issuer} takes ${ofIssuer}`, ...ofServer.map((list) => `the server ${list}`)].join(', ');
    const expected = `Expected one of ${PROOF_ALGORITHMS.join(', ')} in each list.`;
    throw loginError(`${asks}, with an algorithm that is not supported: ${found}`, expected);
  }
  const binding = new TokenBinding({ key: undefined, algorithm, isRequired, deps });
  if (isAsked) await binding.begin();
  return binding;
}
