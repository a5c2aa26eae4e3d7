/**
 * Names of members, parameters and variables whose values are secrets, in any spelling: `clientSecret`, `client_secret`,
 * `Client-Secret` and `CLIENT SECRET` are one name.
 */

/** Names that are secret wherever they occur in a name. `secretary` is none. */
const WITHIN = /passw(?:or)?d|passphrase|secret(?!ar)|apikey|privatekey|authori[sz]ation|cookie/;
/**
 * A token is secret where it is what the name is about: `accessToken`, `token2`, but not the counts `maxTokens` and
 * `tokenCount`, and not the token by which a call's progress is recognized.
 */
const TOKEN = /(?<!progress)token(?:value|text|secret|hash|header|v?\d+)?$/;
/** Several tokens are secret where they are not a count. */
const TOKENS = /(?:access|refresh|auth|api|bearer|session)tokens$/;
/**
 * The handle by which a client continues a call that has asked it something. Whoever has it may speak for that client.
 * [spec 2026-07-28 basic/patterns/mrtr]
 */
const STATE = /^requeststate$/;

/** A name without any of these is no name of a secret, as nearly all are. */
const SIGNS = /token|pass|secret|key|authori|cookie|state/i;
/** Longer names are no names, and reading only their ends keeps them cheap. */
const MAX_NAME_LENGTH = 200;

export function isSecretName(name: string): boolean {
  if (!SIGNS.test(name)) return false;
  const short = name.length <= MAX_NAME_LENGTH ? name : name.slice(0, MAX_NAME_LENGTH) + name.slice(-MAX_NAME_LENGTH);
  const plain = short.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  return WITHIN.test(plain) || TOKEN.test(plain) || TOKENS.test(plain) || STATE.test(plain);
}
