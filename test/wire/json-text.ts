/** Random JSON as other programs write it: any member order, whitespace between tokens, any spelling of a string. */
import fc from 'fast-check';

/** A small generator of its own, so that a spelling follows from the one number fast-check shows and shrinks. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class JsonPrinter {
  readonly #random: () => number;
  readonly #newlines: boolean;

  constructor(seed: number, options: { readonly newlines: boolean }) {
    this.#random = createRandom(seed);
    this.#newlines = options.newlines;
  }

  chance(share: number): boolean {
    return this.#random() < share;
  }

  shuffle<T>(items: readonly T[]): T[] {
    return items
      .map((item) => ({ item, rank: this.#random() }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ item }) => item);
  }

  space(): string {
    if (!this.chance(0.2)) return '';
    const spaces = this.#newlines ? [' ', '\t', '\n', '\r', '\r\n  '] : [' ', '\t', '  '];
    return spaces[Math.floor(this.#random() * spaces.length)] ?? '';
  }

  string(text: string): string {
    if (this.chance(0.6) && isWellFormed(text)) return JSON.stringify(text);
    let spelled = '';
    for (const character of text) {
      const escapes = this.chance(0.5) || !isWellFormed(character);
      spelled += escapes ? escapeUnits(character) : JSON.stringify(character).slice(1, -1);
    }
    return `"${spelled}"`;
  }

  value(value: unknown): string {
    if (typeof value === 'string') return this.string(value);
    if (Array.isArray(value))
      return this.#list(
        '[',
        value.map((item) => this.value(item)),
        ']',
      );
    if (typeof value === 'object' && value !== null) return this.object(Object.entries(value));
    return JSON.stringify(value);
  }

  object(members: readonly (readonly [string, unknown])[]): string {
    const printed = members.map(
      ([key, value]) => `${this.string(key)}${this.space()}:${this.space()}${this.value(value)}`,
    );
    return this.#list('{', printed, '}');
  }

  #list(open: string, items: readonly string[], close: string): string {
    return `${open}${this.space()}${items.join(`${this.space()},${this.space()}`)}${this.space()}${close}`;
  }
}

/** A lone surrogate has no UTF-8 form. */
function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

function escapeUnits(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}

/** Texts that look like structure when a scanner loses count of quotes and backslashes. */
const decoys = [
  '","id":7}',
  ',"id":7}',
  '\\',
  '\\\\"',
  '"}',
  '{"jsonrpc":"2.0","id":9,"method":"decoy"}',
  ',"jsonrpc":"2.0","id":"x"}',
  'é€😀\u2028\u0085',
  '\ud800',
  'x'.repeat(40),
  `${'"'.repeat(40)}\\`,
];

/**
 * Is JSON.parse, which tests compare with, to be believed about keys? See wire/json/parse-json.ts. Where it is not, nothing but
 * a key with a backslash makes it go wrong.
 */
const isJsonParseSound = ['\\\\', '\\n'].every((key) => {
  const [, read] = Object.keys(JSON.parse(`{"a place of its own":0,"${key}":1}`));
  return read === JSON.parse(`"${key}"`);
});

/** Like the unit 'binary' of fast-check, which first makes a map of all of Unicode: half a second in each test file. */
const anyCharacter = fc.oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }));
const anyCharacters = fc.string({ unit: anyCharacter.map((codePoint) => String.fromCodePoint(codePoint)) });

const anyTextAtAll = fc.oneof(fc.string(), anyCharacters, fc.constantFrom(...decoys));
export const anyText = isJsonParseSound ? anyTextAtAll : anyTextAtAll.map((text) => text.replaceAll('\\', '/'));

export const anyJson: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    anyText,
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(null, true, false),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(anyText, fc.constantFrom('id', 'method', 'jsonrpc', 'result')), tie('value'), {
      maxKeys: 4,
    }),
  ),
})).value;

const anyStructure = fc.oneof(fc.dictionary(anyText, anyJson, { maxKeys: 4 }), fc.array(anyJson, { maxLength: 4 }));

const anyId = fc.oneof(
  fc.nat(),
  fc.integer(),
  fc.constantFrom(0, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, '', '5'),
  anyText,
);

const anyMembers = fc.oneof(
  fc.record({ id: anyId, method: anyText, params: anyStructure }, { requiredKeys: ['id', 'method'] }),
  fc.record({ method: anyText, params: anyStructure }, { requiredKeys: ['method'] }),
  fc.record({ id: anyId, result: anyJson }),
  fc.record(
    { id: fc.option(anyId), error: fc.dictionary(anyText, anyJson, { maxKeys: 3 }) },
    { requiredKeys: ['error'] },
  ),
);

const extraKeys = ['_meta', 'IDs', 'Json-rpc', 'idx', 'i', 'res\\ult', 'errör', 'parent', 'x'.repeat(50), '__proto__'];

/** One valid JSON-RPC message as text. */
export interface MessageText {
  readonly text: string;
  readonly kind: 'request' | 'notification' | 'result' | 'error';
}

export function anyMessage(options: { readonly newlines: boolean }): fc.Arbitrary<MessageText> {
  return fc
    .tuple(anyMembers, fc.subarray(extraKeys, { maxLength: 2 }), anyJson, fc.integer())
    .map(([members, extras, extra, seed]) => {
      const printer = new JsonPrinter(seed, options);
      const all: [string, unknown][] = [['jsonrpc', '2.0'], ...Object.entries(members)];
      for (const key of extras) all.push([key, extra]);
      return { text: printer.object(printer.shuffle(all)), kind: kindOf(members) };
    });
}

function kindOf(members: object): MessageText['kind'] {
  if ('result' in members) return 'result';
  if ('error' in members) return 'error';
  return 'id' in members ? 'request' : 'notification';
}

/** Cuts bytes into chunks of one size; 0 leaves them whole. Copies, as a stream would hand out. */
export function chunksOf(bytes: Buffer, size: number): Buffer[] {
  if (size === 0) return [Buffer.from(bytes)];
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) chunks.push(Buffer.from(bytes.subarray(at, at + size)));
  return chunks;
}

export const chunkSizes = [1, 2, 3, 0] as const;

/** Overwrites, drops and inserts a few bytes. */
export function mutate(bytes: Buffer, seed: number): Buffer {
  const random = createRandom(seed);
  const interesting = Buffer.from('"\\{}[]:,0-.eE ntf\n\r\t\0\u00ff', 'latin1');
  const list = [...bytes];
  const count = 1 + Math.floor(random() * 4);
  for (let done = 0; done < count; done++) {
    const at = Math.floor(random() * (list.length + 1));
    const byte = random() < 0.8 ? (interesting[Math.floor(random() * interesting.length)] ?? 0) : random() * 256;
    list.splice(at, random() < 0.7 ? 1 : 0, ...(random() < 0.7 ? [byte] : []));
  }
  return Buffer.from(list);
}
