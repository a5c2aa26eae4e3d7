import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { renderManPage } from '../../scripts/man-page.ts';
import { OPTIONS } from '../../src/cli/options/option-table.ts';

const file = new URL('../../man/mcp-portage.1', import.meta.url);

test('the manual page is up to date (npm run docs)', async (t) => {
  t.is(await readFile(file, 'utf8'), renderManPage());
});

const hasMandoc = spawnSync('mandoc', ['-T', 'ascii'], { input: '' }).status === 0;
const hasMan = spawnSync('man', ['--warnings', '--version']).status === 0;

(hasMandoc ? test : test.skip)(
  `mandoc accepts the manual page${hasMandoc ? '' : ' (skipped: mandoc is not here)'}`,
  (t) => {
    const { stdout } = spawnSync('mandoc', ['-Tlint', fileURLToPath(file)], { encoding: 'utf8' });
    // It has the version in place of a date, which would be another one with each build.
    t.is(stdout.replace(/^.*missing date.*\n/, ''), '');
  },
);

(hasMan ? test : test.skip)(
  `man shows the manual page without a warning, with every option${hasMan ? '' : ' (skipped: man is not here)'}`,
  (t) => {
    const { stdout, stderr } = spawnSync('man', ['--warnings', '-l', fileURLToPath(file)], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C.UTF-8', MANWIDTH: '80', MANROFFOPT: '', MAN_KEEP_FORMATTING: '' },
    });
    t.is(stderr, '');
    for (const { offered } of OPTIONS) t.regex(stdout, new RegExp(`^ +${offered}\\b(?!-)`, 'm'));
  },
);
