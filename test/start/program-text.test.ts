import { readdir, readFile } from 'node:fs/promises';
import test from 'ava';
import { transform } from 'esbuild';

const DIST = new URL('../../dist/', import.meta.url);

test('the program is ASCII beside its comments, as it is read as one byte a character', async (t) => {
  const names = (await readdir(DIST)).filter((name) => name.endsWith('.cjs'));
  t.true(names.includes('cli.cjs'));
  for (const name of names) {
    const text = await readFile(new URL(name, DIST), 'utf8');
    // Comments go; strings are escaped, as in the build; regular expressions stay as they are written.
    const { code } = await transform(text, { minifyWhitespace: true, legalComments: 'none', charset: 'ascii' });
    t.true(code.length > 100, name);
    t.deepEqual(code.match(/.{0,40}[\u0080-\uffff].{0,40}/g) ?? [], [], name);
  }
});
