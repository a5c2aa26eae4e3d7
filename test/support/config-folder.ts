import { chmod, mkdir, mkdtemp, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ExecutionContext } from 'ava';

/** A folder with configuration files that nobody else may write. */
export interface ConfigFolder {
  readonly path: string;
  /** Writes a file as editors do, whole at once; an object as JSON. Resolves with its path. */
  write(name: string, content: string | object): Promise<string>;
}

/** Gone when the test ends. */
export async function createConfigFolder(t: ExecutionContext): Promise<ConfigFolder> {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'portage-config-')));
  t.teardown(() => rm(path, { recursive: true, force: true }));
  return {
    path,
    async write(name, content) {
      const file = join(path, name);
      const draft = `${file}.new`;
      await mkdir(dirname(file), { recursive: true });
      await writeFile(draft, typeof content === 'string' ? content : JSON.stringify(content, undefined, 2));
      await chmod(draft, 0o600);
      await rename(draft, file);
      return file;
    },
  };
}
