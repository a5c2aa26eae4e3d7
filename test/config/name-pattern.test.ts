import test from 'ava';
import fc from 'fast-check';
import picomatch from 'picomatch';
import { compileNamePattern } from '../../src/config/name-pattern.ts';

function matches(pattern: string, name: string): boolean {
  const match = compileNamePattern(pattern);
  if (match === undefined) throw new Error(`${pattern} is refused`);
  return match(name);
}

for (const [pattern, yes, no] of [
  ['read_file', ['read_file'], ['read_files', 'Read_file', '']],
  ['read_*', ['read_', 'read_a/b', 'read_.x', 'read_é'], ['xread_', 'read']],
  ['*delete*', ['delete', 'do-delete-it'], ['delet', 'dele-te']],
  ['**', ['', 'a'], []],
  ['a?c', ['abc', 'a.c', 'a😀c', 'a/c'], ['ac', 'abbc']],
  ['[a-c]x', ['ax', 'cx'], ['dx', 'x', '-x']],
  ['[!a-c]x', ['dx', '😀x'], ['ax', 'x']],
  ['[^a]', ['b'], ['a']],
  ['[]a-]', [']', 'a', '-'], ['b']],
  ['[a\\]b]', ['a', ']', 'b'], ['\\']],
  ['{a,b*,}x', ['ax', 'bx', 'bbx', 'x'], ['cx', 'a']],
  ['{a,{b,c}d}', ['a', 'bd', 'cd'], ['b', 'ad']],
  ['\\*\\{a,b}', ['*{a,b}'], ['x{a,b}', '*a']],
  ['!a', ['!a'], ['b']],
  // What is not closed, or has no choice, is a name like any other.
  ['a{b', ['a{b'], ['ab']],
  ['a[b', ['a[b'], ['ab']],
  ['{a}', ['{a}'], ['a']],
  ['a,b', ['a,b'], ['a']],
  ['a\\', ['a\\'], ['a']],
  ['Shell(rm -rf)', ['Shell(rm -rf)'], ['Shell']],
  // A name that looks like a pattern is taken as it is, too.
  ['get[1]', ['get[1]', 'get1'], ['get']],
] as const) {
  test(`${pattern} matches ${yes.join(' ')}${no.length === 0 ? '' : ` and not ${no.join(' ')}`}`, (t) => {
    for (const name of yes) t.true(matches(pattern, name), name);
    for (const name of no) t.false(matches(pattern, name), name);
  });
}

for (const pattern of ['!(a|b)', 'x@(a)', '?(a)', '*(a)', '+(a)', '{1..3}', 'x{a..c}', '[z-a]', '{a,'.repeat(11)]) {
  test(`${pattern} is refused: it means something in other shells that nothing means here`, (t) => {
    t.is(compileNamePattern(pattern), undefined);
  });
}

for (const [pattern, name] of [
  ['*delete*', 'd'.repeat(120_000)],
  ['*a*a*a*a*a*a*a*b', 'a'.repeat(120_000)],
  ['{*a,*a,*a}{*a,*a,*a}{*a,*a,*a}b', 'a'.repeat(20_000)],
  ['[a-z]*[a-z]*[a-z]*[!a-z]', 'a'.repeat(120_000)],
] as const) {
  test(`${pattern} follows a name of ${name.length} characters once, and tries nothing again`, (t) => {
    t.false(matches(pattern, name));
    t.true(['delete', 'b', '0'].some((end) => matches(pattern, name + end)));
  });
}

// Of `[!a]` picomatch makes a list of two characters, where shells take all others.
test('patterns mean what they mean to picomatch', (t) => {
  const piece = fc.constantFrom('a', 'b', '_', '-', '*', '?', '[ab]', '[^b_]', '[a-c]', '{a,b}', '{a*,_}', '\\*');
  const pattern = fc.array(piece, { minLength: 1, maxLength: 6 }).map((pieces) => pieces.join(''));
  const name = fc.array(fc.constantFrom('a', 'b', 'c', '_', '-', '*'), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(pattern, name, (glob, letters) => {
      const text = letters.join('');
      t.is(matches(glob, text), picomatch(glob, { bash: true, dot: true, nonegate: true })(text), `${glob} ${text}`);
    }),
    { numRuns: 5000 },
  );
});
