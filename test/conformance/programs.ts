import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { FEW_MODULES } from '../../scripts/bundle-packages.js';
import type { SuiteCommand } from './suite-command.ts';

/** The paths of what is started again and again: some hundred times. */
export interface Programs {
  readonly client: string;
  readonly server: string;
}

/** Bundles them into few files, since reading those of an SDK takes most of the time in which a program starts. */
export async function bundlePrograms(outdir: string): Promise<Programs> {
  await build({
    entryPoints: { client: pathOf('./client.ts'), server: pathOf('../fixtures/everything/server.js') },
    // An era is in a file of its own, and loaded only when it is spoken.
    ...FEW_MODULES,
    outdir,
    plugins: [LOCATED],
  });
  return { client: join(outdir, 'client.mjs'), server: join(outdir, 'server.mjs') };
}

/**
 * What starts the suite from a single file: to find and read the files of its packages takes it longer than most scenarios.
 * It still believes to be where it is installed, since it reads other files from there.
 */
export async function bundleSuite([node, script]: SuiteCommand, outdir: string): Promise<SuiteCommand> {
  await build({
    entryPoints: { suite: script },
    ...FEW_MODULES,
    outdir,
    define: { 'import.meta.url': JSON.stringify(pathToFileURL(script).href) },
  });
  return [node, join(outdir, 'suite.mjs')];
}

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

/** Programs find the bridge and other programs beside their sources, wherever their bundle is. */
const LOCATED: Plugin = {
  name: 'located',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      return { contents: text.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)), loader: 'ts' };
    });
  },
};
