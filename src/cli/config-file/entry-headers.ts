/** What is sent to a server with every request, in the words of `--header`. */
import { nearestNode, type ObjectNode, type Path } from './config-tree.ts';
import type { EntryContext } from './entry-context.ts';
import { warnOfUnbraced } from './entry-environment.ts';
import type { Entry } from './entry-schema.ts';
import type { TextsOfKey } from './server-entry.ts';

/** [RFC 9110 5.6.2] A name with a colon would be cut in two. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const AUTHORIZATION = 'authorization';

export function readHeaders(entry: Entry, node: ObjectNode, path: Path, context: EntryContext): TextsOfKey {
  const { report, variables } = context;
  const texts: string[] = [];
  const names = new Set<string>();
  let firstKey: string | undefined;

  const add = (name: string, value: string, below: Path): void => {
    const [key] = below;
    const { at } = nearestNode(node, below);
    if (!NAME.test(name))
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
