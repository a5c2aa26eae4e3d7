/**
 * Hides secrets in the JSON text of a message. All other characters stay as they were written, so that large numbers and
 * the order of members survive. The time is linear in the length of the text, whatever a peer has sent.
 */
import { HIDDEN } from './recorded-message.ts';
import { isSecretName } from './secret-names.ts';
import { mayBytesHoldSecret } from './secret-signs.ts';
import { type HiddenText, hideInText } from './secret-texts.ts';

/**
 * The meaning of an object or array, which decides what its members are:
 * - `message`, `payload` (params or result), `inputs` and `input` (questions in a result): parts of the protocol.
 * - `tools`, `tool`: a list of tools, and one of them.
 * - `schema`: a JSON Schema of a tool or a form. It describes values and holds none.
 * - `properties`: members are named for the properties that they describe.
 * - `secret-schema`: describes a secret, so the values that it names are secrets.
 * - `names`: members are lists of properties.
 * - `data`: anything else. All that looks like a secret is one.
 */
type Meaning =
  | 'message'
  | 'payload'
  | 'inputs'
  | 'input'
  | 'tools'
  | 'tool'
  | 'schema'
  | 'properties'
  | 'secret-schema'
  | 'names'
  | 'data';

/** Meanings of members whose names have one. Members of no other name are data. */
const MEMBERS: Readonly<Partial<Record<Meaning, ReadonlyMap<string, Meaning>>>> = {
  message: new Map([
    ['params', 'payload'],
    ['result', 'payload'],
  ]),
  payload: new Map([
    ['tools', 'tools'],
    ['requestedSchema', 'schema'],
    ['inputRequests', 'inputs'],
  ]),
  input: new Map([['params', 'payload']]),
  tool: new Map([
    ['inputSchema', 'schema'],
    ['outputSchema', 'schema'],
  ]),
};
const SCHEMA_MEMBERS: ReadonlyMap<string, Meaning> = new Map([
  ...['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'].map(
    (name) => [name, 'properties'] as const,
  ),
  ['dependentRequired', 'names'],
]);
/** Keywords whose values are schemas about the same value. */
const SUBSCHEMAS: ReadonlySet<string> = new Set([
  ...['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'items', 'prefixItems', 'contains'],
  ...['additionalProperties', 'unevaluatedProperties', 'unevaluatedItems', 'propertyNames'],
]);
/** Keywords of a schema that name values of what it describes. */
const VALUES: ReadonlySet<string> = new Set(['default', 'const', 'enum', 'enumNames', 'examples', 'example']);

/** Levels of arrays and objects that are read. What is nested deeper is hidden as a whole. */
const MAX_DEPTH = 1000;

/**
 * Returns the text of a message, or of the beginning of its payload, with hidden secrets. A text that is cut off is read
 * as far as it goes.
 * @param part `message`, or `payload` for the value of `params` or `result`, or `data` for that of `error`
 */
export function hideSecrets(json: Buffer, part: 'message' | 'payload' | 'data' = 'message'): HiddenText {
  const text = json.toString('utf8');
  return mayBytesHoldSecret(json) ? new SecretSearch(text).run(part) : { text, hidden: 0 };
}

/** One walk over a JSON text, without recursion. */
class SecretSearch {
  readonly #json: string;
  /** The shown text up to `#copiedTo`, in pieces. */
  readonly #shown: string[] = [];
  #copiedTo = 0;
  #hidden = 0;
  #at = 0;
  /** Meanings of the open arrays and objects. */
  readonly #open: { readonly meaning: Meaning; readonly isObject: boolean }[] = [];

  constructor(json: string) {
    this.#json = json;
  }

  run(part: Meaning): HiddenText {
    const { length } = this.#json;
    /** The meaning of the value that follows. */
    let meaning = part;
    while (this.#at < length) {
      const character = this.#json[this.#at];
      if (character === '{' || character === '[') meaning = this.#enter(character === '{', meaning);
      else if (character === '}' || character === ']') meaning = this.#leave();
      else if (character === '"') meaning = this.#string(meaning);
      else this.#at += 1;
    }
    this.#shown.push(this.#json.slice(this.#copiedTo));
    return { text: this.#shown.join(''), hidden: this.#hidden };
  }

  #enter(isObject: boolean, meaning: Meaning): Meaning {
    if (this.#open.length >= MAX_DEPTH) {
      this.#hideValue(this.#at);
      return this.#meaningOfItem();
    }
    this.#open.push({ meaning, isObject });
    this.#at += 1;
    return this.#meaningOfItem();
  }

  #leave(): Meaning {
    this.#open.pop();
    this.#at += 1;
    return this.#meaningOfItem();
  }

  /** The meaning of the next item of the innermost array; for an object, the next key decides. */
  #meaningOfItem(): Meaning {
    const { meaning = 'data' } = this.#open.at(-1) ?? {};
    return meaning === 'tools' ? 'tool' : meaning;
  }

  /** Reads a key and returns the meaning of its value, or reads a text. */
  #string(meaning: Meaning): Meaning {
    const start = this.#at;
    const end = endOfString(this.#json, start);
    const open = this.#open.at(-1);
    const colon = open?.isObject === true ? skipSpace(this.#json, end) : -1;
    if (open === undefined || this.#json[colon] !== ':') {
      this.#text(start, end);
      return this.#meaningOfItem();
    }
    const value = skipSpace(this.#json, colon + 1);
    const name = decode(this.#json.slice(start + 1, end - 1)) ?? '';
    this.#at = value;
    if (!this.#isSecret(open.meaning, name, this.#json[value])) return meaningOf(open.meaning, name);
    this.#hideValue(value);
    return meaning;
  }

  #isSecret(meaning: Meaning, name: string, first: string | undefined): boolean {
    if (meaning === 'names' && first === '[') return false;
    if (meaning === 'secret-schema' && VALUES.has(name)) return true;
    // A schema is an object or a boolean. Any other value is no description.
    if (meaning === 'properties' && (first === '{' || first === 't' || first === 'f')) return false;
    return isSecretName(name);
  }

  #hideValue(start: number): void {
    this.#hide(start, endOfValue(this.#json, start), JSON.stringify(HIDDEN));
    this.#hidden += 1;
  }

  #text(start: number, end: number): void {
    const isWhole = end - start >= 2 && this.#json[end - 1] === '"';
    const written = this.#json.slice(start + 1, isWhole ? end - 1 : end);
    const text = decode(written) ?? written;
    const { text: shown, hidden } = hideInText(text);
    this.#at = end;
    if (hidden === 0) return;
    this.#hidden += hidden;
    const token = JSON.stringify(shown);
    this.#hide(start, end, isWhole ? token : token.slice(0, -1));
  }

  #hide(start: number, end: number, replacement: string): void {
    this.#shown.push(this.#json.slice(this.#copiedTo, start), replacement);
    this.#copiedTo = end;
    this.#at = end;
  }
}

function meaningOf(within: Meaning, name: string): Meaning {
  switch (within) {
    case 'schema':
    case 'secret-schema':
      return SCHEMA_MEMBERS.get(name) ?? (SUBSCHEMAS.has(name) ? within : 'data');
    case 'properties':
      return isSecretName(name) ? 'secret-schema' : 'schema';
    case 'inputs':
      return 'input';
    default:
      return MEMBERS[within]?.get(name) ?? 'data';
  }
}

/** Undefined for an escape that is invalid, or cut off. */
function decode(written: string): string | undefined {
  if (!written.includes('\\')) return written;
  try {
    return JSON.parse(`"${written}"`) as string; // a JSON text in quotes is a string
  } catch {
    return undefined;
  }
}

function skipSpace(json: string, start: number): number {
  let at = start;
  while (at < json.length && json.charCodeAt(at) <= 0x20) at += 1;
  return at;
}

/** Returns the offset after the closing quote, or the length of a text that is cut off. */
function endOfString(json: string, start: number): number {
  for (let at = json.indexOf('"', start + 1); at !== -1; at = json.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (json[at - 1 - backslashes] === '\\') backslashes += 1;
    if (backslashes % 2 === 0) return at + 1;
  }
  return json.length;
}

function endOfValue(json: string, start: number): number {
  const first = json[start];
  if (first === '"') return endOfString(json, start);
  if (first !== '{' && first !== '[') {
    let at = start;
    while (at < json.length && !/[,\]}\s]/.test(json[at] as string)) at += 1; // at < length
    return at;
  }
  let depth = 0;
  let at = start;
  while (at < json.length) {
    const character = json[at];
    if (character === '"') {
      at = endOfString(json, at);
      continue;
    }
    at += 1;
    if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') depth -= 1;
    if (depth === 0) return at;
  }
  return json.length;
}
