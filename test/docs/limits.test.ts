import { access, readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { OPTIONS } from '../../src/cli/options/option-table.ts';

const root = new URL('../../', import.meta.url);
const text = await readFile(new URL('docs/reference/limits.md', root), 'utf8');

/** The rows of the table: limit, default, flag or constant, what happens, test. */
const rows = text
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| Limit '))
  .map((line) => line.split('|').map((cell) => cell.trim()));

const namesIn = (cell: string | undefined): readonly string[] =>
  [...(cell ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);

test('every limit in docs/reference/limits.md has a default, a name, a consequence and a test that is there', async (t) => {
  t.true(rows.length > 25, String(rows.length));
  for (const [, limit, ...cells] of rows) {
    t.false(cells.slice(0, 4).includes(''), limit);
    for (const file of namesIn(cells[3])) await t.notThrowsAsync(access(new URL(file, root)), `${limit}: ${file}`);
  }
});

test('the flags in the table are options, the constants are in the source', async (t) => {
  const names = rows.flatMap(([, , , name]) => namesIn(name));
  const source = await readSource();
  for (const name of names) {
    const isKnown = name.startsWith('--')
      ? OPTIONS.some((option) => `--${option.name}` === name)
      : new RegExp(`\\bconst ${name}\\b`).test(source);
    t.true(isKnown, name);
  }
});

test('every option that limits something is in the table', (t) => {
  const named = rows.flatMap(([, , , name]) => namesIn(name));
  for (const { name } of OPTIONS) {
    if (name.startsWith('max-') || name === 'pool-size') t.true(named.includes(`--${name}`), name);
  }
});

async function readSource(): Promise<string> {
  const folder = new URL('src/', root);
  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.ts'));
  const texts = await Promise.all(files.map((file) => readFile(fileURLToPath(new URL(file, folder)), 'utf8')));
  return texts.join('\n');
}
