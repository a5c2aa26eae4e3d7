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
    ['authori', 0],
    ['cookie', 2],
  ] as const),
  ...([
    ['requeststate', 1],
    ['request_state', 1],
    ['request-state', 1],
  ] as const),
  ...([
    ['bearer', 0],
    ['basic', 0],
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

const UPPER_A = 0x41;
const UPPER_Z = 0x5a;
/** From a capital letter to its small one. */
const TO_SMALL = 0x20;

type Sign = (typeof SIGNS)[number];

/** Signs with the same rare pair. The first list is empty, for all other pairs. */
const LISTS: Sign[][] = [[]];
/** For each pair of bytes, in any mix of small and capital letters, the index of its list. */
const LIST_OF = new Uint8Array(0x1_00_00);
for (const sign of SIGNS) {
  const [word, at] = sign;
  const pairs = bothCases(word.charCodeAt(at)).flatMap((first) =>
    bothCases(word.charCodeAt(at + 1)).map((second) => (first << 8) | second),
  );
  const [pair = 0] = pairs;
  const index = LIST_OF[pair] || LISTS.push([]) - 1;
  LISTS[index]?.push(sign);
  for (const each of pairs) LIST_OF[each] = index;
}

/** False if the text holds no secret that could be recognized. Nearly all of the cost of a usual message is such a loop. */
export function mayHoldSecret(text: string): boolean {
  let pair = 0;
  for (let at = 0; at < text.length; at += 1) {
    // A code beyond 255 may look like a pair that it is none of, which costs one comparison.
    pair = ((pair << 8) | text.charCodeAt(at)) & 0xffff;
    const list = LIST_OF[pair] as number; // an entry for each 16 bits
    if (list !== 0 && isSignInText(text, list, at - 1)) return true;
  }
  return false;
}

/** The same of a text in UTF-8. Bytes are read several times faster than the characters of a string. */
export function mayBytesHoldSecret(text: Uint8Array): boolean {
  let pair = 0;
  for (let at = 0; at < text.length; at += 1) {
    pair = ((pair << 8) | (text[at] as number)) & 0xffff; // at < length
    const list = LIST_OF[pair] as number; // an entry for each 16 bits
    if (list !== 0 && isSignInBytes(text, list, at - 1)) return true;
  }
  return false;
}

/** Reads one character code, or one byte of UTF-8. Outside of the text it returns anything but the code of a character. */
type CodeAt = (index: number) => number;

// The closures are made outside of the loops, which would read a captured text far more slowly.

function isSignInText(text: string, list: number, pairAt: number): boolean {
  return isSign((index) => text.charCodeAt(index), list, pairAt);
}

function isSignInBytes(text: Uint8Array, list: number, pairAt: number): boolean {
  return isSign((index) => text[index] ?? -1, list, pairAt);
}

function isSign(codeAt: CodeAt, list: number, pairAt: number): boolean {
  for (const [word, at] of LISTS[list] ?? []) {
    const start = pairAt - at;
    if (!isAt(codeAt, start, word)) continue;
    if (!HARMLESS.endsWith(word) || !isAt(codeAt, start + word.length - HARMLESS.length, HARMLESS)) return true;
  }
  return false;
}

function isAt(codeAt: CodeAt, start: number, word: string): boolean {
  for (let index = 0; index < word.length; index += 1) {
    if (smallOf(codeAt(start + index)) !== word.charCodeAt(index)) return false;
  }
  return true;
}

/** Returns the small letter for a capital letter of ASCII, and any other code as it is. */
function smallOf(code: number): number {
  return code >= UPPER_A && code <= UPPER_Z ? code + TO_SMALL : code;
}

function bothCases(small: number): readonly number[] {
  const capital = small - TO_SMALL;
  return capital >= UPPER_A && capital <= UPPER_Z ? [small, capital] : [small];
}
