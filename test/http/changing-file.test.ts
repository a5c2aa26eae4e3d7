import { mkdtemp, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { ChangingFile } from '../../src/http/changing-file.ts';

test('a file is parsed when it has changed, and not before', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const path = join(directory, 'file');
  let parsed = 0;
  const file = new ChangingFile(path, (text) => {
    parsed += 1;
    if (text === 'bad') throw new Error('bad');
    return text;
  });
  t.throws(() => file.current(), { code: 'ENOENT' });
  await writeFile(path, 'one');
  t.is(file.current(), 'one');
  t.is(file.current(), 'one');
  t.is(parsed, 1);
  await writeFile(`${path}.new`, 'two');
  await rename(`${path}.new`, path);
  t.is(file.current(), 'two', 'replaced by another of the same length');
  await writeFile(path, 'bad');
  t.throws(() => file.current(), { message: 'bad' });
  t.throws(() => file.current(), { message: 'bad' }, 'what was there before is gone');
});

test('a change that leaves the time of the file as it was is seen: some systems count in hundredths of a second', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const path = join(directory, 'file');
  const file = new ChangingFile(path, (text) => text);
  // Ahead of us, so that it is recent however long this test is held up.
  const recent = new Date(Date.now() + 60_000);
  for (const text of ['one', 'two']) {
    await writeFile(path, text);
    await utimes(path, recent, recent);
    t.is(file.current(), text);
  }
});

test('a file that has been left alone for a while is not read each time', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const path = join(directory, 'file');
  const file = new ChangingFile(path, (text) => text);
  const past = new Date(Date.now() - 60_000);
  for (const text of ['one', 'two']) {
    await writeFile(path, text);
    await utimes(path, past, past);
    t.is(file.current(), 'one', 'nothing tells that there is something new');
  }
});
