import { stemmer } from 'stemmer';
import { conceptsOf } from './synonyms.ts';

/** Longer words are cut. They are no words of a language, and the cost of finding typing mistakes grows with the length. */
const MAX_WORD_LENGTH = 32;
/** Limit of words whose terms are remembered, because peers choose the words. Beyond it all are forgotten. */
const MAX_KNOWN_WORDS = 100_000;

/** Words of English that say nothing of a tool. A query of such words alone keeps them. */
const STOP_WORDS = new Set(
  (
    'a about after again all also am an and any are as at be because been before being between both but by can could ' +
    'did do does doing during each every for from had has have having he her here hers him his how i if in into is ' +
    'it its just let lets like may me might mine more most must my need needs no nor not of off on once one only ' +
    'onto or other our ours out over own please shall she should so some such than that the their theirs them then ' +
    'there these they this those to too under until up us very want wants was we were what when where whether which ' +
    'while who whom whose why will with within without would you your yours'
  ).split(' '),
);
/** Stop words that say a little in a question: `which` asks for a list, `who` for a person. */
const QUESTION_WORDS = new Set(['which', 'who']);
const QUESTION_WORD_WEIGHT = 0.5;

/** Words that are no form of the one that the stemmer takes them for. */
const UNSTEMMED = new Set(['news']);

const NOT_ASCII = /[^\0-\x7f]/;
const ASCII_WORDS = /[A-Za-z0-9]+/g;
const WORDS = /[\p{L}\p{N}\p{M}]+/gu;
/** In other scripts, marks are letters of their own. */
const ACCENTS = /(?<=\p{Script=Latin})\p{M}+/gu;
/** Places inside an identifier where a word begins, as in `getUser` and `XMLFile`. */
const CAMEL_HUMPS = /(?<=[\p{Ll}\p{N}])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u;
/** Scripts that write words without spaces between them. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;

/** A word of a query, as terms of the index. */
export interface QueryWord {
  readonly term: string;
  /** Terms of the concepts that the word stands for. */
  readonly concepts: readonly string[];
  /** 1, or less for a word that says little. */
  readonly weight: number;
}

/**
 * Turns names, descriptions and queries into the terms of an index. A word becomes its stem, so that it is found in the
 * singular and the plural, and the concepts that it stands for, so that it is found by its synonyms.
 */
export class TermReader {
  /** Terms by word in lower case. Finding the stem takes longer than all else, and most words occur often. */
  readonly #known = new Map<string, readonly string[]>();
  #newWords = 0;

  /** Number of words read so far that were not known before. */
  get newWords(): number {
    return this.#newWords;
  }

  /** The terms of a text, without the stop words. */
  ofText(text: string): string[] {
    const terms: string[] = [];
    for (const word of wordsOf(text)) {
      const small = word.toLowerCase();
      if (!STOP_WORDS.has(small)) terms.push(...this.#termsOf(small));
    }
    return terms;
  }

  /**
   * The terms of names such as `get_userName`. A name in camelCase counts as its parts and as one word, since brands
   * such as GitHub are written so.
   */
  ofNames(names: string): string[] {
    const terms: string[] = [];
    for (const word of wordsOf(names)) {
      const parts = word.split(CAMEL_HUMPS);
      if (parts.length > 1) parts.push(word);
      for (const part of parts) terms.push(...this.#termsOf(part.toLowerCase()));
    }
    return terms;
  }

  /** The different words of a query in their order, without stop words unless there are no others. */
  ofQuery(query: string): readonly QueryWord[] {
    // A capital letter first is rather a brand than an identifier.
    const words = wordsOf(query).flatMap((word) => (/^\p{Ll}/u.test(word) ? word.split(CAMEL_HUMPS) : [word]));
    const small = words.map((word) => word.toLowerCase());
    const telling = small.filter((word) => !STOP_WORDS.has(word) || QUESTION_WORDS.has(word));
    const found = new Map<string, QueryWord>();
    for (const word of telling.length > 0 ? telling : small) {
      const [term, ...concepts] = this.#termsOf(word);
      const weight = QUESTION_WORDS.has(word) ? QUESTION_WORD_WEIGHT : 1;
      if (term !== undefined) found.set(term, { term, concepts, weight });
    }
    return [...found.values()];
  }

  #termsOf(word: string): readonly string[] {
    const known = this.#known.get(word);
    if (known !== undefined) return known;
    const stem = UNSTEMMED.has(word) ? word : stemmer(word);
    const terms = [stem, ...conceptsOf(word, stem)];
    if (this.#known.size >= MAX_KNOWN_WORDS) this.#known.clear();
    this.#known.set(word, terms);
    this.#newWords += 1;
    return terms;
  }
}

/** The words as they are written, but for accents of Latin letters. */
function wordsOf(text: string): readonly string[] {
  if (!NOT_ASCII.test(text)) return (text.match(ASCII_WORDS) ?? []).map(cut);
  const words = text.normalize('NFKD').replace(ACCENTS, '').normalize('NFC').match(WORDS) ?? [];
  return words.flatMap((word) => (UNSPACED.test(word) ? pairsOf(word) : [cut(word)]));
}

function cut(word: string): string {
  return word.length > MAX_WORD_LENGTH ? word.slice(0, MAX_WORD_LENGTH) : word;
}

/** Takes each pair of neighboring characters for a word, where spaces do not show the words. */
function pairsOf(text: string): readonly string[] {
  const characters = [...text];
  if (characters.length < 2) return characters;
  return characters.slice(1).map((character, index) => `${characters[index]}${character}`);
}
