/**
 * Hides what looks like a credential in a text of any kind. Each pattern reads a text in linear time: its starts cannot
 * lie within each other, or what follows a start is limited.
 */
import { HIDDEN } from './recorded-message.ts';
import { isSecretName } from './secret-names.ts';
import { mayHoldSecret } from './secret-signs.ts';

export interface HiddenText {
  readonly text: string;
  /** Number of hidden parts. */
  readonly hidden: number;
}

/** Tokens that are recognized by how they begin: those of GitHub, GitLab, OpenAI, Anthropic, Stripe, Slack, AWS and others. */
const KNOWN_TOKENS = [
  'gh[pousr]_\\w{6,}',
  'github_pat_\\w{6,}',
  'gl(?:pat|dt|rt|cbt|ptt|soat)-[\\w-]{6,}',
  'sk-(?=[\\w-]*\\d)[\\w-]{12,}',
  '[spr]k_(?:live|test)_\\w{6,}',
  'whsec_\\w{6,}',
  'xox[a-z]-[\\w-]{6,}',
  'xapp-[\\w-]{6,}',
  'A[KS]IA[0-9A-Z]{12,}',
  'AIza[\\w-]{20,}',
  'ya29\\.[\\w-]{6,}',
  'GOCSPX-[\\w-]{6,}',
  'npm_\\w{20,}',
  'pypi-[\\w-]{16,}',
  'hf_[A-Za-z]{20,}',
  'SG\\.[\\w-]{10,}\\.[\\w-]{10,}',
  'shp(?:at|ca|pa|ss)_\\w{10,}',
  'do[opr]_v1_\\w{10,}',
  'lin_api_\\w{10,}',
  'figd_[\\w-]{10,}',
  'glsa_\\w{10,}',
  'dckr_pat_[\\w-]{10,}',
  'eyJ[\\w-]{5,}\\.[\\w-]+(?:\\.[\\w-]*)?',
].join('|');

/** Words that follow "Bearer" in prose, and the parameters of a challenge. Anything else is a credential. */
const NO_CREDENTIAL =
  /^(?:tokens?|auth\w*|credentials?|schemes?|headers?|type|formats?|prefix|is|are|was|of|or|and|for|in|with|from|to|the|a|an|only|must|should|can|\w+=.*)[.,;:!?)]*$/i;

type Replace = (match: string, ...groups: string[]) => string | undefined;

/**
 * Patterns, with what each match becomes; undefined: it stays. Those that read a name and its value come first, so that
 * a value is not hidden twice.
 */
const PATTERNS: readonly (readonly [RegExp, Replace])[] = [
  // Lines of an environment file, and header fields.
  [
    /^((?:export[ \t]{1,8})?([A-Za-z][\w-]{0,100})[ \t]{0,8}[=:][ \t]{0,8})(\S.*)$/gm,
    (_match, before = '', name = '') => (isSecretName(name) ? `${before}${HIDDEN}` : undefined),
  ],
  // JSON within a text, as many tools return it.
  [
    /("[\w .-]{1,100}"\s{0,8}:\s{0,8})("[^"\\]*(?:\\[\s\S][^"\\]*)*"?|[^\s",[\]{}]+)/g,
    (_match, name = '') => (isSecretName(name) ? `${name}"${HIDDEN}"` : undefined),
  ],
  // Parameters of URLs and of forms.
  [
    /([?&#;]|^)([\w.~%[\]-]{1,100})=([^\s&#;"'<>\\]+)/g,
    (_match, before = '', name = '', value = '') =>
      isSecretName(name) && value !== HIDDEN ? `${before}${name}=${HIDDEN}` : undefined,
  ],
  [/:\/\/[^\s/?#@"'<>]{1,1000}@/g, (match) => (match.includes(':', 3) ? `://${HIDDEN}@` : undefined)],
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g, () => HIDDEN],
  [new RegExp(`(?<![\\w-])(?:${KNOWN_TOKENS})`, 'g'), () => HIDDEN],
  [
    /\b(bearer[ \t]{1,8})([^\s"'<>,;\\]{3,})/gi,
    (_match, scheme = '', credential = '') =>
      credential === HIDDEN || NO_CREDENTIAL.test(credential) ? undefined : `${scheme}${HIDDEN}`,
  ],
  [
    /\b(basic[ \t]{1,8})([\w+/-]{4,}={0,2})/gi,
    (_match, scheme = '', credential = '') => (isUserAndPassword(credential) ? `${scheme}${HIDDEN}` : undefined),
  ],
];

export function hideInText(text: string): HiddenText {
  if (!mayHoldSecret(text)) return { text, hidden: 0 };
  let hidden = 0;
  let shown = text;
  for (const [pattern, replace] of PATTERNS) {
    shown = shown.replace(pattern, (match: string, ...groups: string[]) => {
      const replaced = replace(match, ...groups);
      if (replaced === undefined) return match;
      hidden += 1;
      return replaced;
    });
  }
  return { text: shown, hidden };
}

/** Returns true for the credential of HTTP's Basic scheme. [RFC 7617] */
function isUserAndPassword(credential: string): boolean {
  return /^[\x20-\x39\x3b-\x7e]*:[\x20-\x7e]*$/.test(Buffer.from(credential, 'base64').toString('latin1'));
}
