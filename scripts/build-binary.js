/**
 * Makes build/mcp-portage (mcp-portage.exe on Windows): one executable that needs no Node beside it, for the platform and
 * with the version of the Node that runs this. [Node.js documentation, Single executable applications]
 *
 * `--pty` is not in it: that takes native code in a file of its own.
 */
import { execFileSync } from 'node:child_process';
import { chmod, copyFile, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { inject } from 'postject';
// Builds dist/ as well, which what is built here is the same as.
import { OPTIONS } from './build.js';

const OUT = 'build';
const NAME = process.platform === 'win32' ? 'mcp-portage.exe' : 'mcp-portage';
/** What Node looks for in its own file, as its documentation gives it. */
const RESOURCE = 'NODE_SEA_BLOB';
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
/** An odd number, enough for a median that the first start, which reads the file from the disk, does not change. */
const STARTS = 5;

const work = join(OUT, 'binary');
const executable = join(OUT, NAME);
await mkdir(work, { recursive: true });

await build({
  ...OPTIONS,
  entryPoints: ['scripts/binary/main.ts'],
  outdir: work,
  sourcemap: false,
  metafile: false,
  write: true,
  define: { 'import.meta.url': 'importMetaUrl' },
  // What an executable gets as `require` warns on stderr of every module that is optional and not there.
  banner: { js: `${OPTIONS.banner.js}\nrequire = require('node:module').createRequire(__filename);` },
  plugins: OPTIONS.plugins.filter(({ name }) => name !== 'packages'),
});

const config = join(work, 'sea.json');
const blob = join(work, 'program.blob');
await writeFile(
  config,
  JSON.stringify({
    main: join(work, 'main.cjs'),
    output: blob,
    disableExperimentalSEAWarning: true,
    useCodeCache: true,
  }),
);
execFileSync(process.execPath, ['--experimental-sea-config', config], { stdio: ['ignore', 'ignore', 'inherit'] });

// A new file: one that runs cannot be written to, and one that ran keeps its signature in the system's cache.
await rm(executable, { force: true });
await copyFile(process.execPath, executable);
await chmod(executable, 0o755);
if (process.platform === 'darwin') execFileSync('codesign', ['--remove-signature', executable]);
await inject(executable, RESOURCE, await readFile(blob), {
  sentinelFuse: FUSE,
  ...(process.platform === 'darwin' && { machoSegmentName: 'NODE_SEA' }),
});
if (process.platform === 'darwin') execFileSync('codesign', ['--sign', '-', executable]);
await rm(work, { recursive: true });

const { size } = await stat(executable);
console.log(
  `${executable}: ${Math.round(size / 2 ** 20)} MiB, starts in ${Math.round(startMs())} ms (--version, median of ${STARTS}), Node ${process.version}, ${process.platform}-${process.arch}`,
);

function startMs() {
  const times = Array.from({ length: STARTS }, () => {
    const before = performance.now();
    execFileSync(executable, ['--version'], { stdio: 'ignore' });
    return performance.now() - before;
  });
  return times.sort((one, other) => one - other)[(STARTS - 1) / 2];
}
