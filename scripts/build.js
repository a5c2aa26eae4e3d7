/**
 * Bundles the program into the files of dist/: the parts that scripts/program-parts.js lists, packages that few runs need, and
 * what starts them. docs/internals/decisions/0001-one-bundle.md says why dependencies are bundled, and why as CommonJS;
 * 0032-library.md there how programs get at the library in it.
 */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { crc32 } from 'node:zlib';
import { build } from 'esbuild';
import { bundleProgram, LIBRARY } from './bundle-program.js';
import { PACKAGES } from './program-parts.js';
import { renderPublicTypes } from './public-types.js';
import { TEXT_LOADERS } from './text-files.js';

const OUT = 'dist';
/** Ends the name of a file that is being written. */
const DRAFT = '.draft';

/**
 * Modules that packages load for what is not used here. pino could write the log itself, also in a thread, redact it, and name
 * the host in each line: src/log.ts gives it a stream and what each line names, and redacts. The parser of yargs could read configuration files.
 */
const UNUSED = {
  pino: [
    '@pinojs/redact',
    'node:os',
    'on-exit-leak-free',
    'sonic-boom',
    'worker_threads',
    './transport',
    './lib/transport',
  ],
  'yargs-parser': ['node:module'],
};

/** What a CommonJS module has in place of import.meta.url. */
const MODULE_URL = "const importMetaUrl = require('node:url').pathToFileURL(__filename).href;";

/** What programs can import. */
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
    { name: 'packages', setup: keepPackagesApart },
    { name: 'readable-modules', setup: takeReadableModules },
    { name: 'unused', setup: leaveOut },
    { name: 'mqtt-packet', setup: replaceForMqtt },
    { name: 'version', setup: writeVersion },
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
const program = await bundleProgram({ ...OPTIONS, define });
const packages = await build({ ...OPTIONS, define, entryPoints: PACKAGES.map((name) => ({ in: name, out: name })) });
const files = [...program.files, ...packages.outputFiles];
const built = Object.fromEntries(
  files
    .filter(({ path }) => path.endsWith('.cjs'))
    .map(({ path, contents }) => [basename(path), { digest: digestOf(contents), checksum: crc32(contents) }]),
);
const starter = await build({
  ...OPTIONS,
  define: { ...define, PROGRAM_FILES: JSON.stringify(built) },
  entryPoints: ['src/start.ts'],
});
const types = await publicTypes;
const licenses = await collectLicenses([...program.inputs, ...Object.keys(packages.metafile.inputs)]);

// Only now, so that a failed build leaves the last good one in place; and each file whole at once, since tests may be running it.
await mkdir(OUT, { recursive: true });
const written = new Set();
for (const { path, contents } of [...files, ...starter.outputFiles]) await put(basename(path), contents);
await put('THIRD-PARTY-LICENSES.txt', licenses);
for (const [name, text] of Object.entries(libraryFiles())) await put(name, text);
for (const name of await readdir(OUT)) {
  if (!written.has(name) && !name.endsWith(DRAFT)) await rm(`${OUT}/${name}`, { recursive: true, force: true });
}

async function put(name, contents) {
  if (written.has(name)) throw new Error(`two files are called ${name}`);
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
    'library.cjs': `"use strict";\n${REFUSE_OLD_NODE}const { ${names} } = ${LIBRARY};\nmodule.exports = { ${names} };\n`,
    'library.mjs': `import library from './library.cjs';\n\nexport const { ${names} } = library;\n`,
    'library.d.cts': types,
    'library.d.mts': types,
  };
}

/** In hexadecimal digits. */
function digestOf(contents) {
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

function keepPackagesApart({ onResolve }) {
  onResolve({ filter: /./ }, ({ path, kind }) =>
    kind !== 'entry-point' && PACKAGES.includes(path) ? { path: `./${path}.cjs`, external: true } : undefined,
  );
}

/** The other form of jsonc-parser hides from the bundler what it requires, and that of yaml what it does not need. */
function takeReadableModules({ onResolve }) {
  onResolve({ filter: /^yaml$/ }, () => ({ path: resolve('node_modules/yaml/browser/dist/index.js') }));
  onResolve({ filter: /^jsonc-parser$/ }, () => ({ path: resolve('node_modules/jsonc-parser/lib/esm/main.js') }));
}

function leaveOut({ onResolve, onLoad }) {
  onResolve({ filter: /./ }, ({ path, importer }) => {
    const owner = /[\\/]node_modules[\\/]([^\\/]+)[\\/]/.exec(importer)?.[1];
    return UNUSED[owner]?.includes(path) ? { path, namespace: 'unused' } : undefined;
  });
  onLoad({ filter: /./, namespace: 'unused' }, () => ({
    contents: 'module.exports = class { static hostname() {} }; module.exports.createRequire = undefined;',
  }));
}

/**
 * The codec of MQTT needs one class of a copy of Node's streams, which is larger than all the rest of it, and would print packets
 * with their passwords if a variable of the environment says so.
 */
function replaceForMqtt({ onResolve, onLoad }) {
  onResolve({ filter: /^readable-stream$/ }, ({ importer }) =>
    /[\\/]node_modules[\\/]bl[\\/]/.test(importer) ? { path: 'node:stream', external: true } : undefined,
  );
  onResolve({ filter: /^debug$/ }, ({ importer }) =>
    importer.includes('mqtt-packet') ? { path: 'debug', namespace: 'silent' } : undefined,
  );
  onLoad({ filter: /./, namespace: 'silent' }, () => ({ contents: 'module.exports = () => () => {};' }));
}

/**
 * Writes the version into the program, which would otherwise read it from package.json at each start. The single executable
 * has no package.json beside it.
 */
function writeVersion({ onLoad }) {
  onLoad({ filter: /[\\/]src[\\/]version\.ts$/ }, async () => {
    const { name, version } = JSON.parse(await readFile('package.json', 'utf8'));
    const info = JSON.stringify({ name, version });
    return {
      loader: 'ts',
      contents: `export const VERSION = ${JSON.stringify(version)}; export const CLIENT_INFO = ${info};`,
    };
  });
}

/** The licenses of bundled packages ask to be passed on with their code. */
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
    ? '(no license file in the package)'
    : (await readFile(`${directory}/${name}`, 'utf8')).trim();
}
