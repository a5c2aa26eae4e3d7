import { spawnSync } from 'node:child_process';
import test from 'ava';
import { readTestArguments } from '../../scripts/test-arguments.js';
import { REPOSITORY } from '../support/bridge.ts';

const KNOWN = { parts: ['fast', 'long'], isPlace: (argument: string) => argument.startsWith('test/') };
const read = (...argv: string[]) => readTestArguments(argv, KNOWN);
const NONE = { chosen: [], places: [], options: [] };

test('places, parts and options of AVA are told apart, in any order', (t) => {
  t.deepEqual(read(), NONE);
  t.deepEqual(read('test/wire', '--match', '*a=b*', '--part=fast,long', 'test/x.test.ts', '-s', '--timeout=9m'), {
    chosen: ['fast', 'long'],
    places: ['test/wire', 'test/x.test.ts'],
    options: ['--match', '*a=b*', '-s', '--timeout=9m'],
  });
  t.deepEqual(read('-m', 'test/wire'), { ...NONE, options: ['-m', 'test/wire'] }, 'the value of an option is no place');
});

for (const [argument, error] of [
  ['--grep=x', /^--grep=x is no option\. These are: --part=fast\|long .*--match/],
  ['--serial=yes', /^--serial=yes is no option/],
  ['wire/typo.test.ts', /^wire\/typo\.test\.ts is neither a file nor a folder\.$/],
  ['--part=slow', /^--part=slow: expected one or more of fast, long\.$/],
  ['--part', /^--part is no option/],
  ['--match', /^--match needs a value\.$/],
] as const) {
  test(`${argument} is an error, whatever else is asked for`, (t) => {
    const result = read('test/wire', argument);
    t.regex('error' in result ? result.error : '', error);
  });
}

test('an unknown option is told at once, and nothing runs', (t) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/test.js', '--grep', 'x'], {
    cwd: REPOSITORY,
    encoding: 'utf8',
  });
  t.deepEqual([status, stdout], [2, '']);
  t.regex(stderr, /^--grep is no option\./);
});
