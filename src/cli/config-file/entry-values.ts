/** What a server is given besides its arguments: variables, named, in place or in a file beside; and headers. */
import { type EnvAssignment, parseEnvFile, VARIABLE_NAME } from '../parse/servers/child-environment.ts';
import type { ObjectNode, Path } from './config-tree.ts';
import { nearestNode } from './config-tree.ts';
import { type EntryContext, resolvePath } from './entry-context.ts';
import type { Entry } from './entry-schema.ts';
import { readOwnText } from './found-file.ts';
import type { TextsOfKey } from './server-entry.ts';

const MAX_ENV_FILE_BYTES = 2 ** 20;

/** In the words of `--env`. What is given in place wins over the file, as in VS Code. */
export function readEnvironment(entry: Entry, node: ObjectNode, path: Path, context: EntryContext): TextsOfKey {
  const values = new Map<string, string>();
  for (const { name, value } of readEnvFile(entry, node, path, context)) {
    if (value !== undefined) values.set(name, value);
  }
  for (const key of ['env', 'environment'] as const) {
    for (const [name, value] of Object.entries(entry[key] ?? {})) {
      const { at } = nearestNode(node, [key, name]);
      if (!VARIABLE_NAME.test(name)) {
        context.report.mistake(at, [...path, key, name], 'expected the name of a variable, got another text.');
      } else if (value === null) values.delete(name);
      else {
        warnOfUnbraced(value, [...path, key, name], context);
        values.set(name, String(value));
      }
    }
  }
  const copied = namesToCopy(entry, node, path, context).filter((name) => !values.has(name));
  const texts = [...copied, ...[...values].map(([name, value]) => `${name}=${value}`)];
  const key = (['env', 'environment', 'env_vars', 'envFile'] as const).find(
    (candidate) => entry[candidate] !== undefined,
  );
  return { key: key ?? 'env', texts };
}

function namesToCopy(entry: Entry, node: ObjectNode, path: Path, { report }: EntryContext): readonly string[] {
  return (entry.env_vars ?? []).flatMap((written, index) => {
    const name = typeof written === 'string' ? written : written.name;
    if (VARIABLE_NAME.test(name)) return [name];
    const place = ['env_vars', index];
    report.mistake(
      nearestNode(node, place).at,
      [...path, ...place],
      'expected the name of a variable, got another text.',
    );
    return [];
  });
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

/** Gemini CLI puts in the value of `$NAME`, most hosts do not. */
function warnOfUnbraced(value: unknown, path: Path, { report }: EntryContext): void {
  if (typeof value === 'string' && /^\$[A-Z_][A-Z0-9_]*$/.test(value)) report.warn('unbraced', path);
}

/** [RFC 9110 5.6.2] A name with a colon would be cut in two. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const AUTHORIZATION = 'authorization';

export function readHeaders(entry: Entry, node: ObjectNode, path: Path, context: EntryContext): TextsOfKey {
  const { report, variables } = context;
  const texts: string[] = [];
  const names = new Set<string>();
  let firstKey: string | undefined;

  const add = (name: string, value: string, below: Path): void => {
    const [key] = below;
    const { at } = nearestNode(node, below);
    if (!HEADER_NAME.test(name))
      return report.mistake(at, [...path, ...below], 'expected the name of a header, got another text.');
    if (names.has(name.toLowerCase())) {
      return report.mistake(at, [...path, ...below], 'a header that the entry has twice; leave one of them out.');
    }
    names.add(name.toLowerCase());
    firstKey ??= String(key);
    // A file read into a variable often brings its last line break along.
    texts.push(`${name}: ${value.trim()}`);
  };
  /** Codex names variables without braces, and no value to fall back on. */
  const addFromVariable = (name: string, variable: string, below: Path, scheme: string): void => {
    const expanded = variables.expand(`\${env:${variable}}`);
    if (expanded.ok) add(name, scheme + expanded.text, below);
    else report.mistake(nearestNode(node, below).at, [...path, ...below], expanded.problem);
  };

  for (const key of ['headers', 'http_headers'] as const) {
    for (const [name, value] of Object.entries(entry[key] ?? {})) {
      warnOfUnbraced(value, [...path, key, name], context);
      add(name, value, [key, name]);
    }
  }
  for (const [name, variable] of Object.entries(entry.env_http_headers ?? {})) {
    addFromVariable(name, variable, ['env_http_headers', name], '');
  }
  const { bearer_token_env_var: tokenVariable } = entry;
  if (tokenVariable !== undefined) addFromVariable(AUTHORIZATION, tokenVariable, ['bearer_token_env_var'], 'Bearer ');
  return { key: firstKey ?? 'headers', texts };
}
