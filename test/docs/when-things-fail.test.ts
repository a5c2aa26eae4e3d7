import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import test from 'ava';
import { findFlag } from '../../src/cli/options/option-table.ts';
import { ERROR_CODES } from '../../src/errors.ts';
import { documentAt, ROOT } from './documents.ts';
import { FAULT_TESTS } from './fault-tests.ts';

const PAGES = ['docs/guide/when-things-fail.md', 'docs/guide/runbook.md', 'docs/guide/faq.md'];

/** The rows that begin with what happens, by that: the table of codes has none. */
const rows = new Map(
  documentAt('docs/guide/when-things-fail.md')
    .split('\n')
    .filter((line) => /^\| (?!What happens|Code|`ERR_)/.test(line))
    .map((line) => [line.split(' | ', 1)[0]?.slice(2) ?? '', line] as const),
);

test('everything of which the guide says what happens has a test that is there', (t) => {
  t.deepEqual(Object.keys(FAULT_TESTS).sort(), [...rows.keys()].sort());
  for (const [what, files] of Object.entries(FAULT_TESTS)) {
    t.true(files.length > 0, what);
    for (const file of files) t.true(existsSync(new URL(file, ROOT)), `${what}: ${file}`);
  }
});

test('the codes that the guide names for what happens occur in its tests', async (t) => {
  for (const [what, row] of rows) {
    const texts = (FAULT_TESTS[what] ?? []).map((file) => readFile(new URL(file, ROOT), 'utf8'));
    const said = (await Promise.all(texts)).join('\n');
    for (const [code] of row.matchAll(/ERR_[A-Z_]+/g)) t.true(said.includes(code), `${what}: ${code}`);
  }
});

for (const page of PAGES) {
  test(`the codes and options that ${page} names are there`, (t) => {
    const text = documentAt(page);
    for (const [, code = ''] of text.matchAll(/`(ERR_[A-Z_]+[A-Z])`/g)) t.true(Object.hasOwn(ERROR_CODES, code), code);
    for (const [, flag = ''] of text.matchAll(/`(--[a-z][a-z-]*)/g)) t.not(findFlag(flag), undefined, flag);
  });
}
