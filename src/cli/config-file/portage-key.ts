/** Reads our own key `portage`: options, named as on the command line or in camel case, and the callers of a server. */
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
  /** Undefined if `required` is not set. */
  readonly isRequired: boolean | undefined;
  /** Undefined if all callers may use the server. */
  readonly callers: readonly string[] | undefined;
}

/**
 * The places where an option may be set: `process` at the top, `server` in the entry of a server, `both` in an entry
 * or, for all servers, at the top. An `entry` option has a key of its own in the entry, and a `call` option belongs on
 * the command line.
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
/** Groups of options for a single run of the program. */
const CALL_GROUPS: readonly OptionSpec['group'][] = ['servers', 'probe', 'snippet', 'report'];

/**
 * Options that have a key of their own in an entry, with that key. The file that it names is read with the entry: it is
 * watched, it is refused if other users may write to it, and `env` in the entry overrides it.
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

/** Converts `max-sessions` to `maxSessions`. */
export function toCamelCase(name: string): string {
  return name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** @param target undefined if the entry itself is wrong, which has been reported */
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

/** @param path the path of the node */
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

/** Keys under `portage` that are not options. */
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
  /** The key in an object under `login`; undefined for a key of `portage` itself. */
  readonly ofLogin: string | undefined;
}

/** Expands an object under `login`: it stands for `on-demand`, and its keys are login options without `oauth-`. */
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

/**
 * Converts `oauth-token-endpoint` to `tokenEndpoint`, and `oauth-param` to `params`. Returns undefined for options that
 * have no place in an object under `login`.
 */
export function loginKeyOf({ name, kind }: OptionSpec): string | undefined {
  if (!name.startsWith(OF_LOGIN)) return undefined;
  return toCamelCase(name.slice(OF_LOGIN.length)) + (kind === 'list' ? 's' : '');
}

/** Accepts `maxSessions` and `max-sessions`, and for lists also the plural: `mapHeaders`. */
function optionNameOf(key: string): OptionName | undefined {
  const name = toKebabCase(key);
  if (isOptionName(name)) return name;
  const singular = name.replace(/s$/, '');
  return isOptionName(singular) && findOption(singular)?.kind === 'list' ? singular : undefined;
}

function toKebabCase(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Limits the costly search for similar names. A longer key is not a misspelled option. */
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

/** Returns the end of a sentence, with similar names if there are any. */
function suggestNear(key: string, names: readonly string[], before: number): string {
  const near =
    key.length > LONGEST_NAME || before > MAX_COMPARED ? [] : suggest(toKebabCase(key), names).map(toCamelCase);
  return near.length === 0 ? '.' : `; did you mean ${near.join(' or ')}?`;
}

/** Returns the values as they would be written on the command line, or undefined after reporting a mistake. */
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

/** Options whose values may be `file:PATH`. */
const HAVE_SOURCES: readonly string[] = ['auth-token', 'dial', 'dial-token'];

/** Resolves paths in a configuration file relative to that file, and not to the current folder. */
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
