import { setImmediate as turn } from 'node:timers/promises';
import MiniSearch, { type Query } from 'minisearch';
import { type IndexedTool, TEXTS } from './indexed-tool.ts';
import { type QueryWord, TermReader } from './words.ts';

/**
 * Limits of the index, because servers fill it: tools, characters of their texts, and different words in them. Each word
 * takes about 600 bytes, and descriptions in English have a few ten thousand.
 */
export const INDEX_LIMITS = { tools: 20_000, characters: 12 * 1024 * 1024, words: 120_000 };
/** A server may use a quarter of each limit, so that an endless list leaves room for those of others. */
export const SERVER_LIMITS = {
  tools: INDEX_LIMITS.tools / 4,
  characters: INDEX_LIMITS.characters / 4,
  words: INDEX_LIMITS.words / 4,
};

/** Limit of words in a query; each is searched by itself. Further ones are ignored. */
const MAX_QUERY_WORDS = 16;

/** Work between two turns of the event loop: characters that are indexed, and tools that one word finds. */
const CHARACTERS_OF_A_TURN = 8 * 1024;
const RESULTS_OF_A_TURN = 1000;

/** A tool that fits a query. A higher score is a better fit; scores of different queries cannot be compared. */
export interface Found {
  readonly tool: IndexedTool;
  readonly score: number;
}

type Text = (typeof TEXTS)[number];

/** Weight of a word by the text of a tool that has it. */
const BOOST: Readonly<Record<Text, number>> = {
  name: 3,
  title: 2,
  summary: 2,
  details: 0.7,
  parameters: 0.7,
  parameterTexts: 0.3,
};
const NAMES: ReadonlySet<string> = new Set<Text>(['name', 'parameters']);

/** Weight of a word in the coverage if a tool has only a synonym, which may mean something else there. */
const SYNONYM_CERTAINTY = 0.8;
/** Shorter words begin too many others. */
const MIN_PREFIX = 3;
/** Shorter words are near to too many others. */
const MIN_FUZZY = 4;
/** Longer words may have two typing mistakes. */
const MIN_TWICE_FUZZY = 8;
/** Factor for a tool whose name is the query. */
const NAMED_BOOST = 10;
/** Weight of a word in the coverage if a tool has only one spelled alike, which may be another word. */
const FUZZY_CERTAINTY = 0.5;
/** Factor for a word of the query that is the name of the tool's server. */
const SERVER_BOOST = 2;

/**
 * Finds tools of several servers by what they do. A tool ranks high if its name, title and first sentence have many of
 * the query's words. Changes are indexed with the next search, a part at each turn of the event loop, so that a server
 * that changes its list all the time costs nothing until somebody searches, and never blocks other calls.
 */
export class ToolIndex {
  readonly #terms = new TermReader();
  readonly #index = new MiniSearch<IndexedTool>({
    idField: 'name',
    fields: [...TEXTS],
    tokenize: (text, field) => (NAMES.has(field ?? '') ? this.#terms.ofNames(text) : this.#terms.ofText(text)),
    processTerm: (term) => term,
    // Removed tools leave nothing behind that a timer would have to clean.
    autoVacuum: false,
  });
  readonly #servers = new Map<string, ServerTools>();
  /** The tools by name, as they are in the index now. */
  readonly #indexed = new Map<string, Entry>();
  /** Names of tools whose entry in the index may have to change. */
  readonly #changed = new Set<string>();
  #tools = 0;
  #characters = 0;
  #words = 0;

  /** The servers of which some tools cannot be found because the index is full, and how many. */
  get leftOut(): ReadonlyMap<string, number> {
    const servers = [...this.#servers].filter(([, { leftOut }]) => leftOut > 0);
    return new Map(servers.map(([server, { leftOut }]) => [server, leftOut]));
  }

  /** Sets the tools of a server. Tools beyond the limits are left out. */
  replace(server: string, tools: readonly IndexedTool[]): void {
    const words = this.#servers.get(server)?.words ?? 0;
    this.remove(server);
    const added: ServerTools = {
      tools: new Map(),
      characters: 0,
      words,
      leftOut: 0,
      terms: new Set(this.#terms.ofNames(server)),
    };
    for (const tool of tools) {
      if (added.tools.has(tool.name)) continue;
      if (this.#isTooMuch(added, tool)) {
        added.leftOut += 1;
        continue;
      }
      added.tools.set(tool.name, tool);
      added.characters += lengthOf(tool);
      this.#changed.add(tool.name);
    }
    this.#servers.set(server, added);
    this.#tools += added.tools.size;
    this.#characters += added.characters;
  }

  #isTooMuch(added: ServerTools, tool: IndexedTool): boolean {
    const tools = added.tools.size + 1;
    const characters = added.characters + lengthOf(tool);
    return (
      tools > SERVER_LIMITS.tools ||
      characters > SERVER_LIMITS.characters ||
      this.#tools + tools > INDEX_LIMITS.tools ||
      this.#characters + characters > INDEX_LIMITS.characters
    );
  }

  remove(server: string): void {
    const removed = this.#servers.get(server);
    if (removed === undefined) return;
    this.#servers.delete(server);
    this.#tools -= removed.tools.size;
    this.#characters -= removed.characters;
    for (const name of removed.tools.keys()) this.#changed.add(name);
  }

  /**
   * Returns the tools that fit best, the best first.
   * @param isShown returns true for servers whose tools may be found; default: all
   */
  async search(
    query: string,
    limit: number,
    isShown: (server: string) => boolean = () => true,
  ): Promise<readonly Found[]> {
    await this.#indexChanges();
    const words = this.#terms.ofQuery(query).slice(0, MAX_QUERY_WORDS);
    const matches = new Map<string, Match>();
    let results = 0;
    for (const word of words) {
      const found = this.#searchWord(word);
      this.#addMatches(matches, word, found);
      results += found.size;
      if (results < RESULTS_OF_A_TURN) continue;
      results = 0;
      await turn();
    }
    const named = plainName(query);
    const found: Found[] = [];
    for (const [name, { score, coverage }] of matches) {
      const tool = this.#indexed.get(name)?.tool;
      if (tool === undefined || !isShown(tool.server)) continue;
      found.push({ tool, score: score * coverage * (isNamed(tool, named) ? NAMED_BOOST : 1) });
    }
    return found.sort(compareFound).slice(0, limit);
  }

  /** Adds the tools that one word of the query finds. The fewer tools have a word, the more it says. */
  #addMatches(matches: Map<string, Match>, { term, weight }: QueryWord, found: ReadonlyMap<string, WordMatch>): void {
    const rarity = Math.log(1 + this.#indexed.size / Math.max(1, found.size));
    const named = new Set([...this.#servers].filter(([, { terms }]) => terms.has(term)).map(([server]) => server));
    for (const [name, { score, certainty }] of found) {
      const match = matches.get(name) ?? { score: 0, coverage: 0 };
      const server = this.#indexed.get(name)?.tool.server;
      const isOfServer = server !== undefined && named.has(server);
      match.score += score * weight;
      match.coverage += certainty * rarity * weight * (isOfServer ? SERVER_BOOST : 1);
      matches.set(name, match);
    }
  }

  /** Finds the tools that have this word, or one that begins with it or means the same, or else one spelled alike. */
  #searchWord({ term, concepts }: QueryWord): ReadonlyMap<string, WordMatch> {
    const found = new Map<string, WordMatch>();
    for (const { id, score } of this.#searchTerms({ queries: [term], prefix: term.length >= MIN_PREFIX })) {
      found.set(id, { score, certainty: 1 });
    }
    for (const concept of concepts) {
      for (const { id, score } of this.#searchTerms({ queries: [concept] })) {
        const known = found.get(id);
        // The best counts, not the sum: a tool that says the same in three ways does not fit three times as well.
        if (known === undefined) found.set(id, { score, certainty: SYNONYM_CERTAINTY });
        else if (known.score < score) found.set(id, { score, certainty: known.certainty });
      }
    }
    return found.size > 0 ? found : this.#searchMisspelled(term);
  }

  #searchMisspelled(term: string): ReadonlyMap<string, WordMatch> {
    if (term.length < MIN_FUZZY || /\d/.test(term)) return new Map();
    const fuzzy = term.length < MIN_TWICE_FUZZY ? 1 : 2;
    // The stem of a misspelled word may end in a letter that the right one does not have.
    const stems = { queries: [...new Set([term, term.replace(/e$/, '')])], fuzzy };
    const found = this.#searchTerms({ queries: [stems, { queries: swapsOf(term) }] });
    return new Map(found.map(({ id, score }) => [id, { score, certainty: FUZZY_CERTAINTY }]));
  }

  /** MiniSearch multiplies by the number of terms found. Here all are of one word, so that is undone. */
  #searchTerms(query: Query): readonly { readonly id: string; readonly score: number }[] {
    // The query consists of terms already.
    const results = this.#index.search(query, { tokenize: (term) => [term], boost: BOOST });
    return results.map(({ id, score, queryTerms }) => ({ id, score: score / Math.max(1, queryTerms.length) }));
  }

  /** Indexes all changes made until now. A change made meanwhile waits for the next search. */
  async #indexChanges(): Promise<void> {
    let characters = 0;
    for (const name of [...this.#changed]) {
      // Another search may have done it.
      if (this.#changed.delete(name)) characters += this.#indexChange(name);
      if (characters < CHARACTERS_OF_A_TURN) continue;
      characters = 0;
      await turn();
    }
  }

  /** Brings the entry of one tool up to date. Returns how many characters were read for it. */
  #indexChange(name: string): number {
    const before = this.#indexed.get(name);
    const owner = this.#ownerOf(name);
    const after = owner?.tools.get(name);
    if (before !== undefined && after !== undefined && isEqual(before.tool, after)) return 0;
    const removed = before === undefined ? 0 : this.#unindex(before);
    if (owner === undefined || after === undefined) return removed;
    if (owner.words < SERVER_LIMITS.words && this.#words < INDEX_LIMITS.words) return removed + this.#add(after, owner);
    owner.leftOut += 1;
    return removed;
  }

  #ownerOf(name: string): ServerTools | undefined {
    for (const server of this.#servers.values()) if (server.tools.has(name)) return server;
    return undefined;
  }

  #add(tool: IndexedTool, owner: ServerTools): number {
    const known = this.#terms.newWords;
    this.#index.add(tool);
    const words = this.#terms.newWords - known;
    this.#indexed.set(tool.name, { tool, words });
    owner.words += words;
    this.#words += words;
    return lengthOf(tool);
  }

  #unindex({ tool, words }: Entry): number {
    this.#index.remove(tool);
    this.#indexed.delete(tool.name);
    const owner = this.#servers.get(tool.server);
    // A server that was removed and came back begins anew.
    if (owner !== undefined) owner.words = Math.max(0, owner.words - words);
    this.#words -= words;
    return lengthOf(tool);
  }
}

/** A tool in the index, and how many words no other tool had before. */
interface Entry {
  readonly tool: IndexedTool;
  readonly words: number;
}

/** The tools of a server as they should be found. */
interface ServerTools {
  readonly tools: Map<string, IndexedTool>;
  characters: number;
  /** Number of words that the server brought into the index. */
  words: number;
  /** Number of tools beyond the limits. */
  leftOut: number;
  /** The words of the server's name. */
  readonly terms: ReadonlySet<string>;
}

/** A name, or what may be one, whatever its case and its marks. */
function plainName(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '_');
}

/** Returns true if the query is the tool's name, with or without the prefix of its server. */
function isNamed({ name }: IndexedTool, query: string): boolean {
  return plainName(name) === query || plainName(name.slice(name.indexOf('__') + 1)) === `_${query}`;
}

/** The term with two neighboring letters swapped, which is one typing mistake, but two for MiniSearch. */
function swapsOf(term: string): string[] {
  return Array.from({ length: term.length - 1 }, (_, index) => {
    const [one, other] = [term.charAt(index), term.charAt(index + 1)];
    return `${term.slice(0, index)}${other}${one}${term.slice(index + 2)}`;
  });
}

/** A tool's fit to one word of a query. */
interface WordMatch {
  readonly score: number;
  /** 1 if the tool has the word itself. */
  readonly certainty: number;
}

/** A tool's fit to a whole query: the sum of its scores, and the words that it has, each by its rarity. */
interface Match {
  score: number;
  coverage: number;
}

function compareFound(one: Found, other: Found): number {
  // Equal tools are ordered by name, so that the order does not depend on which server was first.
  return other.score - one.score || (one.tool.name < other.tool.name ? -1 : 1);
}

function lengthOf(tool: IndexedTool): number {
  let length = 0;
  for (const text of TEXTS) length += tool[text].length;
  return length;
}

function isEqual(one: IndexedTool, other: IndexedTool): boolean {
  return one.server === other.server && TEXTS.every((text) => one[text] === other[text]);
}
