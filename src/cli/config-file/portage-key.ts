/** The key `portage`: our own options in a file, by the names that they have on the command line. */
import { z } from 'zod';
import type { OptionSpec } from '../options/option-spec.ts';
import { OF_ONE_SERVER, OPTIONS, type OptionName } from '../options/option-table.ts';
import { suggest } from '../suggest.ts';

/** At the top of the file, for the listener, the process and all servers; or in the entry of one server. */
export type Position = 'top' | 'entry';

/** Said of one server in its entry, and nowhere else. */
export const ENTRY_MEMBERS = {
  required: z.boolean({ error: 'true or false' }).describe('The process is ready only when this server is'),
  callers: z
    .array(z.string({ error: 'a name' }), { error: 'a list of names' })
    .describe('Who may use this server: names of tokens, or subject:ID for a subject of the issuer'),
};

const text = z.string({ error: 'a text' });
const SCALAR = z.union([text, z.number({ error: 'a number' })], { error: 'a text or a number' });
const KINDS = {
  flag: z.boolean({ error: 'true or false' }),
  value: SCALAR,
  list: z.union([text, z.array(text)], { error: 'a text or a list of texts' }),
};

const GROUPS_OF_LISTENER: readonly OptionSpec['group'][] = ['listen', 'endpoints', 'access', 'logging'];
/** About the whole process, whatever group they are shown in. */
const OF_PROCESS: readonly OptionName[] = ['max-in-flight', 'max-header-bytes', 'shutdown-grace'];
/** What is said when the program is called, and of no server. */
const OF_CALL: readonly OptionSpec['group'][] = ['servers', 'probe', 'snippet'];

/** Where an option may stand; none: only on the command line. */
function positionsOf({ name, group }: OptionSpec & { readonly name: OptionName }): readonly Position[] {
  if (OF_CALL.includes(group)) return [];
  if (GROUPS_OF_LISTENER.includes(group) || OF_PROCESS.includes(name)) return ['top'];
  return OF_ONE_SERVER.includes(name) ? ['entry'] : ['top', 'entry'];
}

/** `map-header` → `mapHeaders`: what may be repeated has several here. */
function keyOf({ name, kind }: OptionSpec): string {
  const camel = name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return kind === 'list' && name !== 'env' ? `${camel}s` : camel;
}

interface KnownOption {
  readonly option: OptionSpec & { readonly name: OptionName };
  readonly key: string;
}

const KNOWN: readonly KnownOption[] = OPTIONS.map((option) => ({ option, key: keyOf(option) }));

export type FoundOption =
  | { readonly kind: 'option'; readonly name: OptionName; readonly texts: readonly string[] }
  /** The rest of a sentence. */
  | { readonly kind: 'mistake'; readonly problem: string };

/** One member of the key: under its name here or that of the command line. */
export function readOption(key: string, value: unknown, position: Position): FoundOption {
  const known = KNOWN.find(({ option, key: own }) => own === key || option.name === key || `${key}s` === own);
  if (known === undefined) return { kind: 'mistake', problem: explainUnknown(key, position) };
  const { option } = known;
  const positions = positionsOf(option);
  if (positions.length === 0) return mistake(`--${option.name} belongs on the command line`);
  if (!positions.includes(position)) {
    return mistake(
      position === 'entry'
        ? 'this is not about one server; it belongs under the key portage at the top of the file'
        : 'this is about one server; it belongs under the key portage in its entry',
    );
  }
  const parsed = KINDS[option.kind].safeParse(value);
  if (!parsed.success) return mistake(`expected ${parsed.error.issues[0]?.message}, got ${nameKind(value)}`);
  const values = Array.isArray(parsed.data) ? parsed.data : [parsed.data];
  return { kind: 'option', name: option.name, texts: values.map(String) };
}

function explainUnknown(key: string, position: Position): string {
  const keys = KNOWN.filter(({ option }) => positionsOf(option).includes(position)).map((known) => known.key);
  const [meant] = suggest(key, position === 'entry' ? [...keys, ...Object.keys(ENTRY_MEMBERS)] : keys);
  return `no option of mcp-portage${meant === undefined ? '' : `; did you mean ${meant}?`}`;
}

function mistake(problem: string): FoundOption {
  return { kind: 'mistake', problem };
}

/** What a value is, without showing it. */
export function nameKind(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'string') return value === '' ? 'an empty text' : 'a text';
  if (typeof value === 'boolean') return `${value}`;
  return typeof value === 'object' ? 'an object' : 'a number';
}

/** For editors, which complete and check it by this. */
export function schemaOf(position: Position): z.ZodObject {
  const members = KNOWN.filter(({ option }) => positionsOf(option).includes(position)).map(({ option, key }) => [
    key,
    describeOption(option).optional(),
  ]);
  const own = position === 'entry' ? z.object(ENTRY_MEMBERS).partial().shape : {};
  return z.strictObject({ ...own, ...Object.fromEntries(members) });
}

function describeOption(option: OptionSpec): z.ZodType {
  const schema = option.choices === undefined ? KINDS[option.kind] : z.enum([...option.choices]);
  return schema.describe(`${option.describe} (--${option.name})`);
}
