import { readFile } from 'node:fs/promises';
import test from 'ava';
import { record } from '../../scripts/recording/record.ts';
import { keepTime, renderRecording } from '../../scripts/recording/render.ts';
import { parseScreen, wrapLine } from '../../scripts/recording/screen.ts';
import { ptyTest } from '../support/pseudo-terminal.ts';
import { blocksOf, commandsOf, documentAt, ROOT } from './documents.ts';

const picture = await readFile(new URL('docs/pictures/quick-start.svg', ROOT), 'utf8');

/** What the commands of the picture are, as a reader sees them. */
const typed = [...picture.matchAll(/>\$<\/text><text [^>]*>([^<]+)</g)].map(([, command]) => command);

ptyTest('the recording of the README shows what the program says today (npm run docs)', async (t) => {
  t.is(picture, renderRecording(keepTime(await record(), picture)));
});

test('the recording shows the first two commands of the README', (t) => {
  const commands = blocksOf({ path: 'README.md', text: documentAt('README.md') }).flatMap(commandsOf);
  t.deepEqual(typed, commands.slice(0, 2));
});

test('the recording is small, runs no script and fetches nothing', (t) => {
  t.true(picture.length < 40_000);
  t.notRegex(picture, /<script|\bon\w+=|href|@import|url\((?!#)/);
});

test('without motion, the recording shows its end: everything that moves is asked for by the reader', (t) => {
  const [still = '', moving = ''] = picture.split('@media (prefers-reduced-motion:no-preference)');
  t.notRegex(still, /animation|@keyframes/);
  t.regex(moving, /animation/);
  t.regex(still, /\.cover\{[^}]*opacity:0\}#scene0\{visibility:hidden\}/);
});

test('lines of a recording look as on a terminal: erased ones are gone, and long ones go on below', (t) => {
  const lines = parseScreen('\r\x1b[2Kwaiting\r\x1b[2K\x1b[1mbold\x1b[22m plain\r\n\r\nend');
  t.deepEqual(lines, [
    [
      { text: 'bold', look: 'bold' },
      { text: ' plain', look: 'plain' },
    ],
    [],
    [{ text: 'end', look: 'plain' }],
  ]);
  t.deepEqual(wrapLine(lines[0] ?? [], 6), [
    [
      { text: 'bold', look: 'bold' },
      { text: ' p', look: 'plain' },
    ],
    [{ text: 'lain', look: 'plain' }],
  ]);
  t.throws(() => parseScreen('\x1b[5;5H'), { message: /does not know what "5;5H"/ });
});
