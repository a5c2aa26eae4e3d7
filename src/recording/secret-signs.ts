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

const UPPER_A = 0x41;
const UPPER_Z = 0x5a;
/** From a capital letter to its small one. */
const TO_SMALL = 0x20;

/** The signs by their rare pairs, in each mix of small and capital letters. */
const BY_PAIR = new Map<number, readonly (readonly [word: string, rarePair: number])[]>();
/** For each pair of bytes, 1 if a sign has it. */
const IS_PAIR = new Uint8Array(0x1_00_00);
for (const sign of SIGNS) {
  const [word, at] = sign;
  for (const first of bothCases(word.charCodeAt(at))) {
    for (const second of bothCases(word.charCodeAt(at + 1))) {
      const pair = (first << 8) | second;
      BY_PAIR.set(pair, [...(BY_PAIR.get(pair) ?? []), sign]);
      IS_PAIR[pair] = 1;
    }
  }
}

/** Reads one character code, or one byte of UTF-8. Outside of the text it returns anything but the code of a character. */
type CodeAt = (index: number) => number;

/** False if the text holds no secret that could be recognized. Nearly all of the cost of a usual message is such a loop. */
export function mayHoldSecret(text: string): boolean {
  let pair = 0;
  for (let at = 0; at < text.length; at += 1) {
    // A code beyond 255 may look like a pair that it is none of, which costs one comparison.
    pair = ((pair << 8) | text.charCodeAt(at)) & 0xffff;
    if (IS_PAIR[pair] === 1 && isSign((index) => text.charCodeAt(index), pair, at - 1)) return true;
  }
  return false;
}

/** The same of a text in UTF-8. Bytes are read several times faster than the characters of a string. */
export function mayBytesHoldSecret(text: Uint8Array): boolean {
  let pair = 0;
  for (let at = 0; at < text.length; at += 1) {
    pair = ((pair << 8) | (text[at] as number)) & 0xffff; // at < length
    if (IS_PAIR[pair] === 1 && isSign((index) => text[index] ?? -1, pair, at - 1)) return true;
  }
  return false;
}

function isSign(codeAt: CodeAt, pair: number, pairAt: number): boolean {
  for (const [word, at] of BY_PAIR.get(pair) ?? []) {
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
