import { mkdir, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { type ChangedFiles, watchFiles } from '../../src/watch/watch-files.ts';
import { createTestDeps } from '../process/collected-log.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { waitFor } from '../support/wait-for.ts';

async function startWatch(t: ExecutionContext, folder: string, ...paths: readonly string[]) {
  const { deps, entries } = createTestDeps();
  const changes: ChangedFiles[] = [];
  const changed = (change: ChangedFiles): void => void changes.push(change);
  const watch = watchFiles({ paths: paths.map((path) => ({ folder, path })), deps, changed });
  t.teardown(() => watch.close());
  await waitFor(() => entries.some(({ msg }) => /are watched/.test(msg)), { message: 'the watch' });
  /** Resolves when a change of this file has been told, after the next action. */
  const tells = async (file: RegExp, act: () => Promise<unknown>): Promise<void> => {
    changes.length = 0;
    await act();
    await waitFor(() => changes.some(({ example }) => file.test(example)), {
      message: () => `${file} in ${JSON.stringify(changes)}`,
    });
  };
  return { changes, entries, tells, watch };
}

test('files that are written, renamed over, removed and created again are noticed', async (t) => {
  const { path: folder } = await createConfigFolder(t);
  const file = join(folder, 'server.js');
  await writeFile(file, 'one');
  const { tells } = await startWatch(t, folder, 'server.js');
  await tells(/server\.js$/, () => writeFile(file, 'two'));
  const rounds = [1, 2, 3];
  for (const round of rounds) {
    await writeFile(join(folder, 'draft'), `${round}`);
    await tells(/server\.js$/, () => rename(join(folder, 'draft'), file));
  }
  await tells(/server\.js$/, () => unlink(file));
  await tells(/server\.js$/, () => writeFile(file, 'again'));
  await tells(/server\.js$/, () => writeFile(file, 'and again'));
  t.pass();
});

test('a folder that is removed and built again is noticed each time', async (t) => {
  const { path: folder } = await createConfigFolder(t);
  const { tells, entries } = await startWatch(t, folder, 'dist');
  t.true(entries.some(({ msg }) => /dist of --watch does not exist/.test(msg)));
  for (const _round of [1, 2]) {
    await tells(/dist/, () => mkdir(join(folder, 'dist', 'js'), { recursive: true }));
    await tells(/index\.js$/, () => writeFile(join(folder, 'dist', 'js', 'index.js'), ''));
    await tells(/dist/, () => rm(join(folder, 'dist'), { recursive: true }));
  }
});

(process.platform === 'win32' ? test.skip : test)('links that lead in circles do no harm', async (t) => {
  const { path: folder } = await createConfigFolder(t);
  await mkdir(join(folder, 'src'));
  await symlink(folder, join(folder, 'src', 'circle'));
  const { tells } = await startWatch(t, folder, 'src');
  await tells(/a\.js$/, () => writeFile(join(folder, 'src', 'a.js'), ''));
  await tells(/circle$/, () => unlink(join(folder, 'src', 'circle')));
  t.pass();
});

test('a file that is created together with its folder is noticed, also by a pattern', async (t) => {
  const { path: folder } = await createConfigFolder(t);
  const { tells } = await startWatch(t, folder, 'dist/**/*.js');
  for (const round of [1, 2, 3, 4]) {
    await tells(/index\.js$/, async () => {
      await mkdir(join(folder, 'dist', `${round}`), { recursive: true });
      await writeFile(join(folder, 'dist', `${round}`, 'index.js'), '');
    });
  }
  t.pass();
});

test('nothing is told after the end', async (t) => {
  const { path: folder } = await createConfigFolder(t);
  const { changes, watch } = await startWatch(t, folder, '*.js');
  const other = await startWatch(t, folder, '*.js');
  await watch.close();
  await other.tells(/a\.js$/, () => writeFile(join(folder, 'a.js'), ''));
  t.deepEqual(changes, []);
});
