/**
 * Packages of many files that tests import: each is read from few files here. To find and read a hundred modules takes a test's
 * process longer than most of its tests.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

/** ES modules all of them: what a CommonJS module exports, a bundle of it would not. */
const MANY_FILES = /^(?:@modelcontextprotocol\/(?:sdk|client|server)|got|jose|zod)(?:\/|$)/;

/**
 * ES modules that hold what they import, and share what several of them do.
 * @satisfies {import('esbuild').BuildOptions}
 */
export const FEW_MODULES = /** @type {const} */ ({
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  outExtension: { '.js': '.mjs' },
  // Packages that are CommonJS ask for modules of Node with it.
  banner: { js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);` },
  logLevel: 'warning',
});

/** Lets whatever is built import the bundles instead, and makes them of what was imported. */
export class PackageBundles {
  #outdir;
  /** By the name of its bundle. */
  #imported = new Map();

  /** @param {string} outdir where the bundles are written */
  constructor(outdir) {
    this.#outdir = outdir;
  }

  /** A plugin for the build of what imports them. */
  get plugin() {
    return {
      name: 'packages',
      setup: ({ onResolve }) => {
        onResolve({ filter: MANY_FILES }, ({ path }) => {
          const name = path.replaceAll(/[^\w.-]/g, '_');
          this.#imported.set(name, path);
          return { path: pathToFileURL(resolve(this.#outdir, `${name}.mjs`)).href, external: true };
        });
      },
    };
  }

  /** When everything that imports them is built. What two of them need is there once, in a file of its own. */
  async write() {
    if (this.#imported.size === 0) return;
    await build({ ...FEW_MODULES, entryPoints: Object.fromEntries(this.#imported), outdir: this.#outdir });
  }
}
