/** The index of the decisions lists all of them, each by its own title, status and date. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test from 'ava';

const FOLDER = fileURLToPath(new URL('../../docs/internals/decisions/', import.meta.url));
const ROW = /^\| \[(\d{4})\]\(([^)]+)\) \| (.+) \| (.+) \| (\d{4}-\d\d-\d\d) \|$/gm;
const STATUS = /^Status: (.+) since (\d{4}-\d\d-\d\d)(?:; extended \d{4}-\d\d-\d\d)?\.$/;

/** Returns the row that the index has to have for a decision. */
function rowOf(file: string): string {
  const [title = '', , status = ''] = readFileSync(FOLDER + file, 'utf8').split('\n');
  const [, state, since] = STATUS.exec(status) ?? [];
  return `${file}: ${title}, ${state} since ${since}`;
}

test('each decision is in the index once, with its title, its status and its date', (t) => {
  const rows = [...readFileSync(`${FOLDER}README.md`, 'utf8').matchAll(ROW)];
  const listed = rows.map(
    ([, number, file, title, state, since]) => `${file}: # ${number} · ${title}, ${state} since ${since}`,
  );
  const files = readdirSync(FOLDER).filter((name) => /^\d{4}-/.test(name));
  t.deepEqual(listed.sort(), files.map(rowOf).sort());
});
