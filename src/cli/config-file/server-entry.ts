/** Translates one entry of a host's file into our own options. */
import type { Target } from '../../config/server.ts';
import { suggest } from '../../suggest.ts';
import { type GivenOption, type OptionLayer, readValue } from '../options/given-options.ts';
import { type OptionName, optionOf } from '../options/option-table.ts';
import type { WrittenServer } from './config-file.ts';
import { type ConfigNode, KIND_NAMES, nearestNode, type ObjectNode, type Path } from './config-tree.ts';
import { type Dialect, meaningOf } from './dialects.ts';
import { type EntryContext, reportRepeated, resolvePath, toPlain } from './entry-context.ts';
import type { CheckedEntry, Entry } from './entry-schema.ts';
import { readTarget, TARGET_KEYS } from './entry-target.ts';
import type { TextsOfKey, ValuesOfKey } from './entry-values.ts';
import { ownVariables, readEnvironment, readHeaders } from './entry-values.ts';
import { quoteKey } from './file-report.ts';
import { readHostLogin } from './host-login.ts';
import { PORTAGE, readEntryPortage, readingContextOf } from './portage-key.ts';

export interface EntryReader extends EntryContext {
  readonly dialect: Dialect;
  readonly checkEntry: (plain: ReadonlyMap<string, unknown>) => CheckedEntry;
  /** The keys that `checkEntry` accepts. */
  readonly knownKeys: ReadonlySet<string>;
}

/**
 * Returns undefined if the entry has a mistake. All of its mistakes have then been reported. A key with a mistake is left
 * out of further checks, which would report misleading ones.
 */
export function readServer(
  { name, segment }: { readonly name: string; readonly segment: string },
  node: ObjectNode,
  path: Path,
  reader: EntryReader,
): WrittenServer | undefined {
  const { report } = reader;
  reportRepeated(node, path, reader);
  const mistakesBefore = report.mistakeCount;
  const plain = toPlainEntry(node, path, reader);
  const { entry, problems } = reader.checkEntry(plain.entry);
  for (const { path: below, expected, isOfWrongKind } of problems) {
    const found = nearestNode(node, below);
    const got = isOfWrongKind ? `, got ${KIND_NAMES[found.kind]}` : '';
    report.mistake(found.at, [...path, ...below], `expected ${expected}${got}.`);
  }
  const wrongKeys = [...plain.wrongKeys, ...problems.map(({ path: [key = ''] }) => String(key))];
  const read = wrongKeys.some((key) => TARGET_KEYS.includes(key))
    ? undefined
    : readTarget(entry, { ...readingContextOf(reader), dialect: reader.dialect });
  if (read?.ok === false) {
    report.mistake(
      nearestNode(node, read.path).at,
      [...path, ...read.path],
      `${read.problem}${read.path.length === 0 ? suggestTarget(node, reader) : ''}`,
    );
  }
  const portage = readEntryPortage(node.members.get(PORTAGE), [...path, PORTAGE], reader, {
    name,
    at: node.at,
    target: read?.ok === true ? read.target.kind : undefined,
  });
  if (read?.ok !== true) {
    // Only for the mistakes in them.
    readEnvironment(entry, node, path, reader);
    readHeaders(entry, node, path, reader);
    return undefined;
  }
  const { target, transport } = read;
  const options = new OptionsOfEntry(node, path, reader);
  if (target.kind === 'command') readCommandOptions(entry, options, node, path, reader);
  else if (target.kind === 'grpc') options.set('header', readHeaders(entry, node, path, reader));
  else if (target.kind === 'url') {
    options.set('header', readHeaders(entry, node, path, reader));
    for (const [name, texts] of readHostLogin(node)) options.setTexts(name, texts, 'host');
    if (transport !== undefined) options.setTexts('transport', { key: transport.key, texts: [transport.name] });
  }
  if (target.kind === 'mqtt') readAccount(entry, options);
  readCommonOptions(entry, options, reader, path);
  options.addAll(portage.options);
  warnOfKeys(entry, target, path, reader);
  if (report.mistakeCount > mistakesBefore) return undefined;
  return {
    name,
    segment,
    place: report.placeOf(node.at, path),
    target,
    options: options.all(),
    isRequired: portage.isRequired ?? entry.required ?? false,
    callers: portage.callers,
    membership: portage.membership,
    tools: portage.tools,
  };
}

/**
 * Returns the known keys of the entry, except `portage`, those with null, which count as absent, and those with mistakes
 * in their texts.
 */
function toPlainEntry(node: ObjectNode, path: Path, reader: EntryReader) {
  const entry = new Map<string, unknown>();
  const wrongKeys: string[] = [];
  for (const [key, member] of node.members) {
    // Unknown keys are skipped before expansion, as they may have variables that only the host knows.
    if (key === PORTAGE || member.kind === 'null' || !reader.knownKeys.has(key)) continue;
    const before = reader.report.mistakeCount;
    const plain = toPlain(member, [...path, key], key === 'args' ? ofArguments(reader, node) : reader);
    if (reader.report.mistakeCount > before) wrongKeys.push(key);
    else entry.set(key, plain);
  }
  return { entry, wrongKeys };
}

/** Limits of the costly search for similar keys. A longer key is not a misspelled one, and no file is read so far. */
const LONGEST_KEY = 24;
const MAX_COMPARED_KEYS = 10;
const MAX_COMPARED_ENTRIES = 100;

/** Returns the known key that an unknown one is most like; undefined if none is near, or several are. */
function keyLike(key: string, knownKeys: ReadonlySet<string>): string | undefined {
  if (key.length > LONGEST_KEY) return undefined;
  const [meant, ...others] = suggest(key, [...knownKeys]);
  return others.length === 0 ? meant : undefined;
}

/** Returns the end of a sentence about an entry without a target: the key that was probably meant to name it. */
function suggestTarget({ members }: ObjectNode, { knownKeys, report }: EntryReader): string {
  if (report.mistakeCount > MAX_COMPARED_ENTRIES) return '';
  const unknown = [...members.keys()].filter((key) => !knownKeys.has(key) && meaningOf(key) === 'unknown');
  for (const key of unknown.slice(0, MAX_COMPARED_KEYS)) {
    const meant = keyLike(key, knownKeys);
    if (meant !== undefined && TARGET_KEYS.includes(meant)) return ` Did you mean ${meant} by ${quoteKey(key)}?`;
  }
  return '';
}

/**
 * Returns a reader that leaves some `${…}` in arguments as they are, as hosts without variables do: the program may be
 * a shell, and it may get the variable from the environment that the entry sets.
 */
function ofArguments(reader: EntryReader, node: ObjectNode): EntryReader {
  const own = ownVariables(node);
  const { variables } = reader;
  return { ...reader, variables: { expand: (text) => variables.expand(text, own) } };
}

class OptionsOfEntry {
  readonly #options = new Map<OptionName, GivenOption>();
  readonly #node: ConfigNode;
  readonly #path: Path;
  readonly #reader: EntryReader;

  constructor(node: ConfigNode, path: Path, reader: EntryReader) {
    this.#node = node;
    this.#path = path;
    this.#reader = reader;
  }

  set(name: OptionName, { key, values }: ValuesOfKey, meantFor: GivenOption['meantFor'] = 'us'): void {
    if (values.length === 0) return;
    const path = key === '' ? [] : [key];
    const { at } = nearestNode(this.#node, path);
    const place = this.#reader.report.placeOf(at, [...this.#path, ...path]);
    this.#options.set(name, { place, values, ...(meantFor === 'host' && { meantFor }) });
  }

  setTexts(name: OptionName, { key, texts }: TextsOfKey, meantFor?: GivenOption['meantFor']): void {
    const context = readingContextOf(this.#reader);
    const values = texts.map((text) => readValue(optionOf(name), text, 'file', context));
    this.set(name, { key, values }, meantFor);
  }

  /** Adds the options under `portage`. They override those of the entry, and lists are joined. */
  addAll(options: OptionLayer): void {
    for (const [name, { place, values }] of options) {
      const former = this.#options.get(name);
      const isMore = optionOf(name).kind === 'list' && former?.meantFor !== 'host';
      const before = isMore ? (former?.values ?? []) : [];
      this.#options.set(name, { place, values: [...before, ...values] });
    }
  }

  all(): OptionLayer {
    return this.#options;
  }
}

function readCommandOptions(
  entry: Entry,
  options: OptionsOfEntry,
  node: ObjectNode,
  path: Path,
  reader: EntryReader,
): void {
  options.set('env', readEnvironment(entry, node, path, reader));
  const cwd = entry.cwd === undefined || entry.cwd === '' ? undefined : resolvePath(entry.cwd, reader);
  options.setTexts('cwd', { key: cwd === undefined ? '' : 'cwd', texts: [cwd ?? reader.workspaceFolder] });
}

function readAccount({ username, password }: Entry, options: OptionsOfEntry): void {
  if (username !== undefined) options.setTexts('user', { key: 'username', texts: [username] });
  if (password !== undefined)
    options.set('password', { key: 'password', values: [{ ok: true, value: { kind: 'here', place: password } }] });
}

function readCommonOptions(entry: Entry, options: OptionsOfEntry, reader: EntryReader, path: Path): void {
  const timeout = readTimeout(entry, reader, path);
  if (timeout !== undefined) options.setTexts('requestTimeout', timeout);
  options.setTexts('protocol', {
    key: 'protocolEra',
    texts: entry.protocolEra === undefined ? [] : [entry.protocolEra],
  });
  const { included, excluded } = readToolChoice(entry);
  // An empty list means no tools for hosts, but all tools for `--include-tool`.
  if (included !== undefined && included.texts.length === 0) {
    options.setTexts('excludeTool', { key: included.key, texts: ['*', ...(excluded?.texts ?? [])] });
  } else {
    if (included !== undefined) options.setTexts('includeTool', included);
    if (excluded !== undefined) options.setTexts('excludeTool', excluded);
  }
}

interface ToolChoice {
  readonly included: TextsOfKey | undefined;
  readonly excluded: TextsOfKey | undefined;
}

function readToolChoice(entry: Entry): ToolChoice {
  const { available_tools: available = [] } = entry;
  // In goose, an empty list means all tools.
  const ofGoose = available.length === 0 ? undefined : { key: 'available_tools', texts: available };
  const ofEach = readToolTable(entry.tools);
  const included = firstList(entry, ['includeTools', 'enabled_tools', 'tools']) ?? ofGoose ?? ofEach.included;
  const excluded = firstList(entry, ['excludeTools', 'disabled_tools', 'disabledTools']);
  const texts = [...(excluded?.texts ?? []), ...ofEach.excluded];
  return { included, excluded: texts.length === 0 ? excluded : { key: excluded?.key ?? 'tools', texts } };
}

/**
 * Reads a table of tools. Hermes has lists of names under `include` or `exclude`; other hosts have a key for each tool,
 * which may disable it.
 */
function readToolTable(tools: Entry['tools']) {
  if (tools === undefined || Array.isArray(tools)) return { included: undefined, excluded: [] };
  const [include, exclude] = ['include', 'exclude'].map((key) => listOf(tools[key]));
  if (include !== undefined) return { included: { key: 'tools', texts: include }, excluded: [] };
  if (exclude !== undefined) return { included: undefined, excluded: exclude };
  const off = Object.entries(tools).flatMap(([name, said]) => (isOff(said) ? [name] : []));
  return { included: undefined, excluded: off };
}

function listOf(said: unknown): readonly string[] | undefined {
  if (typeof said === 'string') return [said];
  return Array.isArray(said) ? said.map(String) : undefined;
}

function isOff(said: unknown): boolean {
  if (typeof said === 'object' && said !== null) {
    return ('enabled' in said && said.enabled === false) || ('disabled' in said && said.disabled === true);
  }
  return said === false;
}

function firstList(entry: Entry, keys: readonly (keyof Entry & string)[]): TextsOfKey | undefined {
  const key = keys.find((candidate) => Array.isArray(entry[candidate]));
  const texts = key === undefined ? undefined : entry[key];
  return key === undefined || !Array.isArray(texts) ? undefined : { key, texts };
}

/**
 * Smaller numbers are taken for seconds, the unit of Cline and Roo Code. Other hosts count in milliseconds, and a limit
 * of less than one second for a call is improbable.
 */
const LEAST_MS = 1000;

function readTimeout(entry: Entry, { dialect, report }: EntryReader, path: Path): TextsOfKey | undefined {
  const { timeout, tool_timeout_sec: seconds } = entry;
  if (seconds !== undefined) return { key: 'tool_timeout_sec', texts: [`${Math.round(seconds * 1000)}ms`] };
  if (typeof timeout === 'object') {
    const ms = timeout.request ?? timeout.execution;
    return ms === undefined ? undefined : { key: 'timeout', texts: [`${Math.round(ms)}ms`] };
  }
  if (timeout === undefined || dialect.timeout === 'other') return undefined;
  const isSeconds = dialect.timeout === 'seconds' || (timeout > 0 && timeout < LEAST_MS);
  if (isSeconds && dialect.timeout === 'call') report.warn('seconds', [...path, 'timeout']);
  return { key: 'timeout', texts: [`${Math.round(isSeconds ? timeout * 1000 : timeout)}ms`] };
}

const OF_COMMANDS = ['args', 'env', 'environment', 'env_vars', 'env_keys', 'envs', 'envFile', 'cwd'];
const OF_URLS = ['headers', 'socket', 'http_headers', 'requestOptions', 'env_http_headers', 'bearer_token_env_var'];

const OF_BROKERS = ['username', 'password'];

const MEANINGLESS: Readonly<Record<Target['kind'], readonly string[]>> = {
  command: [...OF_URLS, ...OF_BROKERS],
  url: [...OF_COMMANDS, ...OF_BROKERS],
  stream: [...OF_COMMANDS, ...OF_URLS, ...OF_BROKERS],
  grpc: [...OF_COMMANDS, ...OF_BROKERS, 'socket'],
  mqtt: [...OF_COMMANDS, ...OF_URLS],
  replay: [...OF_COMMANDS, ...OF_URLS, ...OF_BROKERS],
};

function warnOfKeys(entry: Entry, target: Target, path: Path, { report, knownKeys }: EntryReader): void {
  for (const key of Object.keys(entry)) {
    if (knownKeys.has(key) && MEANINGLESS[target.kind].includes(key)) {
      if (!isEmpty(entry[key])) report.warn('unknown', [...path, key]);
    }
  }
}

export function warnOfUnknownKeys(node: ObjectNode, path: Path, reader: EntryReader): void {
  const { report, knownKeys } = reader;
  for (const [key, member] of node.members) {
    if (key === PORTAGE || knownKeys.has(key)) continue;
    const meaning = meaningOf(key);
    // A value such as `oauth: false` sets nothing, so it needs no warning.
    const says = !(member.kind === 'null' || (member.kind === 'boolean' && !member.value));
    if (meaning === 'meaningless' || !says) continue;
    report.warn(meaning, [...path, key], () => (meaning === 'unknown' ? keyLike(key, knownKeys) : undefined));
  }
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}
