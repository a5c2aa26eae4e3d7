/**
 * Each secret that can be recognized has one of these words, in small or capital letters, as its name or at its
 * beginning. The second member is the offset of a pair of characters that is rare in other words, by which the word is found.
 */
const SIGNS: readonly (readonly [word: string, rarePair: number])[] = [
  // Names, schemes and addresses, and escapes that may spell any of these.
  ...([
    ['token', 1],
    ['pass', 2],
    ['secret', 2],
    ['key', 1],
    ['authori', 3],
    ['cookie', 2],
  ] as const),
  ...([
    ['requeststate', 2],
    ['request_state', 2],
    ['request-state', 2],
  ] as const),
  ...([
    ['bearer', 3],
    ['basic', 2],
    ['://', 1],
    [':\\/', 0],
    ['\\u', 0],
  ] as const),
  // Beginnings of well-known tokens.
  ...([
    ['eyj', 1],
    ['ghp_', 2],
    ['gho_', 2],
    ['ghu_', 2],
    ['ghs_', 2],
    ['ghr_', 2],
    ['b_pat_', 4],
  ] as const),
  ...([
    ['glpat-', 4],
    ['gldt-', 3],
    ['glrt-', 3],
    ['glcbt-', 4],
    ['glptt-', 4],
    ['glsoat-', 5],
    ['sk-', 1],
  ] as const),
  ...([
    ['k_live_', 0],
    ['k_test_', 0],
    ['whsec_', 4],
    ['xox', 0],
    ['xapp-', 0],
    ['akia', 1],
    ['asia', 2],
  ] as const),
  ...([
    ['aiza', 1],
    ['ya29.', 2],
    ['gocspx-', 4],
    ['npm_', 1],
    ['pypi-', 1],
    ['hf_', 0],
    ['sg.', 0],
  ] as const),
  ...([
    ['shpat_', 1],
    ['shpca_', 1],
    ['shppa_', 1],
    ['shpss_', 1],
    ['_v1_', 0],
    ['lin_api_', 2],
  ] as const),
  ...([
    ['figd_', 2],
    ['glsa_', 2],
    ['dckr_pat_', 0],
  ] as const),
];
/** A name that most requests of many clients have. It ends with a sign, and is no secret. */
const HARMLESS = 'progresstoken';

const ASCII = 128;
/** Small letters by character code. */
const SMALL = new Uint8Array(ASCII);
for (let code = 0; code < ASCII; code += 1) SMALL[code] = String.fromCharCode(code).toLowerCase().charCodeAt(0);

/** The signs by their rare pairs, and for each pair of characters whether there are any. */
const BY_PAIR = new Map<number, (readonly [word: string, rarePair: number])[]>();
const IS_PAIR = new Uint8Array(ASCII * ASCII);
for (const sign of SIGNS) {
  const [word, at] = sign;
  const pair = word.charCodeAt(at) * ASCII + word.charCodeAt(at + 1);
  BY_PAIR.set(pair, [...(BY_PAIR.get(pair) ?? []), sign]);
  IS_PAIR[pair] = 1;
}

/** False if the text holds no secret that could be recognized. Nearly all of the cost of a usual message is this loop. */
export function mayHoldSecret(text: string): boolean {
  let previous = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const small = code < ASCII ? (SMALL[code] as number) : 0; // 128 entries
    const pair = previous * ASCII + small;
    if (IS_PAIR[pair] === 1 && isSign(text, pair, at - 1)) return true;
    previous = small;
  }
  return false;
}

function isSign(text: string, pair: number, pairAt: number): boolean {
  for (const [word, at] of BY_PAIR.get(pair) ?? []) {
    const start = pairAt - at;
    if (!isAt(text, start, word)) continue;
    if (!HARMLESS.endsWith(word) || !isAt(text, start + word.length - HARMLESS.length, HARMLESS)) return true;
  }
  return false;
}

function isAt(text: string, start: number, word: string): boolean {
  if (start < 0 || start + word.length > text.length) return false;
  for (let index = 0; index < word.length; index += 1) {
    const code = text.charCodeAt(start + index);
    if (code >= ASCII || SMALL[code] !== word.charCodeAt(index)) return false;
  }
  return true;
}
