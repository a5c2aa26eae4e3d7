import { readFile } from 'node:fs/promises';
import test from 'ava';
import { transform } from 'esbuild';

test('the program is ASCII beside its comments, as it is read as one byte a character', async (t) => {
  const text = await readFile(new URL('../../dist/cli.cjs', import.meta.url), 'utf8');
  // Comments go; strings are escaped, as in the build; regular expressions stay as they are written.
  const { code } = await transform(text, { minifyWhitespace: true, legalComments: 'none', charset: 'ascii' });
  t.true(code.length > 100_000);
  t.deepEqual(code.match(/.{0,40}[\u0080-\uffff].{0,40}/g) ?? [], []);
});
