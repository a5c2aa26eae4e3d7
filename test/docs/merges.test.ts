import test from 'ava';
import { DOCUMENTS } from './documents.ts';

test('no document has both sides of a merge in it', (t) => {
  const unfinished = DOCUMENTS.filter(({ text }) => /^(?:<{7}|>{7}|\|{7}) /m.test(text)).map(({ path }) => path);
  t.deepEqual(unfinished, []);
});
