/** Brings the generated parts of the README up to date; a test fails when they are not. */
import { readFile, writeFile } from 'node:fs/promises';
import { withOptionsTable } from './options-table.ts';

const README = new URL('../README.md', import.meta.url);

await writeFile(README, withOptionsTable(await readFile(README, 'utf8')));
