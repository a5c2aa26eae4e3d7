/**
 * A text in which none of these occurs, in small letters, holds no secret that could be recognized. A search for a word
 * is native code, so all of them together take a tenth of the time of one regular expression.
 */
const SIGNS: readonly string[] = [
  // Names.
  ...['token', 'pass', 'secret', 'key', 'authori', 'cookie', 'requeststate', 'request_state', 'request-state'],
  // Schemes, addresses, and escapes that may spell any of these.
  ...['bearer', 'basic', '://', ':\\/', '\\u'],
  // Beginnings of well-known tokens.
  ...[
    'eyj',
    'ghp_',
    'gho_',
    'ghu_',
    'ghs_',
    'ghr_',
    'b_pat_',
    'glpat-',
    'gldt-',
    'glrt-',
    'glcbt-',
    'glptt-',
    'glsoat-',
  ],
  ...[
    'sk-',
    'k_live_',
    'k_test_',
    'whsec_',
    'xox',
    'xapp-',
    'akia',
    'asia',
    'aiza',
    'ya29.',
    'gocspx-',
    'npm_',
    'pypi-',
  ],
  ...['hf_', 'sg.', 'shpat_', 'shpca_', 'shppa_', 'shpss_', '_v1_', 'lin_api_', 'figd_', 'glsa_', 'dckr_pat_'],
];
/** Most requests of many clients have this member, which is no secret. */
const HARMLESS = 'progresstoken';
/** Shorter texts hold no name with a value, and no token. */
const MIN_LENGTH = 6;

export function mayHoldSecret(text: string): boolean {
  if (text.length < MIN_LENGTH) return false;
  const small = text.toLowerCase();
  const searched = small.includes(HARMLESS) ? small.replaceAll(HARMLESS, '') : small;
  for (const sign of SIGNS) if (searched.includes(sign)) return true;
  return false;
}
