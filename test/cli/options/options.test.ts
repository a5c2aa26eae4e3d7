import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { findFlag, OPTIONS } from '../../../src/cli/options/option-table.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Options of other programs are named there. */
const ABOUT_OTHERS = ['src/cli/mistakes.ts', 'src/snippet.ts'];
/** What every program has, an option of curl, two of V8, beginnings of `--no-` forms, and a decrement. */
const NOT_OURS = [
  'help',
  'version',
  'cacert',
  'heap-growing-percent',
  'max-optimized-bytecode-size',
  'no',
  'no-x',
  'depth',
];

test('every option that a message, a comment or the documentation of errors names exists', (t) => {
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .filter((path) => !ABOUT_OTHERS.includes(path));
  const unknown = [...sources, 'docs/reference/errors.md', 'examples/compose.yaml'].flatMap((path) => {
    const named = readFileSync(join(ROOT, path), 'utf8').matchAll(/(?<![\w-])--(?:no-)?([a-z][a-z-]*[a-z])/g);
    return [...named]
      .map(([, name = '']) => name)
      .filter((name) => findFlag(`--${name}`) === undefined && !NOT_OURS.includes(name))
      .map((name) => `${path}: --${name}`);
  });
  t.deepEqual(unknown, []);
});

test('every flag that is on by default is offered as what switches it off, and no other option is', (t) => {
  const described = OPTIONS.filter(({ flag, offered }) => offered !== flag).map(({ flag }) => flag);
  const on = OPTIONS.filter((option) => option.kind === 'flag' && option.default === 'true').map(({ flag }) => flag);
  t.deepEqual(described, on);
  for (const { flag, offered, effect, describe } of OPTIONS) {
    const isOn = on.includes(flag);
    t.is(offered, isOn ? `--no-${flag.slice('--'.length)}` : flag);
    t.regex(effect, isOn ? /^Do not / : /^(?!Do not )/);
    t.is(effect === describe, !isOn);
  }
});
