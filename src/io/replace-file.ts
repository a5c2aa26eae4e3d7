import { renameSync, rmSync, writeFileSync } from 'node:fs';

/** Only the user may read files with what is kept between runs. */
const FILE_MODE = 0o600;

/**
 * Writes a file that only the user may read. The text is written to a temporary file that is then renamed, so that a
 * reader gets either the old or the new version. Throws the error of the file system.
 */
export function replaceFile(path: string, text: string, randomId: () => string): void {
  const aside = `${path}.${randomId()}`;
  try {
    writeFileSync(aside, text, { mode: FILE_MODE, flag: 'wx' });
    renameSync(aside, path);
  } catch (thrown) {
    rmSync(aside, { force: true });
    throw thrown;
  }
}
