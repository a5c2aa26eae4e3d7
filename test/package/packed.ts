/** The package as npm would publish it. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** What npm says of a package that it has packed. */
export interface Packed {
  readonly filename: string;
  /** Of the archive, and of what is in it. */
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string; readonly mode: number }[];
}

/** Runs npm in a folder, and resolves with what it printed. Nothing is built: `npm test` has built the program already. */
export async function npm(folder: string, ...words: readonly string[]): Promise<string> {
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel', 'error'];
  const { stdout } = await promisify(execFile)('npm', [...words, ...quiet], {
    cwd: folder,
    shell: process.platform === 'win32',
    maxBuffer: 2 ** 24,
  });
  return stdout;
}

/** npm's description of one package; some versions have it in a list, others below its name. */
export function describePacked(json: string): Packed {
  const described: unknown = JSON.parse(json);
  const [packed] = Object.values(described as object);
  return (packed ?? described) as Packed;
}

/** Resolves with the path of the archive. */
export async function packInto(folder: string): Promise<string> {
  const { filename } = describePacked(await npm(ROOT, 'pack', '--json', '--pack-destination', folder));
  return join(folder, filename);
}
