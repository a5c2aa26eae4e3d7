/** The key `portage`: our own options in a file, by the names that they have on the command line. */
import type { OptionSpec } from '../options/option-spec.ts';
import { OF_ONE_SERVER, OPTIONS, type OptionName } from '../options/option-table.ts';
import { suggest } from '../suggest.ts';
import { ENTRY_MEMBERS, OPTION_KINDS } from './schema.ts';

/** At the top of the file, for the listener, the process and all servers; or in the entry of one server. */
export type Position = 'top' | 'entry';

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

export interface KnownOption {
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
  const parsed = OPTION_KINDS[option.kind].safeParse(value);
  if (!parsed.success) return mistake(`expected ${parsed.error.issues[0]?.message}, got ${nameKind(value)}`);
  const values = Array.isArray(parsed.data) ? parsed.data : [parsed.data];
  return { kind: 'option', name: option.name, texts: values.map(String) };
}

function explainUnknown(key: string, position: Position): string {
  const keys = optionsAt(position).map((known) => known.key);
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

/** What may stand under the key, for a schema: the option and its name there. */
export function optionsAt(position: Position): readonly KnownOption[] {
  return KNOWN.filter(({ option }) => positionsOf(option).includes(position));
}
