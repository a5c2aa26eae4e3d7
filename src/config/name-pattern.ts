/**
 * Patterns for tool names in shell syntax: `*` matches any characters, `?` a single one, `[a-z]` one of these, `[!a-z]`
 * one of all others, `{a,b}` either alternative, and `\\` makes the next character literal. Dots and slashes have no
 * special meaning, because a name is a single word. Names come from peers, so matching takes time linear in the name's
 * length: all positions up to which a name can match are tracked at once, without backtracking.
 */

/** Returns true if the pattern matches the whole name. */
export type MatchName = (name: string) => boolean;

/** Undefined for a pattern with syntax of other shells that would have another meaning here. */
export type CompiledPattern = MatchName | undefined;

type Part =
  /** Matches a single character. */
  | { readonly kind: 'one'; readonly takes: (character: string) => boolean }
  /** Matches any number of characters. */
  | { readonly kind: 'any' }
  | { readonly kind: 'either'; readonly choices: readonly (readonly Part[])[] };

export function compileNamePattern(pattern: string): CompiledPattern {
  const reader = new PatternReader(pattern);
  const parts = reader.read();
  if (reader.isForeign) return undefined;
  // A name that looks like a pattern also matches itself.
  return (name) => name === pattern || matchesWhole(parts, Array.from(name));
}

function matchesWhole(parts: readonly Part[], name: readonly string[]): boolean {
  const places = new Uint8Array(name.length + 1);
  places[0] = 1;
  return follow(parts, name, places)[name.length] === 1;
}

/**
 * Returns 1 for each position of the name at which the parts can end. @param places positions at which they can begin
 */
function follow(parts: readonly Part[], name: readonly string[], places: Uint8Array): Uint8Array {
  let from = places;
  for (const part of parts) from = step(part, name, from);
  return from;
}

function step(part: Part, name: readonly string[], from: Uint8Array): Uint8Array {
  const to = new Uint8Array(from.length);
  switch (part.kind) {
    case 'one':
      for (const [at, character] of name.entries()) if (from[at] === 1 && part.takes(character)) to[at + 1] = 1;
      return to;
    case 'any': {
      const first = from.indexOf(1);
      return first === -1 ? to : to.fill(1, first);
    }
    case 'either':
      for (const choice of part.choices) {
        for (const [at, isReached] of follow(choice, name, from).entries()) if (isReached === 1) to[at] = 1;
      }
      return to;
  }
}

/** Limit for nested braces, more than any list of names needs, because each level is a recursive call. */
const MAX_DEPTH = 10;

class PatternReader {
  readonly #characters: readonly string[];
  #at = 0;
  #isForeign = false;

  constructor(pattern: string) {
    this.#characters = Array.from(pattern);
  }

  /**
   * True if the pattern has groups such as `!(a|b)`, numeric ranges such as `{1..3}`, a reversed range, or too many
   * levels.
   */
  get isForeign(): boolean {
    return this.#isForeign;
  }

  read(): readonly Part[] {
    return this.#sequence(0);
  }

  /** Reads to the end, or inside braces up to a comma or the closing brace. */
  #sequence(depth: number): readonly Part[] {
    const parts: Part[] = [];
    while (this.#at < this.#characters.length) {
      const character = this.#characters[this.#at] as string; // within
      if (depth > 0 && (character === ',' || character === '}')) break;
      parts.push(this.#part(character, depth));
    }
    return parts;
  }

  #part(character: string, depth: number): Part {
    const next = this.#characters[this.#at + 1];
    if (next === '(' && '?*+@!'.includes(character)) this.#isForeign = true;
    this.#at += 1;
    switch (character) {
      case '*':
        return { kind: 'any' };
      case '?':
        return { kind: 'one', takes: () => true };
      case '[':
        return this.#oneOf();
      case '{':
        return this.#either(depth);
      case '\\':
        if (next === undefined) return only(character);
        this.#at += 1;
        return only(next);
      default:
        return only(character);
    }
  }

  /** Called after the opening bracket. An unclosed bracket is a literal character. */
  #oneOf(): Part {
    const end = this.#closingBracket();
    if (end === -1) return only('[');
    let at = this.#at;
    const isOther = this.#characters[at] === '!' || this.#characters[at] === '^';
    if (isOther) at += 1;
    const ranges: (readonly [first: string, last: string])[] = [];
    while (at < end) {
      const [first, afterFirst] = this.#literal(at);
      const isRange = this.#characters[afterFirst] === '-' && afterFirst + 1 < end;
      const [last, afterLast] = isRange ? this.#literal(afterFirst + 1) : [first, afterFirst];
      if (compare(first, last) > 0) this.#isForeign = true;
      ranges.push([first, last]);
      at = afterLast;
    }
    this.#at = end + 1;
    const isListed = (character: string): boolean =>
      ranges.some(([first, last]) => compare(first, character) <= 0 && compare(character, last) <= 0);
    return { kind: 'one', takes: (character) => isListed(character) !== isOther };
  }

  /** Finds the closing bracket. A bracket directly after the opening one is literal. */
  #closingBracket(): number {
    let at = this.#at;
    if (this.#characters[at] === '!' || this.#characters[at] === '^') at += 1;
    for (let index = at; index < this.#characters.length; index++) {
      if (this.#characters[index] === '\\') index += 1;
      else if (this.#characters[index] === ']' && index > at) return index;
    }
    return -1;
  }

  #literal(at: number): readonly [character: string, after: number] {
    const character = this.#characters[at] as string; // before the closing bracket
    const escaped = character === '\\' ? this.#characters[at + 1] : undefined;
    return escaped === undefined ? [character, at + 1] : [escaped, at + 2];
  }

  /** Called after the opening brace. Braces without a comma and unclosed braces are literal characters. */
  #either(depth: number): Part {
    const start = this.#at;
    if (depth === MAX_DEPTH) {
      this.#isForeign = true;
      return only('{');
    }
    const choices: (readonly Part[])[] = [];
    while (true) {
      choices.push(this.#sequence(depth + 1));
      const character = this.#characters[this.#at];
      if (character === undefined || (character === '}' && choices.length === 1)) break;
      this.#at += 1;
      if (character === '}') return { kind: 'either', choices };
    }
    if (/^[^,{}]*\.\.[^,{}]*\}/.test(this.#characters.slice(start).join(''))) this.#isForeign = true;
    this.#at = start;
    return only('{');
  }
}

function only(expected: string): Part {
  return { kind: 'one', takes: (character) => character === expected };
}

function compare(one: string, other: string): number {
  return (one.codePointAt(0) ?? 0) - (other.codePointAt(0) ?? 0);
}
