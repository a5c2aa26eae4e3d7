import { access, readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { findFlag, OPTIONS } from '../../src/cli/options/option-table.ts';
import { LIMITS_IN_SOURCE } from './limit-tests.ts';

const root = new URL('../../', import.meta.url);
const text = await readFile(new URL('docs/reference/limits.md', root), 'utf8');

interface Row {
  readonly limit: string;
  readonly figures: string;
  /** Empty below "Fixed limits". */
  readonly flags: readonly string[];
  readonly beyond: string;
}

const rowsOf = (part: string): readonly (readonly string[])[] =>
  part
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| Limit '))
    .map((line) => line.split('|').map((cell) => cell.trim()));

const namesIn = (cell: string): readonly string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);

const [settable = '', fixed = ''] = text.split('## Fixed limits');
const rows: readonly Row[] = [
  ...rowsOf(settable).map(([, limit = '', figures = '', flags = '', beyond = '']) => ({
    limit,
    figures,
    flags: namesIn(flags),
    beyond,
  })),
  ...rowsOf(fixed).map(([, limit = '', figures = '', beyond = '']) => ({ limit, figures, flags: [], beyond })),
];

test('every limit in docs/reference/limits.md has a value, a consequence, a place in the source and a test that is there', async (t) => {
  t.true(rows.length > 25, String(rows.length));
  for (const { limit, figures, beyond } of rows) t.false([figures, beyond].includes(''), limit);
  t.deepEqual(Object.keys(LIMITS_IN_SOURCE).sort(), rows.map(({ limit }) => limit).sort());
  for (const [limit, { tests }] of Object.entries(LIMITS_IN_SOURCE)) {
    t.true(tests.length > 0, limit);
    for (const file of tests) await t.notThrowsAsync(access(new URL(file, root)), `${limit}: ${file}`);
  }
});

/** The limit of the WebSocket library, which the program does not set. */
const OF_OTHERS = ['fragments of a WebSocket message'];

test('what can be set has an option, and what is fixed a constant', (t) => {
  t.true(rowsOf(settable).length > 0 && rowsOf(fixed).length > 0);
  for (const [index, { limit, flags }] of rows.entries()) {
    if (index < rowsOf(settable).length)
      t.true(flags.length > 0 && flags.every((flag) => flag.startsWith('--')), limit);
    else t.is((LIMITS_IN_SOURCE[limit]?.constants ?? []).length > 0, !OF_OTHERS.includes(limit), limit);
  }
});

const settersOf = ({ limit, flags }: Row): readonly string[] => [
  ...flags,
  ...(LIMITS_IN_SOURCE[limit]?.constants ?? []),
];

test('the flags of limits are options, the constants are in the source', async (t) => {
  const source = await readSource();
  for (const name of rows.flatMap(settersOf)) {
    const isKnown = name.startsWith('--')
      ? findFlag(name) !== undefined
      : new RegExp(`\\bconst ${name}\\b`).test(source);
    t.true(isKnown, name);
  }
});

test('the figures of the table are those of the options and of the source', async (t) => {
  const source = await readSource();
  const wrong = rows.flatMap((row) =>
    settersOf(row).flatMap((name) => {
      const values = name.startsWith('--') ? defaultsOf(name) : constantsIn(source, name);
      const shown = values.flatMap(writtenForms);
      if (shown.length === 0 || shown.some((form) => hasFigure(`${row.figures} ${row.beyond}`, form))) return [];
      return [`${row.limit}: ${name} is ${shown.join(' or ')}, and the table says ${row.figures}`];
    }),
  );
  t.deepEqual(wrong, []);
});

const hasFigure = (figures: string, form: string): boolean =>
  new RegExp(`(?<![\\d,.])${form}(?![\\d,.]*\\d)`).test(figures);

/** As on the command line; one that depends on something else is not a number. */
function defaultsOf(name: string): readonly string[] {
  const option = findFlag(name);
  const [, number, unit = ''] = /^(\d+)([a-z]*)$/.exec(option?.default ?? '') ?? [];
  if (number === undefined) return [];
  if (name.endsWith('bytes')) return [`${Number(number) * (unit === 'm' ? 2 ** 20 : unit === 'k' ? 2 ** 10 : 1)}`];
  return [`${number}${unit}`];
}

/** All numbers of that name, in their unit: several files may have a constant of one name. Sums and products are calculated. */
function constantsIn(source: string, name: string): readonly string[] {
  const written = [...source.matchAll(new RegExp(`\\bconst ${name} = ([\\d_ *]+);`, 'g'))];
  return written.map(([, product = '']) => {
    const value = product.split('*').reduce((so, factor) => so * Number(factor.replaceAll('_', '').trim()), 1);
    return `${value}${name.endsWith('_MS') ? 'ms' : ''}`;
  });
}

const SIZES = [
  [2 ** 20, 'MiB'],
  [2 ** 10, 'KiB'],
] as const;
const TIMES = [
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
] as const;

/** How a value may stand in the table: `65536`, `65,536` or `64 KiB`. */
function writtenForms(value: string): readonly string[] {
  const [, number = '', unit = ''] = /^([\d.]+) ?([a-zA-Z]*)$/.exec(value) ?? [];
  if (unit !== '' && unit !== 'ms') return [`${number} ${unit === 'm' ? 'min' : unit}`];
  const amount = Number(number);
  const inUnits = (unit === 'ms' ? TIMES : SIZES).flatMap(([size, name]) =>
    amount % size === 0 ? [`${amount / size} ${name}`] : [],
  );
  return unit === 'ms' ? inUnits : [`${amount}`, amount.toLocaleString('en'), ...inUnits];
}

test('every option that limits something is in the table', (t) => {
  const named = rows.flatMap(({ flags }) => flags);
  for (const { flag } of OPTIONS) {
    if (flag.startsWith('--max-') || flag === '--pool-size') t.true(named.includes(flag), flag);
  }
});

async function readSource(): Promise<string> {
  const folder = new URL('src/', root);
  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.ts'));
  const texts = await Promise.all(files.map((file) => readFile(fileURLToPath(new URL(file, folder)), 'utf8')));
  return texts.join('\n');
}
