/**
 * Servers and a client of the official SDKs, which tests start again and again: each in one file that is run with compiled code.
 * Reading and compiling the files of its packages is most of what the start of one takes.
 */
import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const STARTER = fileURLToPath(new URL('./start-bundled-program.cjs', import.meta.url));

const ENDING = /\.[jt]s$/;

const PROGRAMS = [
  'test/matrix/servers/legacy.js',
  'test/matrix/servers/modern.js',
  'test/fixtures/contract-server/server.js',
  'test/fixtures/everything/server.js',
  'test/fixtures/modern-server/stdio.js',
  'test/fixtures/servers/both-eras.js',
  'test/fixtures/traced-server/legacy.js',
  'test/fixtures/traced-server/modern-stdio.js',
  'test/real-peers/servers/asker.js',
  'test/matrix/doomed-client.ts',
  'node_modules/@modelcontextprotocol/server-everything/dist/index.js',
];

/** Below `outdir` each is where it is below the root, but for the end of its name: see test/support/server-program.ts. */
export async function bundlePrograms(outdir) {
  await build({
    entryPoints: PROGRAMS.map((path) => ({ in: path, out: path.replace(ENDING, '.program') })),
    outdir,
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20.19',
    outExtension: { '.js': '.cjs' },
    supported: { 'dynamic-import': false },
    define: { 'import.meta.url': 'importMetaUrl' },
    banner: { js: "const importMetaUrl = require('node:url').pathToFileURL(__filename).href;" },
    plugins: [{ name: 'adapt', setup: adapt }],
    logLevel: 'warning',
  });
  await Promise.all(PROGRAMS.map((path) => copyFile(STARTER, join(outdir, path.replace(ENDING, '.cjs')))));
}

/**
 * What a program finds beside its modules is there, wherever its bundle is. What starts it is left to itself, for CommonJS has no
 * `await` at its top; nor is there a first line for a shell in what is run as a function.
 */
function adapt({ onLoad }) {
  onLoad({ filter: /\.ts$|server-everything[/\\]dist[/\\].*\.js$/ }, async ({ path }) => {
    const text = await readFile(path, 'utf8');
    const url = JSON.stringify(pathToFileURL(path).href);
    const contents = text
      .replaceAll('import.meta.url', url)
      .replace(/^#!.*/, '')
      .replaceAll(/^await /gm, 'void ');
    return { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' };
  });
}
