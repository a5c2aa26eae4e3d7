/** Reads the environment variables of a server, from the entry or the file that it names, and the headers. */
import type { ReadValue } from '../options/given-options.ts';
import { type EnvAssignment, parseEnvFile, VARIABLE_NAME } from '../parse/servers/child-environment.ts';
import { checkHeader } from '../parse/servers/header-value.ts';
import type { ObjectNode, Path } from './config-tree.ts';
import { nearestNode } from './config-tree.ts';
import { type EntryContext, resolvePath } from './entry-context.ts';
import type { Entry } from './entry-schema.ts';
import { readOwnText } from './found-file.ts';

/** Values for an option, and the key of the entry that they come from; empty for the entry itself. */
export interface ValuesOfKey {
  readonly key: string;
  readonly values: readonly ReadValue[];
}

/** The values of a key, as they would be written on the command line. */
export interface TextsOfKey {
  readonly key: string;
  readonly texts: readonly string[];
}

const MAX_ENV_FILE_BYTES = 2 ** 20;

/** Returns values for `env`. Variables in the entry override those of the file, as in VS Code. */
export function readEnvironment(entry: Entry, node: ObjectNode, path: Path, context: EntryContext): ValuesOfKey {
  const values = new Map<string, string>();
  for (const { name, value } of readEnvFile(entry, node, path, context)) {
    if (value !== undefined) values.set(name, value);
  }
  for (const [below, variables] of variablesOf(entry)) {
    for (const [name, value] of Object.entries(variables)) {
      const place = [...below, name];
      if (!VARIABLE_NAME.test(name)) {
        const { at } = nearestNode(node, place);
        context.report.mistake(at, [...path, ...place], 'expected the name of a variable, got another string.');
      } else if (value === null) values.delete(name);
      else {
        warnOfUnfilled(value, [...path, ...place], context);
        values.set(name, String(value));
      }
    }
  }
  const copied = namesToCopy(entry, node, path, context).filter((name) => !values.has(name));
  const assignments: readonly EnvAssignment[] = [
    ...copied.map((name) => ({ name, value: undefined })),
    ...[...values].map(([name, value]) => ({ name, value })),
  ];
  const keys = [...ENV_KEYS, ...COPIED_KEYS, 'envFile'] as const;
  return {
    key: keys.find((key) => entry[key] !== undefined) ?? 'env',
    values: assignments.map((value) => ({ ok: true, value })),
  };
}

const ENV_KEYS = ['env', 'environment', 'envs'] as const;
const COPIED_KEYS = ['env_vars', 'env_keys'] as const;

/** Returns the objects with variables in an entry, and their paths. */
function variablesOf(entry: Entry): readonly (readonly [Path, NonNullable<Entry['env']>])[] {
  const { command } = entry;
  const ofProgram = typeof command === 'object' && !Array.isArray(command) ? command.env : undefined;
  return [
    ...(ofProgram === undefined ? [] : [[['command', 'env'], ofProgram] as const]),
    ...ENV_KEYS.map((key) => [[key], entry[key] ?? {}] as const),
  ];
}

/** Returns the names of the variables that an entry sets for its program. */
export function ownVariables({ members }: ObjectNode): ReadonlySet<string> {
  const command = members.get('command');
  const objects = [
    command?.kind === 'object' ? command.members.get('env') : undefined,
    ...ENV_KEYS.map((key) => members.get(key)),
  ];
  return new Set(objects.flatMap((object) => (object?.kind === 'object' ? [...object.members.keys()] : [])));
}

/** Returns the names of variables to copy from our environment. Unset ones are left out, as in Codex and goose. */
function namesToCopy(entry: Entry, node: ObjectNode, path: Path, context: EntryContext): readonly string[] {
  const { report } = context;
  return COPIED_KEYS.flatMap((key) =>
    (entry[key] ?? []).flatMap((written, index) => {
      const name = typeof written === 'string' ? written : written.name;
      const place = [key, index];
      if (!VARIABLE_NAME.test(name)) {
        const { at } = nearestNode(node, place);
        report.mistake(at, [...path, ...place], 'expected the name of a variable, got another string.');
        return [];
      }
      if (isSet(name, context)) return [name];
      report.warn('unset', [...path, ...place]);
      return [];
    }),
  );
}

function isSet(name: string, { variables }: EntryContext): boolean {
  return variables.expand(`\${env:${name}}`).ok;
}

function readEnvFile(entry: Entry, node: ObjectNode, path: Path, context: EntryContext): readonly EnvAssignment[] {
  if (entry.envFile === undefined || entry.envFile === '') return [];
  const file = resolvePath(entry.envFile, context);
  context.include(file);
  const read = readOwnText(file, MAX_ENV_FILE_BYTES, context.readers);
  const assignments = read.ok ? parseEnvFile(read.text) : undefined;
  if (assignments !== undefined) return assignments;
  const problem = read.ok ? 'the file that is named here is not a text file.' : read.problem;
  context.report.mistake(nearestNode(node, ['envFile']).at, [...path, 'envFile'], problem);
  return [];
}

/**
 * Warns of texts that look like variables and are kept as they are. `$NAME` is replaced by Gemini CLI and goose only,
 * and `{{NAME}}` by LibreChat.
 */
function warnOfUnfilled(value: unknown, path: Path, { report }: EntryContext): void {
  if (typeof value !== 'string') return;
  if (/\$[A-Z_][A-Z0-9_]+/.test(value)) report.warn('unbraced', path);
  if (/\{\{[^{}]+\}\}/.test(value)) report.warn('placeholder', path);
}

/** [RFC 9110 5.6.2] A colon in a name would end the name. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const AUTHORIZATION = 'authorization';

export function readHeaders(entry: Entry, node: ObjectNode, path: Path, context: EntryContext): ValuesOfKey {
  const { report, variables } = context;
  const values: ReadValue[] = [];
  const names = new Set<string>();
  let firstKey: string | undefined;

  const add = (name: string, value: string, below: Path): void => {
    const [key] = below;
    const { at } = nearestNode(node, below);
    if (!HEADER_NAME.test(name))
      return report.mistake(at, [...path, ...below], 'expected the name of a header, got another string.');
    if (names.has(name.toLowerCase())) {
      return report.mistake(at, [...path, ...below], 'a header that the entry has twice; leave one of them out.');
    }
    names.add(name.toLowerCase());
    firstKey ??= String(key);
    // A file that was read into a variable often ends with a line break.
    values.push(checkHeader(name, value.trim(), 'expanded'));
  };
  /** Adds a header from a variable that Codex names without braces and without a default. */
  const addFromVariable = (name: string, variable: string, below: Path, scheme: string): void => {
    const expanded = variables.expand(`\${env:${variable}}`);
    if (expanded.ok) add(name, scheme + expanded.text, below);
    else report.mistake(nearestNode(node, below).at, [...path, ...below], expanded.problem);
  };

  for (const [below, written] of [
    [['headers'], entry.headers],
    [['http_headers'], entry.http_headers],
    [['requestOptions', 'headers'], entry.requestOptions?.headers],
  ] as const) {
    for (const [name, value] of Object.entries(written ?? {})) {
      warnOfUnfilled(value, [...path, ...below, name], context);
      add(name, value, [...below, name]);
    }
  }
  for (const [name, variable] of Object.entries(entry.env_http_headers ?? {})) {
    const place = ['env_http_headers', name];
    if (isSet(variable, context)) addFromVariable(name, variable, place, '');
    else report.warn('unset', [...path, ...place]);
  }
  const { bearer_token_env_var: tokenVariable } = entry;
  if (tokenVariable !== undefined) addFromVariable(AUTHORIZATION, tokenVariable, ['bearer_token_env_var'], 'Bearer ');
  return { key: firstKey ?? 'headers', values };
}
