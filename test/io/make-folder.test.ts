import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { makeFolder, makeFolderSync } from '../../src/io/make-folder.ts';

const WAYS = { makeFolder, makeFolderSync: async (path: string, mode: number) => makeFolderSync(path, mode) };

for (const [name, make] of Object.entries(WAYS)) {
  test(`${name} makes a folder with those above it, and takes one that is there`, async (t) => {
    const root = await mkdtemp(join(tmpdir(), 'folders-'));
    t.teardown(() => rm(root, { recursive: true }));
    const path = join(root, 'a', 'b', 'c');
    await make(path, 0o700);
    await make(path, 0o700);
    t.true((await stat(path)).isDirectory());
    await writeFile(join(root, 'file'), '');
    await t.throwsAsync(make(join(root, 'file', 'below'), 0o700), { code: 'ENOTDIR' });
  });

  test(`${name} gives up where a folder is there and nothing can be made in it`, async (t) => {
    // Other systems have no such folder.
    const path = process.platform === 'linux' ? '/proc/mcp-portage/state' : join(tmpdir(), 'none\0none');
    await t.throwsAsync(make(path, 0o700));
  });
}
