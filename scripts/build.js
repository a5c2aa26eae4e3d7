/**
 * Bundles src/program.ts with what it imports into dist/cli.cjs, and packages that few runs need into files beside it.
 * docs/internals/decisions/0001-one-bundle.md says why dependencies are bundled, and why as CommonJS; 0032-library.md there how
 * programs get at the library in it.
 */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { build } from 'esbuild';
import { renderPublicTypes } from './public-types.js';
import { TEXT_LOADERS } from './text-files.js';

const OUT = 'dist';
/** Ends the name of a file that is being written. */
const DRAFT = '.draft';
/** Large, and needed by modules only that are imported dynamically: code that is not there need not be read. */
const SELDOM = ['got', 'ioredis', 'oauth4webapi', 'prom-client', 'ws'];

/**
 * Modules of ours that are imported dynamically and bring much along, such as a part of a library: each becomes a file
 * with that. None may import anything of ours that is compared by identity, such as a class of errors.
 */
const SELDOM_MODULES = [
  ...['json-tree', 'toml-tree', 'yaml-tree', 'entry-schema'].map((name) => `src/cli/config-file/${name}.ts`),
  'src/observe/status/page/status-page.ts',
  'src/observe/top/run-top.ts',
  'src/observe/traces/traces.ts',
];

/** What a CommonJS module has in place of import.meta.url. */
const MODULE_URL = "const importMetaUrl = require('node:url').pathToFileURL(__filename).href;";

/** What dist/cli.cjs exports for programs. */
const library = ['serve', 'createBridge', 'connect', 'probe', 'BridgeError'];

/** What older versions say of the program itself is about its syntax, with a stack. A program that imports it may go on. */
const REFUSE_OLD_NODE = `if (Number.parseInt(process.versions.node, 10) < 20) {
  const error = new Error('mcp-portage needs Node 20.19 or newer; this is ' + process.version + ', ' + process.execPath + '.');
  error.code = 'ERR_UNSUPPORTED_NODE';
  error.stack = String(error);
  throw error;
}
`;

export const OPTIONS = {
  outdir: OUT,
  entryNames: '[name]',
  outExtension: { '.js': '.cjs' },
  bundle: true,
  format: 'cjs',
  platform: 'node',
  target: 'node20.19',
  loader: TEXT_LOADERS,
  // `import()` of something bundled becomes `require`, at once but for a microtask.
  supported: { 'dynamic-import': false },
  plugins: [
    { name: 'parser-only', setup: keepOnlyTheParser },
    { name: 'seldom', setup: keepSeldomApart },
    { name: 'readable-modules', setup: takeReadableModules },
  ],
  // Native, and there for whoever wants --pty.
  external: ['@lydell/node-pty'],
  banner: { js: `"use strict";\n${MODULE_URL}` },
  sourcemap: true,
  sourcesContent: false,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
  write: false,
};
const define = { 'import.meta.url': 'importMetaUrl' };

const publicTypes = renderPublicTypes();
const program = await build({
  ...OPTIONS,
  define,
  entryPoints: [{ in: 'src/program.ts', out: 'cli' }, ...[...SELDOM, ...SELDOM_MODULES].map(named)],
});
const digest = digestOf(program.outputFiles, 'cli.cjs');
const starter = await build({
  ...OPTIONS,
  define: { ...define, PROGRAM_DIGEST: `'${digest}'` },
  entryPoints: ['src/start.ts'],
});
const types = await publicTypes;
const licenses = await collectLicenses(Object.keys(program.metafile.inputs));

// Only now, so that a failed build leaves the last good one in place; and each file whole at once, since tests may be running it.
await mkdir(OUT, { recursive: true });
const written = new Set();
for (const { path, contents } of [...program.outputFiles, ...starter.outputFiles]) await put(basename(path), contents);
await put('THIRD-PARTY-LICENSES.txt', licenses);
for (const [name, text] of Object.entries(libraryFiles())) await put(name, text);
for (const name of await readdir(OUT)) {
  if (!written.has(name) && !name.endsWith(DRAFT)) await rm(`${OUT}/${name}`, { recursive: true, force: true });
}

async function put(name, contents) {
  const draft = `${OUT}/${name}.${process.pid}${DRAFT}`;
  await writeFile(draft, contents);
  await rename(draft, `${OUT}/${name}`);
  written.add(name);
}

/**
 * What programs import: the same functions and the same class of errors, however they do it. As the types of a CommonJS and
 * of an ES module are two things to TypeScript, there are two files of them.
 */
function libraryFiles() {
  const names = library.join(', ');
  return {
    'library.cjs': `"use strict";\n${REFUSE_OLD_NODE}const { ${names} } = require('./cli.cjs');\nmodule.exports = { ${names} };\n`,
    'library.mjs': `import library from './library.cjs';\n\nexport const { ${names} } = library;\n`,
    'library.d.cts': types,
    'library.d.mts': types,
  };
}

/** An entry point, by what its file in dist/ is called. */
function named(path) {
  return { in: path, out: basename(path, '.ts') };
}

/** In hexadecimal digits. */
function digestOf(files, name) {
  const { contents } = files.find(({ path }) => path.endsWith(`/${name}`) || path.endsWith(`\\${name}`));
  return createHash('sha256').update(contents).digest('hex');
}

/**
 * Of yargs only the parser is used. What the rest of it imports does nothing by being loaded, but does not say so in its
 * package, and takes a third of a cold start: expressions over all of Unicode are compiled to measure widths of text.
 */
function keepOnlyTheParser({ onResolve, resolve }) {
  const isResolving = {};
  onResolve({ filter: /./ }, async ({ path, pluginData, ...place }) => {
    const isYargs = path.startsWith('yargs/') || place.importer.includes('/node_modules/yargs/');
    if (!isYargs || pluginData === isResolving) return undefined;
    return { ...(await resolve(path, { ...place, pluginData: isResolving })), sideEffects: false };
  });
}

function keepSeldomApart({ onResolve }) {
  onResolve({ filter: /./ }, ({ path, kind }) =>
    kind !== 'entry-point' && SELDOM.includes(path) ? { path: `./${path}.cjs`, external: true } : undefined,
  );
  const modules = SELDOM_MODULES.map((path) => resolve(path));
  onResolve({ filter: /^\.{1,2}\// }, ({ path, kind, resolveDir }) =>
    kind !== 'entry-point' && modules.includes(resolve(resolveDir, path))
      ? { path: `./${basename(path, '.ts')}.cjs`, external: true }
      : undefined,
  );
}

/** The other form of jsonc-parser hides from the bundler what it requires, and that of yaml what it does not need. */
function takeReadableModules({ onResolve }) {
  onResolve({ filter: /^yaml$/ }, () => ({ path: resolve('node_modules/yaml/browser/dist/index.js') }));
  onResolve({ filter: /^jsonc-parser$/ }, () => ({ path: resolve('node_modules/jsonc-parser/lib/esm/main.js') }));
}

/** The licences of bundled packages ask to be passed on with their code. */
async function collectLicenses(inputs) {
  const directories = new Set(inputs.flatMap((path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []));
  const sections = [...directories].sort().map(async (directory) => {
    const { name, version, license } = JSON.parse(await readFile(`${directory}/package.json`, 'utf8'));
    return `${name} ${version} (${license})\n\n${await readLicense(directory)}\n`;
  });
  return (await Promise.all(sections)).join(`\n${'-'.repeat(72)}\n\n`);
}

async function readLicense(directory) {
  const name = (await readdir(directory)).find((file) => /^licen[cs]e/i.test(file));
  return name === undefined
    ? '(no licence file in the package)'
    : (await readFile(`${directory}/${name}`, 'utf8')).trim();
}
