import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import test from 'ava';
import { TARGETS } from '../fuzz/targets.ts';

const ROOT = new URL('../../', import.meta.url);
const text = await readFile(new URL('docs/internals/reliability.md', ROOT), 'utf8');

test('docs/internals/reliability.md names tests that exist', (t) => {
  const files = new Set(text.match(/test\/[\w/-]+\.test\.ts/g));
  t.true(files.size > 5);
  for (const file of files) t.true(existsSync(new URL(file, ROOT)), file);
});

test('docs/internals/reliability.md has a row for each target of the fuzzing', (t) => {
  const rows = [...text.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name]) => name);
  t.deepEqual(rows.sort(), TARGETS.map(({ name }) => name).sort());
});
