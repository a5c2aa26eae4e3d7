/** Reads our own key `portage`: options, named as on the command line or in camel case, and what only a server has. */
import type { Target } from '../../config/server.ts';
import { suggest } from '../../suggest.ts';
import { HOW_SERVERS_ARE_USED } from '../options/applicable.ts';
import { type GivenOption, type OptionLayer, type ReadValue, readValue } from '../options/given-options.ts';
import { flagOf, toCamelCase, toKebabCase } from '../options/option-names.ts';
import { findOption, OPTIONS, type Option, type OptionName } from '../options/option-table.ts';
import type { ReadingContext } from '../options/value-type.ts';
import type { WrittenMembership, WrittenTool } from './config-file.ts';
import { type ConfigNode, KIND_NAMES, type Path, type Position } from './config-tree.ts';
import { type EntryContext, expandText, reportRepeated, resolvePath } from './entry-context.ts';
import { quoteKey } from './file-report.ts';
import { MEMBERSHIP_KEYS, readMembership } from './membership.ts';
import { readCallers, readPortageTools, TOOLS } from './portage-tools.ts';

export const PORTAGE = 'portage';

export interface EntryPortage {
  readonly options: OptionLayer;
  /** Undefined if `required` is not set. */
  readonly isRequired: boolean | undefined;
  /** Undefined if all callers may use the server. */
  readonly callers: readonly string[] | undefined;
  readonly tools: ReadonlyMap<string, WrittenTool>;
  /** Undefined for a server that is left out of the aggregate. */
  readonly membership: WrittenMembership | undefined;
}

/** The entry that a key `portage` belongs to. */
interface EntryOfPortage {
  readonly name: string;
  readonly at: Position;
  /** Undefined if the entry itself is wrong, which has been reported. */
  readonly target: Target['kind'] | undefined;
}

/**
 * The key for a file of variables. The file that it names is read with the entry: it is watched, it is refused if other
 * users may write to it, and `env` in the entry overrides it.
 */
const ENV_FILE = 'envFile';

export function readEntryPortage(
  node: ConfigNode | undefined,
  path: Path,
  context: EntryContext,
  { name, at, target }: EntryOfPortage,
): EntryPortage {
  const members = membersOf(node, path, context);
  const options = readOptions(members, path, context, ({ scope, targets }) => {
    if (scope === 'call') return ON_COMMAND_LINE;
    if (scope === 'process') return 'is no matter of one server; it belongs to the key portage at the top.';
    if (target === undefined || targets === undefined || targets.includes(target)) return undefined;
    const what = targets.map((kind) => HOW_SERVERS_ARE_USED[kind]).join(' or ');
    return `is for a server that is ${what}; this one is ${HOW_SERVERS_ARE_USED[target]}.`;
  });
  return {
    options,
    isRequired: readRequired(members, path, context),
    callers: readCallers(members.get('callers'), [...path, 'callers'], context),
    tools: readPortageTools(members.get(TOOLS), [...path, TOOLS], context),
    membership: readMembership(members, path, { ...context, server: { name, at } }),
  };
}

/** @param path the path of the node */
export function readTopPortage(
  node: ConfigNode | undefined,
  context: EntryContext,
  path: Path = [PORTAGE],
): OptionLayer {
  return readOptions(membersOf(node, path, context), path, context, ({ scope }) => {
    if (scope === 'call') return ON_COMMAND_LINE;
    return scope === 'one-server' ? BELONGS_TO_ENTRY : undefined;
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

/** Keys under `portage` in an entry that are not options. `aggregate` at the top is one. */
const OWN_KEYS: readonly string[] = ['required', 'callers', TOOLS, ...MEMBERSHIP_KEYS];

/** Explains why an option cannot be set here. */
type Refuse = (option: Option) => string | undefined;

function readOptions(
  members: ReadonlyMap<string, ConfigNode>,
  path: Path,
  context: EntryContext,
  refuse: Refuse,
): OptionLayer {
  const { report } = context;
  const isOfEntry = path.length > 1;
  const options = new Map<OptionName, GivenOption>();
  for (const { key, node, place, ofLogin } of unfoldLogin(members, path, context)) {
    const isOwn = ofLogin === undefined && OWN_KEYS.includes(toCamelCase(key));
    if (isOwn && isOfEntry) continue;
    const option = optionCalled(key);
    if (option?.scope === 'entry' || toCamelCase(key) === ENV_FILE) {
      report.mistake(node.at, place, `write ${ENV_FILE} beside the command of the server it is for, without portage.`);
      continue;
    }
    if (option === undefined) {
      if (ofLogin !== undefined) report.mistake(node.at, place, explainUnknownOfLogin(ofLogin, report.mistakeCount));
      else if (isOwn) report.mistake(node.at, place, BELONGS_TO_ENTRY);
      else report.mistake(node.at, place, explainUnknown(key, report.mistakeCount));
      continue;
    }
    const problem = refuse(option);
    if (problem !== undefined) report.mistake(node.at, place, problem);
    else if (options.has(option.name))
      report.mistake(node.at, place, 'says again what another key says; leave one of them out.');
    else {
      const values = readValues(option, node, place, context);
      if (values !== undefined) options.set(option.name, { place: report.placeOf(node.at, place), values });
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
      yield { key: `${OF_LOGIN}-${toKebabCase(ofLogin)}`, node: inner, place: [...place, ofLogin], ofLogin };
    }
  }
}

const OF_LOGIN = 'oauth';

/**
 * Converts `oauthTokenEndpoint` to `tokenEndpoint`, and `oauthParam` to `params`. Returns undefined for options that
 * have no place in an object under `login`.
 */
export function loginKeyOf({ name, kind }: Pick<Option, 'name' | 'kind'>): string | undefined {
  if (!name.startsWith(OF_LOGIN)) return undefined;
  const key = name.slice(OF_LOGIN.length);
  return key.charAt(0).toLowerCase() + key.slice(1) + (kind === 'list' ? 's' : '');
}

/** Accepts `maxSessions` and `max-sessions`, and for lists also the plural: `mapHeaders`. */
function optionCalled(key: string): Option | undefined {
  const name = toCamelCase(key);
  const singular = findOption(name.replace(/s$/, ''));
  return findOption(name) ?? (singular?.kind === 'list' ? singular : undefined);
}

/** Limits the costly search for similar names. A longer key is not a misspelled option. */
const LONGEST_NAME = 40;
const MAX_COMPARED = 100;

function explainUnknown(key: string, before: number): string {
  const names = new Set([...OPTIONS.map(({ name }) => name), ...OWN_KEYS].map(toKebabCase));
  return `mcp-portage has no option ${quoteKey(key)}${suggestNear(key, [...names], before)}`;
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

/** Returns the values, or undefined after reporting a mistake. */
function readValues(
  option: Option,
  node: ConfigNode,
  path: Path,
  context: EntryContext,
): readonly ReadValue[] | undefined {
  const { readMember } = option.type;
  const mistakesBefore = context.report.mistakeCount;
  const isMap = readMember !== undefined && node.kind === 'object';
  const isList = option.kind === 'list' && node.kind === 'list';
  if (isMap) reportRepeated(node, path, context);
  const inner: readonly (readonly [ConfigNode, Path, Option])[] = isMap
    ? [...node.members].map(([name, member]) => [
        member,
        [...path, name],
        { ...option, type: { ...option.type, read: (text) => readMember(name, text) } },
      ])
    : isList
      ? node.items.map((item, index) => [item, [...path, index], option])
      : [[node, path, option]];
  const values = inner.map(([each, place, of]) => readNode(of, each, place, context));
  return context.report.mistakeCount > mistakesBefore ? undefined : values.filter((value) => value !== undefined);
}

const EXPECTED: Readonly<Record<Option['kind'], string>> = {
  flag: 'true or false',
  value: 'a string or a number',
  list: 'a string or an array of strings',
};

function readNode(option: Option, node: ConfigNode, path: Path, context: EntryContext): ReadValue | undefined {
  const isScalar = node.kind === 'boolean' || (node.kind === 'number' && option.kind !== 'flag');
  if (node.kind !== 'text' && !isScalar) {
    context.report.mistake(node.at, path, `expected ${EXPECTED[option.kind]}, got ${KIND_NAMES[node.kind]}.`);
    return undefined;
  }
  const text = node.kind === 'text' ? expandText(node, path, context) : String(node.value);
  return text === undefined ? undefined : readValue(option, text, 'file', readingContextOf(context));
}

/** In a file, paths are relative to its workspace, and variables in texts are replaced already. */
export function readingContextOf(context: EntryContext): ReadingContext {
  return {
    resolvePath: (path) => resolvePath(path, context),
    platform: context.readers.platform,
    variables: 'expanded',
    nameOf: context.report.kind === 'file' ? flagOf : (name) => name,
  };
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
