/**
 * Each secret that can be recognized has one of these words, in small or capital letters, as its name or at its
 * beginning. They have three characters or more, so that wherever a word begins, a pair of it begins at an even offset.
 */
const SIGNS: readonly string[] = [
  // Names, schemes and addresses.
  ...['token', 'pass', 'secret', 'key', 'authori', 'cookie'],
  ...['requeststate', 'request_state', 'request-state'],
  ...['bearer', 'basic', '://', ':\\/'],
  // Escapes that may spell any of these.
  ...Array.from('0123456789abcdef', (digit) => `\\u${digit}`),
  // Beginnings of well-known tokens.
  ...['eyj', 'ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'b_pat_'],
  ...['glpat-', 'gldt-', 'glrt-', 'glcbt-', 'glptt-', 'glsoat-', 'sk-'],
  ...['k_live_', 'k_test_', 'whsec_', 'xox', 'xapp-', 'akia', 'asia'],
  ...['aiza', 'ya29.', 'gocspx-', 'npm_', 'pypi-', 'hf_', 'sg.'],
  ...['shpat_', 'shpca_', 'shppa_', 'shpss_', '_v1_', 'lin_api_'],
  ...['figd_', 'glsa_', 'dckr_pat_'],
];
/** The most frequent pairs of English. A word is better found by another pair of its own. */
const COMMON_PAIRS =
  /^(?:th|he|in|er|an|re|nd|at|on|nt|ha|es|st|en|ed|to|it|ou|ea|hi|is|or|ti|as|te|et|ng|of|al|de|se|le|co)$/;
/** A name that most requests of many clients have. It ends with a sign, and is no secret. */
const HARMLESS = 'progresstoken';

const UPPER_A = 0x41;
const UPPER_Z = 0x5a;
/** From a capital letter to its small one. */
const TO_SMALL = 0x20;

/** A sign, and the offset in it of a pair by which it is found. */
type Sign = readonly [word: string, pairAt: number];

/** Signs that are found by the same pair. The first list is empty, for all other pairs. */
const LISTS: Sign[][] = [[]];
/** For each pair of bytes, in any mix of small and capital letters, the index of its list. */
const LIST_OF = new Uint8Array(0x1_00_00);
for (const word of SIGNS) for (const pairAt of [findPair(word, 0), findPair(word, 1)]) add([word, pairAt]);

/** The offset of the first rare pair among those at even, or at odd, offsets. */
function findPair(word: string, parity: 0 | 1): number {
  for (let at = parity; at + 1 < word.length; at += 2) if (!COMMON_PAIRS.test(word.slice(at, at + 2))) return at;
  return parity;
}

function add(sign: Sign): void {
  const [word, at] = sign;
  const pairs = bothCases(word.charCodeAt(at)).flatMap((first) =>
    bothCases(word.charCodeAt(at + 1)).map((second) => (first << 8) | second),
  );
  const [pair = 0] = pairs;
  const index = LIST_OF[pair] || LISTS.push([]) - 1;
  LISTS[index]?.push(sign);
  for (const each of pairs) LIST_OF[each] = index;
}

/** False if the text holds no secret that could be recognized. */
export function mayHoldSecret(text: string): boolean {
  // Bytes are read several times faster than the characters of a string.
  return mayBytesHoldSecret(Buffer.from(text));
}

/** Returns false if the UTF-8 text holds no secret that could be recognized. This loop is nearly all of the cost of a usual message. */
export function mayBytesHoldSecret(text: Uint8Array): boolean {
  const end = text.length - 1;
  for (let at = 0; at < end; at += 2) {
    const pair = ((text[at] as number) << 8) | (text[at + 1] as number); // both < length
    const list = LIST_OF[pair] as number; // an entry for each 16 bits
    if (list !== 0 && isSign(text, list, at)) return true;
  }
  return false;
}

function isSign(text: Uint8Array, list: number, foundAt: number): boolean {
  for (const [word, pairAt] of LISTS[list] ?? []) {
    const start = foundAt - pairAt;
    if (!isAt(text, start, word)) continue;
    if (!HARMLESS.endsWith(word) || !isAt(text, start + word.length - HARMLESS.length, HARMLESS)) return true;
  }
  return false;
}

function isAt(text: Uint8Array, start: number, word: string): boolean {
  if (start < 0 || start + word.length > text.length) return false;
  for (let index = 0; index < word.length; index += 1) {
    if (smallOf(text[start + index] as number) !== word.charCodeAt(index)) return false; // within the text
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
