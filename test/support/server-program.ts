import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { REPOSITORY } from './bridge.ts';

/** @returns the path of this program, one of those that `scripts/bundle-programs.js` bundles where many tests run */
export function serverProgram(source: URL): string {
  const path = fileURLToPath(source);
  const folder = process.env.BUNDLED_SERVERS;
  return folder === undefined ? path : join(folder, relative(REPOSITORY, path).replace(/\.[jt]s$/, '.cjs'));
}
