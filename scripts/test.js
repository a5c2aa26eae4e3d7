/**
 * `npm test` builds the program and the tests and runs them all; `npm test -- test/wire/ndjson.test.ts` runs one file,
 * `npm test -- test/wire` a folder. Other arguments, such as `--match='*ping*'`, go to AVA.
 *
 * Each test file is bundled with what it imports from src/: AVA gives every file a process of its own, and resolving a
 * hundred modules there would cost more than most of the tests.
 */
import { spawn } from 'node:child_process';
import { readdirSync, rmSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join, posix, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

/** Of this run alone: two may run side by side. */
const OUT = `build/${process.pid}`;

const given = process.argv.slice(2);
const places = given.filter((argument) => statSync(argument, { throwIfNoEntry: false }));
const files = (places.length === 0 ? ['test'] : places).flatMap(testFilesIn);

await import('./build.js');
try {
  await bundle(files);
  const options = given.filter((argument) => !places.includes(argument));
  process.exitCode = await runAva([...options, `${OUT}/test/**/*.test.js`]);
} finally {
  rmSync(OUT, { recursive: true, force: true });
}

function testFilesIn(place) {
  const names = statSync(place).isDirectory()
    ? readdirSync(place, { recursive: true }).map((name) => join(place, name))
    : [place];
  return names.map((name) => posix.normalize(name.split(sep).join('/'))).filter((name) => name.endsWith('.test.ts'));
}

async function bundle(entryPoints) {
  await build({
    entryPoints,
    outdir: OUT,
    outbase: '.',
    bundle: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    sourcemap: true,
    sourcesContent: false,
    plugins: [{ name: 'source-url', setup: keepSourceUrl }],
    logLevel: 'warning',
  });
}

/** Fixtures are found beside the source of a test, wherever its bundle is. */
function keepSourceUrl({ onLoad }) {
  onLoad({ filter: /\.ts$/ }, async ({ path }) => {
    const text = await readFile(path, 'utf8');
    const contents = text.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href));
    return { contents, loader: 'ts', resolveDir: dirname(path) };
  });
}

function runAva(args) {
  const ava = join('node_modules', 'ava', 'entrypoints', 'cli.mjs');
  const child = spawn(process.execPath, [ava, ...args], { stdio: 'inherit' });
  return new Promise((resolve) => child.on('close', (code) => resolve(code ?? 1)));
}
