/**
 * AVA gives every file a process of its own, so what starts one is kept small. Each test file is bundled with what it
 * imports from src/, for resolving a hundred modules there would cost more than most of the tests. Files that start no programs
 * share bundles: most of their tests take milliseconds, and a process half a second of processor time.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join, posix, relative, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { PackageBundles } from './bundle-packages.js';
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
  const sharing = files.filter(canShare);
  const groups = Array.from({ length: Math.ceil(sharing.length / MOST_TOGETHER) }, () => []);
  // Every so many files, so that what takes long in one folder is in several groups.
  for (const [index, file] of sharing.entries()) groups[index % groups.length].push(file);
  return [
    ...groups.map((together, index) =>
      together.length === 1 ? alone(together[0]) : { name: `test/together-${index + 1}.test`, files: together },
    ),
    ...files.filter((file) => !sharing.includes(file)).map(alone),
  ];
}

/** Enough that it costs little to start their process, and few enough that several groups run side by side. */
const MOST_TOGETHER = 40;

/** The bundle of one file alone. */
export function alone(file) {
  return { name: file.replace(/\.ts$/, ''), files: [file] };
}

/** It has no hooks, waits for nothing before its tests, starts no programs, and changes nothing that other files could see. */
function canShare(file) {
  const text = readFileSync(file, 'utf8');
  return ![HAS_HOOKS, WAITS_FIRST, STARTS_PROGRAMS].some((pattern) => pattern.test(text));
}

/** Also one that hands `test` on to a suite: what it may ask of it otherwise, scripts/shared-test.js has. */
const HAS_HOOKS = /\(test\b|\btest\.(?!(?:ts|macro|serial|skip|serial\.skip)\b(?!\.))|\banyTest\b/;
const WAITS_FIRST = /^\S.*\bawait\b/m;
/** Whatever looks at more of its own process than the system it runs on is taken for one of them. */
const STARTS_PROGRAMS =
  /\bprocess\.(?!platform\b)|\b(?:startBridge|startFaulty|dialProgram|serverProgram|child_process|matrix)\b/;

/** @param {Record<string, string>} [alias] packages, and what the tests get instead of them */
export async function bundleTests(bundles, outdir, alias = {}) {
  const packages = new PackageBundles(join(outdir, 'packages'));
  await build({
    entryPoints: bundles.map(({ name, files }) => ({
      in: files.length === 1 ? files[0] : `${TOGETHER}${name}`,
      out: name,
    })),
    outdir,
    bundle: true,
    packages: 'external',
    alias,
    loader: TEXT_LOADERS,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    sourcemap: true,
    sourcesContent: false,
    // One bundle loads too few of them for that to pay.
    plugins: [
      ...(bundles.length > 1 ? [packages.plugin] : []),
      { name: 'tests', setup: (build) => loadTests(build, bundles) },
    ],
    logLevel: 'warning',
  });
  await packages.write();
}

function loadTests({ onLoad, onResolve }, bundles) {
  const together = new Map(bundles.filter(({ files }) => files.length > 1).map(({ name, files }) => [name, files]));
  const shared = new Set([...together.values()].flat().map((file) => resolve(file)));
  onResolve({ filter: new RegExp(`^(?:${TOGETHER}|${AVA_OF})`) }, ({ path }) => ({ path, namespace: 'tests' }));
  onLoad({ filter: new RegExp(`^${TOGETHER}`), namespace: 'tests' }, ({ path }) => {
    const files = together.get(path.slice(TOGETHER.length));
    return { contents: files.map((file) => `import './${file}';`).join('\n'), resolveDir: resolve('.') };
  });
  onLoad({ filter: new RegExp(`^${AVA_OF}`), namespace: 'tests' }, ({ path }) => ({
    contents: `import { testOf } from './scripts/shared-test.js'; export default testOf(${JSON.stringify(path.slice(AVA_OF.length))});`,
    resolveDir: resolve('.'),
  }));
  onLoad({ filter: /\.ts$/ }, async ({ path }) => {
    const text = await readFile(path, 'utf8');
    // Fixtures are found beside the source of a test, wherever its bundle is.
    const located = text.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href));
    const name = relative('test', path)
      .split(sep)
      .join('/')
      .replace(/\.test\.ts$/, '');
    const contents = shared.has(path) ? located.replace(/from 'ava';/, `from '${AVA_OF}${name}';`) : located;
    return { contents, loader: 'ts', resolveDir: dirname(path) };
  });
}
