/**
 * Bundles src/cli.ts with what it imports into dist/, as ES modules split where the source imports dynamically.
 * docs/decisions/0001-one-bundle.md says why dependencies are bundled.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { build } from 'esbuild';

const OUT = 'dist';

const { metafile, outputFiles } = await build({
  entryPoints: ['src/cli.ts'],
  outdir: OUT,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  plugins: [{ name: 'parser-only', setup: keepOnlyTheParser }],
  // Native and optional: it is loaded only for --pty.
  external: ['node-pty'],
  // The CommonJS packages inside ask for Node's modules with require, which ES modules do not have.
  banner: {
    js: "import { createRequire as createRequireOf } from 'node:module';\nconst require = createRequireOf(import.meta.url);",
  },
  sourcemap: true,
  sourcesContent: false,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
  write: false,
});
const licenses = await collectLicenses(Object.keys(metafile.inputs));

// Only now, so that a failed build leaves the last good one in place.
await rm(OUT, { recursive: true, force: true });
await mkdir(OUT);
for (const { path, contents } of outputFiles) await writeFile(path, contents);
await writeFile(`${OUT}/THIRD-PARTY-LICENSES.txt`, licenses);

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
  for (const name of ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'license', 'LICENCE', 'License', 'license.md']) {
    const text = await readFile(`${directory}/${name}`, 'utf8').catch(() => undefined);
    if (text !== undefined) return text.trim();
  }
  return '(no licence file in the package)';
}
