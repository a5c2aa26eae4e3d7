import test from 'ava';
import { compileToolChoice, MAX_TOOL_NAME_LENGTH } from '../../src/bridge/create-dialer.ts';

function shownOf(choice: { readonly include?: string[]; readonly exclude?: string[] }, names: readonly string[]) {
  const isHidden = compileToolChoice({ include: [], exclude: [], ...choice });
  return names.filter((name) => isHidden?.(name) !== true);
}

test('without patterns nothing is hidden', (t) => {
  t.is(compileToolChoice({ include: [], exclude: [] }), undefined);
});

test('tools are shown that one pattern includes and none excludes', (t) => {
  const names = ['read_a', 'read_secret', 'write_a', 'list'];
  t.deepEqual(shownOf({ include: ['read_*', 'list'], exclude: ['*_secret'] }, names), ['read_a', 'list']);
  t.deepEqual(shownOf({ exclude: ['*_secret'] }, names), ['read_a', 'write_a', 'list']);
});

test('a name that is too long for any tool is hidden, whatever the patterns say', (t) => {
  const longest = 'x'.repeat(MAX_TOOL_NAME_LENGTH);
  t.deepEqual(shownOf({ include: ['*'] }, [longest, `${longest}x`]), [longest]);
  t.deepEqual(shownOf({ exclude: ['y'] }, [longest, `${longest}x`]), [longest]);
});
