/** The variables of a server: named, given in place, or in a file beside. */
import { parseEnv } from 'node:util';
import type { Environment } from '../parse/child-environment.ts';
import type { ObjectNode, Path } from './config-tree.ts';
import { nearestNode } from './config-tree.ts';
import { type EntryContext, resolvePath } from './entry-context.ts';
import type { Entry } from './entry-schema.ts';
import { readOwnText } from './found-file.ts';
import type { TextsOfKey } from './server-entry.ts';

const MAX_ENV_FILE_BYTES = 2 ** 20;
/** What an assignment on the command line can name, too. */
const NAME = /^[^=\s\0]{1,1000}$/;

/** In the words of `--env`. What is given in place wins over the file, as in VS Code. */
export function readEnvironment(entry: Entry, node: ObjectNode, path: Path, context: EntryContext): TextsOfKey {
  const values = new Map<string, string>();
  for (const [name, value] of Object.entries(readEnvFile(entry, node, path, context))) {
    if (value !== undefined && NAME.test(name)) values.set(name, value);
  }
  for (const key of ['env', 'environment'] as const) {
    for (const [name, value] of Object.entries(entry[key] ?? {})) {
      const { at } = nearestNode(node, [key, name]);
      if (!NAME.test(name)) {
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
    if (NAME.test(name)) return [name];
    const place = ['env_vars', index];
    report.mistake(
      nearestNode(node, place).at,
      [...path, ...place],
      'expected the name of a variable, got another text.',
    );
    return [];
  });
}

function readEnvFile(entry: Entry, node: ObjectNode, path: Path, context: EntryContext): Environment {
  if (entry.envFile === undefined || entry.envFile === '') return {};
  const file = resolvePath(entry.envFile, context);
  context.include(file);
  const read = readOwnText(file, MAX_ENV_FILE_BYTES, context.readers);
  if (read.ok && !read.text.includes('\0')) return parseEnv(read.text);
  const problem = read.ok ? 'the file that is named here is no text.' : read.problem;
  context.report.mistake(nearestNode(node, ['envFile']).at, [...path, 'envFile'], problem);
  return {};
}

/** Gemini CLI puts in the value of `$NAME`, most hosts do not. */
export function warnOfUnbraced(value: unknown, path: Path, { report }: EntryContext): void {
  if (typeof value === 'string' && /^\$[A-Z_][A-Z0-9_]*$/.test(value)) report.warn('unbraced', path);
}
