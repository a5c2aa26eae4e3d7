import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { readFileOnDisk } from '../../src/io/bounded-file.ts';

test('on disk, permissions and text are those of one file, behind any link', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'bounded-file-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'file');
  writeFileSync(file, 'x'.repeat(100_000));
  chmodSync(file, 0o640);
  symlinkSync(file, join(folder, 'link'));
  mkdirSync(join(folder, 'folder'));
  const found = readFileOnDisk(join(folder, 'link'), 70_000);
  t.is(found.kind, 'file');
  t.is(found.mode, 0o640);
  t.is(found.uid, process.getuid?.() ?? found.uid);
  t.is(found.bytes.length, 70_000);
  t.is(readFileOnDisk(file, 200_000).bytes.length, 100_000);
  t.is(readFileOnDisk(join(folder, 'folder'), 10).kind, 'directory');
  t.throws(() => readFileOnDisk(join(folder, 'none'), 10), { code: 'ENOENT' });
});
