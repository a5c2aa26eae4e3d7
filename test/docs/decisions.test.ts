/** The index of the decisions lists all of them, each by its own title. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test from 'ava';

const FOLDER = fileURLToPath(new URL('../../docs/internals/decisions/', import.meta.url));
const ENTRY = /^\| \[(\d{4})\]\(([^)]+)\) \| (.+) \| \d{4}-\d\d-\d\d \|$/;

const titleOf = (file: string): string => readFileSync(FOLDER + file, 'utf8').split('\n', 1)[0] ?? '';

test('each decision is in the index once, under its title and with its date', (t) => {
  const entries = readFileSync(`${FOLDER}README.md`, 'utf8')
    .split('\n')
    .flatMap((line) => ENTRY.exec(line) ?? []);
  const listed: string[] = [];
  for (let index = 0; index < entries.length; index += 4) {
    const [, number, file, title] = entries.slice(index, index + 4);
    listed.push(`${file}: # ${number} · ${title}`);
  }
  const files = readdirSync(FOLDER).filter((name) => /^\d{4}-/.test(name));
  t.deepEqual(listed.sort(), files.map((file) => `${file}: ${titleOf(file)}`).sort());
});
