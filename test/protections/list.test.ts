import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import test from 'ava';
import { PROTECTIONS } from './list.ts';
import { findStaleness } from './protection.ts';

const ROOT = new URL('../../', import.meta.url);

test('what is taken out of each file is there exactly once', async (t) => {
  const stale: string[] = [];
  for (const protection of PROTECTIONS) {
    // A file that has moved holds it no more.
    const text = await readFile(new URL(protection.file, ROOT), 'utf8').catch(() => '');
    const staleness = findStaleness(protection, text);
    if (staleness !== undefined) stale.push(staleness);
    t.not(protection.without, protection.code, protection.promise);
  }
  t.deepEqual(stale, []);
});

test('each protection has a promise of its own, and tests that are there', (t) => {
  const promises = PROTECTIONS.map(({ promise }) => promise);
  t.is(new Set(promises).size, promises.length);
  for (const { promise, tests } of PROTECTIONS) {
    t.true(tests.length > 0, promise);
    for (const file of tests) t.true(existsSync(new URL(file, ROOT)), `${promise}: ${file}`);
  }
});

test('docs/reliability.md counts them', async (t) => {
  const text = await readFile(new URL('docs/reliability.md', ROOT), 'utf8');
  const [, section = ''] = text.split('## Protections taken out');
  const counts = [...(section.split('\n## ')[0] ?? '').matchAll(/\| (\d+) \|$/gm)].map(([, count]) => Number(count));
  t.is(
    counts.reduce((sum, count) => sum + count, 0),
    PROTECTIONS.length,
    'say in its table how many there are of each kind',
  );
});

test('an entry whose code has moved says what to do', (t) => {
  const moved = { promise: 'it holds', file: 'src/a.ts', code: 'if (held)', tests: ['test/a.test.ts'] };
  t.is(findStaleness(moved, 'if (held) {}'), undefined);
  t.regex(findStaleness(moved, 'if (kept) {}') ?? '', /it holds.*src\/a\.ts.*0 times.*test\/protections/);
  t.regex(findStaleness(moved, 'if (held) {} if (held) {}') ?? '', /2 times/);
});
