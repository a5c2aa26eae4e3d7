import test from 'ava';
import { compileToolChoice, MAX_TOOL_NAME_LENGTH } from '../../src/config/tool-choice.ts';

const ALL = { include: [], exclude: [], shapes: new Map() };

function shownOf(choice: { readonly include?: string[]; readonly exclude?: string[] }, names: readonly string[]) {
  const isHidden = compileToolChoice({ ...ALL, ...choice });
  return names.filter((name) => isHidden?.(name) !== true);
}

test('without patterns nothing is hidden', (t) => {
  t.is(compileToolChoice(ALL), undefined);
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

test('a tool that is hidden by its name is hidden, whatever the patterns say', (t) => {
  const shape = { name: undefined, title: undefined, description: undefined, callers: undefined };
  const shapes = new Map([
    ['a', { ...shape, isHidden: true }],
    ['b', { ...shape, isHidden: false }],
  ]);
  const isHidden = compileToolChoice({ include: ['a', 'b'], exclude: ['b'], shapes });
  t.deepEqual(
    ['a', 'b'].map((name) => isHidden?.(name)),
    [true, true],
  );
  t.is(compileToolChoice({ ...ALL, shapes: new Map([['b', { ...shape, isHidden: false }]]) }), undefined);
});
