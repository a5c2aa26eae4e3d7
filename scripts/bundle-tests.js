/**
 * AVA gives every file a process of its own, so what starts one is kept small. Each test file is bundled with what it
 * imports from src/, for resolving a hundred modules there would cost more than most of the tests. Where a whole folder
 * runs, those of its files that start no programs share one bundle: most of their tests take milliseconds, and a process
 * half a second of processor time.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join, posix, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { TEXT_LOADERS } from './text-files.js';

/** What a module of no file is called: the tests of a folder, or AVA for one of its files. */
const TOGETHER = 'together:';
const AVA_OF = 'ava-of:';

/** The test files in a folder, or the one that is named itself. */
export function testFilesIn(place) {
  const names = statSync(place).isDirectory()
    ? readdirSync(place, { recursive: true }).map((name) => join(place, name))
    : [place];
  return names.map((name) => posix.normalize(name.split(sep).join('/'))).filter((name) => name.endsWith('.test.ts'));
}

/** @returns the bundles to make of these files: what each is called, and the test files in it */
export function bundlesOf(files) {
  const folders = new Map();
  for (const file of files) {
    const key = canShare(file) ? dirname(file) : file;
    folders.set(key, [...(folders.get(key) ?? []), file]);
  }
  return [...folders].map(([folder, together]) =>
    together.length === 1 ? alone(together[0]) : { name: `${folder}/together.test`, files: together },
  );
}

/** The bundle of one file alone. */
export function alone(file) {
  return { name: file.replace(/\.ts$/, ''), files: [file] };
}

/** It has no hooks, waits for nothing before its tests, starts no programs, and changes nothing that other files could see. */
function canShare(file) {
  const text = readFileSync(file, 'utf8');
  return ![HAS_HOOKS, WAITS_FIRST, STARTS_PROGRAMS].some((pattern) => pattern.test(text));
}

/** Also one that asks for turns, or hands `test` on to a suite. */
const HAS_HOOKS = /\(test\b|\btest\.(?!ts\b)|\banyTest\b/;
const WAITS_FIRST = /^\S.*\bawait\b/m;
/** Whatever looks at its own process is taken for one of them. */
const STARTS_PROGRAMS = /\bprocess\.|\b(?:startBridge|dialProgram|serverProgram|child_process|matrix)\b/;

export async function bundleTests(bundles, outdir) {
  await build({
    entryPoints: bundles.map(({ name, files }) => ({
      in: files.length === 1 ? files[0] : `${TOGETHER}${name}`,
      out: name,
    })),
    outdir,
    bundle: true,
    packages: 'external',
    loader: TEXT_LOADERS,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    sourcemap: true,
    sourcesContent: false,
    plugins: [{ name: 'tests', setup: (build) => loadTests(build, bundles) }],
    logLevel: 'warning',
  });
}

function loadTests({ onLoad, onResolve }, bundles) {
  const together = new Map(bundles.filter(({ files }) => files.length > 1).map(({ name, files }) => [name, files]));
  const shared = new Set([...together.values()].flat().map((file) => resolve(file)));
  onResolve({ filter: new RegExp(`^(?:${TOGETHER}|${AVA_OF})`) }, ({ path }) => ({ path, namespace: 'tests' }));
  onLoad({ filter: new RegExp(`^${TOGETHER}`), namespace: 'tests' }, ({ path }) => {
    const files = together.get(path.slice(TOGETHER.length));
    return { contents: files.map((file) => `import './${file}';`).join('\n'), resolveDir: resolve('.') };
  });
  // A title names the file that it stands in, as AVA does where each has a bundle of its own. One test at a time: with all of
  // a folder side by side, what one of them computes would be waited for by those that have a time limit.
  onLoad({ filter: new RegExp(`^${AVA_OF}`), namespace: 'tests' }, ({ path }) => {
    const file = JSON.stringify(`${path.slice(AVA_OF.length)} › `);
    return {
      contents: `import test from 'ava'; export default (title, run) => test.serial(${file} + title, run);`,
      resolveDir: resolve('.'),
    };
  });
  onLoad({ filter: /\.ts$/ }, async ({ path }) => {
    const text = await readFile(path, 'utf8');
    // Fixtures are found beside the source of a test, wherever its bundle is.
    const located = text.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href));
    const name = basename(path, '.test.ts');
    const contents = shared.has(path) ? located.replace(/from 'ava';/, `from '${AVA_OF}${name}';`) : located;
    return { contents, loader: 'ts', resolveDir: dirname(path) };
  });
}
