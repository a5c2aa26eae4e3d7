/** The documents for users and contributors, as text: all that is not made by a program as a whole. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const ROOT = new URL('../../', import.meta.url);

export interface Document {
  /** From the folder of the project. */
  readonly path: string;
  readonly text: string;
}

export interface Block {
  readonly path: string;
  /** What stands behind the fence: the language. */
  readonly language: string;
  readonly text: string;
}

const BENCH = ['bench/README.md', 'bench/results.md', 'bench/cluster-results.md', 'bench/what-was-tried.md'];
const AT_THE_TOP = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', ...BENCH];

export const DOCUMENTS: readonly Document[] = [...AT_THE_TOP, ...below('docs'), ...below('.github')].map((path) => ({
  path,
  text: readFileSync(new URL(path, ROOT), 'utf8'),
}));

/** What users read to do something: the README and the guides. */
export const GUIDES = DOCUMENTS.filter(({ path }) => path === 'README.md' || path.startsWith('docs/guide/'));

/** Besides those, what they look up. */
export const FOR_USERS = [...GUIDES, ...DOCUMENTS.filter(({ path }) => path.startsWith('docs/reference/'))];

export function documentAt(path: string): string {
  const found = DOCUMENTS.find((document) => document.path === path);
  if (found === undefined) throw new Error(`there is no document ${path}`);
  return found.text;
}

export function blocksOf({ path, text }: Document): readonly Block[] {
  return [...text.matchAll(/^( *)```(\w*)\n(.*?)^\1```$/gms)].map(([, indent = '', language = '', body = '']) => ({
    path,
    language,
    text: body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }));
}

/** The lines of a block that a shell runs, without comments. */
export function commandsOf({ text }: Block): readonly string[] {
  const lines = text.replaceAll(/ *\\\n */g, ' ').split('\n');
  return lines.flatMap((line) => (/^\s*(#|$)/.test(line) ? [] : [line.trim()]));
}

/** As a shell does, for the little quoting there is in the documents. */
export function splitWords(text: string): string[] {
  return (text.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? []).map((word) => word.replaceAll(/['"]/g, ''));
}

function below(folder: string): readonly string[] {
  const names = readdirSync(fileURLToPath(new URL(folder, ROOT)), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
    .sort();
}
