import test from 'ava';
import { allowsColor } from '../../src/cli/colors.ts';

for (const [what, isTerminal, env, expected] of [
  ['a terminal has colours', true, {}, true],
  ['a file has none', false, {}, false],
  ['NO_COLOR takes them from a terminal', true, { NO_COLOR: '1' }, false],
  ['an empty NO_COLOR means nothing', true, { NO_COLOR: '' }, true],
  ['FORCE_COLOR gives them to a file', false, { FORCE_COLOR: '1' }, true],
  ['FORCE_COLOR=0 takes them from a terminal', true, { FORCE_COLOR: '0' }, false],
  ['NO_COLOR wins over FORCE_COLOR', true, { NO_COLOR: '1', FORCE_COLOR: '1' }, false],
  ['a terminal without the means has none', true, { TERM: 'dumb' }, false],
] as const) {
  test(what, (t) => {
    t.is(allowsColor(isTerminal, env), expected);
  });
}
