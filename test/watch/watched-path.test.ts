import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { findTargets } from '../../src/watch/watched-path.ts';
import { createConfigFolder } from '../support/config-folder.ts';

const FILE = { isFile: () => true };
const FOLDER = { isFile: () => false };

test('a folder counts with all below it, but for node_modules, .git and files of editors', async (t) => {
  const { path: folder } = await createConfigFolder(t);
  await mkdir(join(folder, 'src'));
  const [target] = findTargets({ folder, path: 'src' });
  const counts = (...names: string[]) => target?.counts(join(folder, ...names));
  t.like(target, { base: join(folder, 'src'), root: folder, exists: true });
  t.true(counts('src'));
  t.true(counts('src', 'deep', 'a.js'));
  t.false(counts('srcs', 'a.js'));
  t.false(counts('a.js'));
  for (const name of ['node_modules', '.git']) t.false(counts('src', 'deep', name, 'a.js'));
  for (const name of ['a.js~', '.a.js.swp', '4913', '.#a.js', 'a.js___jb_tmp___']) t.false(counts('src', name), name);
});

test('a folder inside node_modules counts if it is named itself', async (t) => {
  const { path: folder } = await createConfigFolder(t);
  const [target] = findTargets({ folder, path: 'node_modules/mine' });
  t.true(target?.counts(join(folder, 'node_modules', 'mine', 'a.js')));
  t.false(target?.counts(join(folder, 'node_modules', 'mine', 'node_modules', 'a.js')));
});

test('a pattern counts files that it matches, and only folders that can hold some are looked at', async (t) => {
  const { path: folder } = await createConfigFolder(t);
  await mkdir(join(folder, 'src'));
  const at = (...names: string[]) => join(folder, 'src', ...names);
  const [deep] = findTargets({ folder, path: 'src/**/*.{js,ts}' });
  t.true(deep?.counts(at('a.js')));
  t.true(deep?.counts(at('one', 'two', '.hidden.ts')));
  t.false(deep?.counts(at('a.css')));
  t.true(deep?.isNeeded(at('one', 'two'), FOLDER));
  t.false(deep?.isNeeded(at('one', 'a.css'), FILE));
  t.true(deep?.isNeeded(folder, FOLDER));
  t.false(deep?.isNeeded(join(folder, 'other'), undefined));
  const [flat] = findTargets({ folder, path: 'src/*.js' });
  t.true(flat?.counts(at('a.js')));
  t.false(flat?.counts(at('one', 'a.js')));
  t.false(flat?.isNeeded(at('one', 'two'), FOLDER));
});

test('a path that exists is no pattern, and characters of patterns in the folder mean nothing', async (t) => {
  const { path } = await createConfigFolder(t);
  const folder = join(path, '[app]');
  await mkdir(folder);
  await writeFile(join(folder, '[id].ts'), '');
  const [file] = findTargets({ folder, path: '[id].ts' });
  t.true(file?.counts(join(folder, '[id].ts')));
  t.false(file?.counts(join(folder, 'i.ts')));
  const [pattern] = findTargets({ folder, path: '*.ts' });
  t.true(pattern?.counts(join(folder, 'a.ts')));
});

test('what does not exist yet is watched from the nearest folder above that does', async (t) => {
  const { path: folder } = await createConfigFolder(t);
  const [target] = findTargets({ folder, path: 'dist/js/index.js' });
  t.like(target, { root: folder, exists: false });
  t.true(target?.isNeeded(join(folder, 'dist', 'js'), undefined));
  t.false(target?.counts(join(folder, 'dist', 'js')));
  t.true(target?.counts(join(folder, 'dist', 'js', 'index.js')));
});

(process.platform === 'win32' ? test.skip : test)(
  'a link that is named is watched itself and where it leads, even if that is nowhere yet',
  async (t) => {
    const { path: folder } = await createConfigFolder(t);
    await mkdir(join(folder, 'release'));
    await symlink(join(folder, 'release'), join(folder, 'current'));
    await symlink(join(folder, 'missing'), join(folder, 'next'));
    const bases = (path: string) => findTargets({ folder, path }).map(({ base }) => base);
    t.deepEqual(bases('current'), [join(folder, 'current'), join(folder, 'release')]);
    t.deepEqual(bases('next'), [join(folder, 'next')]);
  },
);
