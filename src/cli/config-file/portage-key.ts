/** What stands under our own key `portage`: options, named as on the command line or in camel case, and who may call. */
import type { Target } from '../../config/server.ts';
import { HOW_SERVERS_ARE_USED, type WrittenOption } from '../options/given-options.ts';
import type { OptionSpec } from '../options/option-spec.ts';
import { findOption, isOptionName, OF_ONE_SERVER, OPTIONS, type OptionName } from '../options/option-table.ts';
import { isUrlLike } from '../parse/servers/target.ts';
import { suggest } from '../suggest.ts';
import { type ConfigNode, KIND_NAMES, type Path } from './config-tree.ts';
import { type EntryContext, expandText, reportRepeated, resolvePath } from './entry-context.ts';
import { quoteKey } from './file-report.ts';

export const PORTAGE = 'portage';

export interface EntryPortage {
  readonly options: ReadonlyMap<OptionName, WrittenOption>;
  /** Undefined: not said here. */
  readonly isRequired: boolean | undefined;
  /** Undefined: everybody. */
  readonly callers: readonly string[] | undefined;
}

/**
 * Where an option may stand: at the top, in the entry of a server, at the top as what holds for every server, or not here,
 * since an entry has a key of its own for it, or since it is about the call of the program.
 */
export type OptionScope = 'process' | 'server' | 'both' | 'entry' | 'call';

const PROCESS_GROUPS: readonly OptionSpec['group'][] = [
  'listen',
  'endpoints',
  'access',
  'cluster',
  'observing',
  'logging',
];
const PROCESS_OPTIONS: readonly string[] = ['max-in-flight', 'shutdown-grace', 'max-header-bytes'];
/** What is said when the program is called. */
const CALL_GROUPS: readonly OptionSpec['group'][] = ['servers', 'probe', 'snippet', 'report'];

/**
 * What an entry has a key of its own for, by what somebody may write instead. That file is read with the entry: it is
 * watched, refused where others may write to it, and what `env` says in the entry wins over it.
 */
const KEYS_OF_ENTRY: ReadonlyMap<string, string> = new Map([
  ['env-from', 'envFile'],
  ['env-file', 'envFile'],
]);

export function scopeOf({ name, group }: OptionSpec): OptionScope {
  if (KEYS_OF_ENTRY.has(name)) return 'entry';
  if (CALL_GROUPS.includes(group)) return 'call';
  if (PROCESS_GROUPS.includes(group) || PROCESS_OPTIONS.includes(name)) return 'process';
  return OF_ONE_SERVER.some((option) => option === name) ? 'server' : 'both';
}

/** `max-sessions` → `maxSessions` */
export function toCamelCase(name: string): string {
  return name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** @param target undefined: what the entry says itself is wrong, and has been reported */
export function readEntryPortage(
  node: ConfigNode | undefined,
  path: Path,
  context: EntryContext,
  target: Target['kind'] | undefined,
): EntryPortage {
  const members = membersOf(node, path, context);
  const options = readOptions(members, path, context, (spec) => {
    if (scopeOf(spec) === 'call') return ON_COMMAND_LINE;
    if (scopeOf(spec) === 'process') return 'is no matter of one server; it belongs to the key portage at the top.';
    const { targets } = spec;
    if (target === undefined || targets === undefined || targets.includes(target)) return undefined;
    const what = targets.map((kind) => HOW_SERVERS_ARE_USED[kind]).join(' or ');
    return `is for a server that is ${what}; this one is ${HOW_SERVERS_ARE_USED[target]}.`;
  });
  return { options, isRequired: readRequired(members, path, context), callers: readCallers(members, path, context) };
}

/** @param path where it stands */
export function readTopPortage(
  node: ConfigNode | undefined,
  context: EntryContext,
  path: Path = [PORTAGE],
): ReadonlyMap<OptionName, WrittenOption> {
  return readOptions(membersOf(node, path, context), path, context, (spec) => {
    if (scopeOf(spec) === 'call') return ON_COMMAND_LINE;
    return scopeOf(spec) === 'server' ? BELONGS_TO_ENTRY : undefined;
  });
}

function membersOf(node: ConfigNode | undefined, path: Path, context: EntryContext): ReadonlyMap<string, ConfigNode> {
  if (node === undefined) return new Map();
  if (node.kind === 'object') {
    reportRepeated(node, path, context);
    return node.members;
  }
  context.report.mistake(node.at, path, `expected an object, got ${KIND_NAMES[node.kind]}.`);
  return new Map();
}

const ON_COMMAND_LINE = 'belongs on the command line.';
const BELONGS_TO_ENTRY = 'is a matter of one server; it belongs to the key portage in the entry of that server.';

/** Keys that are no options. */
const OWN_KEYS: readonly string[] = ['required', 'callers'];

type Refuse = (spec: OptionSpec) => string | undefined;

function readOptions(
  members: ReadonlyMap<string, ConfigNode>,
  path: Path,
  context: EntryContext,
  refuse: Refuse,
): ReadonlyMap<OptionName, WrittenOption> {
  const { report } = context;
  const options = new Map<OptionName, WrittenOption>();
  for (const { key, node, place, ofLogin } of unfoldLogin(members, path, context)) {
    const keyOfEntry = KEYS_OF_ENTRY.get(toKebabCase(key));
    if (keyOfEntry !== undefined) {
      report.mistake(
        node.at,
        place,
        `write ${keyOfEntry} beside the command of the server it is for, without portage.`,
      );
      continue;
    }
    const name = optionNameOf(key);
    const spec = name === undefined ? undefined : findOption(name);
    if (name === undefined || spec === undefined) {
      if (ofLogin !== undefined) report.mistake(node.at, place, explainUnknownOfLogin(ofLogin, report.mistakeCount));
      else if (!OWN_KEYS.includes(key)) report.mistake(node.at, place, explainUnknown(key, report.mistakeCount));
      else if (path.length <= 1) report.mistake(node.at, place, BELONGS_TO_ENTRY);
      continue;
    }
    const problem = refuse(spec);
    if (problem !== undefined) report.mistake(node.at, place, problem);
    else if (options.has(name))
      report.mistake(node.at, place, 'says again what another key says; leave one of them out.');
    else {
      const texts = readTexts(spec, node, place, context);
      if (texts !== undefined) options.set(name, { texts, source: report.sourceOf(node.at, place) });
    }
  }
  return options;
}

interface Member {
  readonly key: string;
  readonly node: ConfigNode;
  readonly place: Path;
  /** The key in an object under `login`; undefined: this one stands under `portage` itself. */
  readonly ofLogin: string | undefined;
}

/** An object under `login` means on demand, and has the options of a login by their names without `oauth-`. */
function* unfoldLogin(members: ReadonlyMap<string, ConfigNode>, path: Path, context: EntryContext): Iterable<Member> {
  for (const [key, node] of members) {
    const place = [...path, key];
    const isLogin = key === 'login' && node.kind === 'object';
    const said: ConfigNode = isLogin ? { kind: 'text', at: node.at, value: 'on-demand' } : node;
    yield { key, node: said, place, ofLogin: undefined };
    if (!isLogin) continue;
    reportRepeated(node, place, context);
    for (const [ofLogin, inner] of node.members) {
      yield { key: OF_LOGIN + toKebabCase(ofLogin), node: inner, place: [...place, ofLogin], ofLogin };
    }
  }
}

const OF_LOGIN = 'oauth-';

/** `oauth-token-endpoint` → `tokenEndpoint`, `oauth-param` → `params`; undefined: not an option in an object under `login`. */
export function loginKeyOf({ name, kind }: OptionSpec): string | undefined {
  if (!name.startsWith(OF_LOGIN)) return undefined;
  return toCamelCase(name.slice(OF_LOGIN.length)) + (kind === 'list' ? 's' : '');
}

/** `maxSessions`, `max-sessions`; of lists also `mapHeaders`. */
function optionNameOf(key: string): OptionName | undefined {
  const name = toKebabCase(key);
  if (isOptionName(name)) return name;
  const singular = name.replace(/s$/, '');
  return isOptionName(singular) && findOption(singular)?.kind === 'list' ? singular : undefined;
}

function toKebabCase(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Longer words are no slip of a name that exists, and comparing words costs time. */
const LONGEST_NAME = 40;
const MAX_COMPARED = 100;

function explainUnknown(key: string, before: number): string {
  const names = [...OPTIONS.map(({ name }) => name), ...OWN_KEYS];
  return `mcp-portage has no option ${quoteKey(key)}${suggestNear(key, names, before)}`;
}

function explainUnknownOfLogin(key: string, before: number): string {
  const names = OPTIONS.map(loginKeyOf).filter((name) => name !== undefined);
  return `a login has no option ${quoteKey(key)}${suggestNear(key, names.map(toKebabCase), before)}`;
}

/** The end of a sentence. */
function suggestNear(key: string, names: readonly string[], before: number): string {
  const near =
    key.length > LONGEST_NAME || before > MAX_COMPARED ? [] : suggest(toKebabCase(key), names).map(toCamelCase);
  return near.length === 0 ? '.' : `; did you mean ${near.join(' or ')}?`;
}

/** As they would be on the command line. Undefined: a mistake, which has been reported. */
function readTexts(
  spec: OptionSpec,
  node: ConfigNode,
  path: Path,
  context: EntryContext,
): readonly string[] | undefined {
  if (spec.isMap === true && node.kind === 'object') {
    reportRepeated(node, path, context);
    const texts = [...node.members].map(([name, member]) => {
      const text = readText(spec, member, [...path, name], context);
      return text === undefined ? undefined : `${name}=${text}`;
    });
    const found = texts.filter((text) => text !== undefined);
    return found.length === texts.length ? found : undefined;
  }
  if (spec.kind === 'list' && node.kind === 'list') {
    const texts = node.items.map((item, index) => readText(spec, item, [...path, index], context));
    const found = texts.filter((text) => text !== undefined);
    return found.length === texts.length ? found : undefined;
  }
  const text = readText(spec, node, path, context);
  return text === undefined ? undefined : [text];
}

const EXPECTED: Readonly<Record<OptionSpec['kind'], string>> = {
  flag: 'true or false',
  value: 'a text or a number',
  list: 'a text or a list of texts',
};

function readText(spec: OptionSpec, node: ConfigNode, path: Path, context: EntryContext): string | undefined {
  if (node.kind === 'text') {
    const text = expandText(node, path, context);
    return text === undefined ? undefined : resolveFile(spec, text, context);
  }
  const isScalar = node.kind === 'boolean' || (node.kind === 'number' && spec.kind !== 'flag');
  if (isScalar) return String(node.value);
  context.report.mistake(node.at, path, `expected ${EXPECTED[spec.kind]}, got ${KIND_NAMES[node.kind]}.`);
  return undefined;
}

/** Their values may say in which file something is. */
const HAVE_SOURCES: readonly string[] = ['auth-token', 'dial', 'dial-token'];

/** Paths in a file are relative to where the file is, not to where somebody happens to stand. */
function resolveFile({ name, completes }: OptionSpec, text: string, context: EntryContext): string {
  if (text === '') return text;
  if (completes !== undefined && !isUrlLike(text)) return resolvePath(text, context);
  const [, before, path] = HAVE_SOURCES.includes(name) ? (/^([^:]*file:)(.+)$/s.exec(text) ?? []) : [];
  return before === undefined || path === undefined ? text : before + resolvePath(path, context);
}

function readRequired(
  members: ReadonlyMap<string, ConfigNode>,
  path: Path,
  { report }: EntryContext,
): boolean | undefined {
  const node = members.get('required');
  if (node === undefined || node.kind === 'boolean') return node?.value;
  report.mistake(node.at, [...path, 'required'], `expected true or false, got ${KIND_NAMES[node.kind]}.`);
  return undefined;
}

function readCallers(
  members: ReadonlyMap<string, ConfigNode>,
  path: Path,
  context: EntryContext,
): readonly string[] | undefined {
  const node = members.get('callers');
  if (node === undefined) return undefined;
  const place = [...path, 'callers'];
  if (node.kind !== 'list') {
    context.report.mistake(node.at, place, `expected a list of names of callers, got ${KIND_NAMES[node.kind]}.`);
    return undefined;
  }
  return node.items.flatMap((item, index) => {
    const name = item.kind === 'text' ? expandText(item, [...place, index], context) : undefined;
    if (name !== undefined && name !== '') return [name];
    if (item.kind !== 'text' || name === '') {
      const got = item.kind === 'text' ? 'an empty text' : KIND_NAMES[item.kind];
      context.report.mistake(item.at, [...place, index], `expected the name of a caller, got ${got}.`);
    }
    return [];
  });
}
