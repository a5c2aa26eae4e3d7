/**
 * The types of the library as one file that needs no other: what src/library.ts exports, and what those declarations name.
 * TypeScript writes a declaration file for each source, with much that is nobody's business outside. Bundlers of such files
 * work on the compiler's JavaScript API, which its native version does not have, so this reads what the compiler has
 * written: in its own layout each declaration begins and ends at the margin.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const ENTRY = 'library.ts';
/** Everything that the public declarations may come from. */
const SOURCES = [
  ENTRY,
  'library/public-types.ts',
  'library/option-types.ts',
  'errors.ts',
  'probe/report.ts',
  'mcp/vocabulary/meta.ts',
  'mcp/vocabulary/revisions.ts',
];
/** Without looking for what the sources import, which is every other source: types of members are written out in these. */
const COMPILER = [
  ...['--ignoreConfig', '--declaration', '--emitDeclarationOnly', '--noCheck', '--noResolve', '--rootDir', 'src'],
  ...['--target', 'es2023', '--module', 'nodenext', '--lib', 'es2023', '--types', '', '--strict'],
  ...['--exactOptionalPropertyTypes', '--verbatimModuleSyntax', '--allowImportingTsExtensions'],
];

/** @returns the text of the declaration file */
export async function renderPublicTypes() {
  const files = await emitDeclarations();
  const external = new Set();
  const declared = new Map();
  const exported = new Set();
  for (const [path, text] of files) {
    for (const statement of splitStatements(text)) {
      const code = withoutComments(statement);
      if (/^import /.test(code)) {
        if (!/from '\./.test(code)) external.add(code.trim());
        continue;
      }
      const names = namesOf(code, path, files);
      for (const name of names.exported) if (path === ENTRY) exported.add(name);
      if (names.declared === undefined) continue;
      if (declared.has(names.declared)) throw new Error(`two declarations of ${names.declared}; rename one of them`);
      declared.set(names.declared, statement.trim());
    }
  }
  const needed = collectNeeded(exported, declared);
  const body = [...needed].map((name) => asMember(declared.get(name), declared));
  const used = [...external].filter((line) =>
    namesInBraces(line).some((name) => body.some((text) => says(text, name))),
  );
  const values = [...exported].filter((name) => isValue(declared.get(name)));
  const types = [...needed].filter((name) => exported.has(name) && !values.includes(name));
  return [
    '/// <reference types="node" />',
    ...used,
    '',
    body.join('\n\n'),
    '',
    `export { ${[...values, ...types.map((name) => `type ${name}`)].join(', ')} };`,
    '',
  ].join('\n');
}

/** By the path of the source. */
async function emitDeclarations() {
  const out = await mkdtemp(join(tmpdir(), 'mcp-portage-types-'));
  try {
    const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');
    const sources = SOURCES.map((path) => `src/${path}`);
    await promisify(execFile)(process.execPath, [compiler, ...COMPILER, '--outDir', out, ...sources]);
    const read = SOURCES.map(async (path) => {
      const text = await readFile(join(out, path.replace(/\.ts$/, '.d.ts')), 'utf8');
      return [path, text];
    });
    return new Map(await Promise.all(read));
  } finally {
    await rm(out, { recursive: true, force: true });
  }
}

/** Each with the comment in front of it. What is said of the file as a whole stays with nobody. */
function splitStatements(text) {
  const statements = [];
  let current = [];
  for (const line of text.split('\n')) {
    const begins = /^(?:import|export|declare|interface|type|\/\*\*)/.test(line);
    if (begins && current.length > 0 && !isComment(current)) {
      statements.push(current.join('\n'));
      current = [];
    }
    // Two comments in a row: the first is about the file.
    if (begins && line.startsWith('/**')) current = [];
    current.push(line);
  }
  statements.push(current.join('\n'));
  return statements.filter((statement) => withoutComments(statement).trim() !== '');
}

function isComment(lines) {
  return withoutComments(lines.join('\n')).trim() === '';
}

function withoutComments(text) {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').trimStart();
}

function namesOf(code, path, files) {
  const [, name] =
    /^(?:export )?(?:declare )?(?:abstract )?(?:class|function|interface|type|const) (\w+)/.exec(code) ?? [];
  if (name !== undefined) return { declared: name, exported: [name] };
  const [, from] = /^export type \* from '\.\/(.+)';/.exec(code) ?? [];
  if (from !== undefined) return { declared: undefined, exported: exportsOf(files.get(from), from, path) };
  return { declared: undefined, exported: /^export (?:type )?\{/.test(code) ? namesInBraces(code) : [] };
}

/** Interfaces and types; what else a module has is not public by that. */
function exportsOf(text, from, path) {
  if (text === undefined) throw new Error(`${path} exports ${from}, which scripts/public-types.js does not know`);
  return [...text.matchAll(/^export (?:interface|type) (\w+)/gm)].map(([, name]) => name);
}

function namesInBraces(code) {
  const [, names = ''] = /\{([^}]*)\}/.exec(code) ?? [];
  return names.split(',').map((name) => name.replace(/^\s*(?:type )?/, '').trim());
}

/** What is exported, and whatever that says. */
function collectNeeded(exported, declared) {
  const needed = new Set(exported);
  for (const name of needed) {
    const statement = declared.get(name);
    if (statement === undefined) throw new Error(`nothing declares ${name}, which the library exports`);
    const text = withoutComments(asMember(statement, declared));
    for (const other of declared.keys()) if (says(text, other)) needed.add(other);
  }
  return needed;
}

function says(text, name) {
  return new RegExp(`(?<![\\w.'])${name}(?![\\w'])(?!\\??:)`).test(withoutComments(text));
}

/** As it stands in the file: nothing is exported but by the list at its end. The keys of a table are written out. */
function asMember(statement, declared) {
  return statement
    .replace(/^export (?:declare )?/m, (written) => (written.includes('declare') ? 'declare ' : ''))
    .replaceAll(/keyof typeof (\w+)/g, (_, table) => {
      const keys = [...(declared.get(table) ?? '').matchAll(/^ {4}readonly (\w+):/gm)].map(([, key]) => `'${key}'`);
      return keys.length === 0 ? 'never' : `\n  | ${keys.join('\n  | ')}`;
    });
}

function isValue(statement) {
  return /^(?:export )?(?:declare )?(?:class|function|const)/.test(withoutComments(statement));
}
