import test from 'ava';
import { MAX_ROWS, parseUsage, UsageFault } from '../../../src/observe/usage/usage.ts';
import { CURSOR, call, createTable, LEGACY_SERVER } from './usage-world.ts';

function example() {
  const { table } = createTable();
  table.connected(CURSOR, LEGACY_SERVER);
  call(table, CURSOR);
  table.used('roots', { server: 'everything', client: CURSOR });
  return JSON.parse(table.toJson());
}

test('what a later version has added is ignored', (t) => {
  const later = example();
  later.more = 1;
  later.rows[0].more = 1;
  t.deepEqual(parseUsage(later), parseUsage(example()));
});

for (const [name, spoil, message] of [
  ['a list', () => [], 'it is not an object'],
  ['nothing', () => null, 'it is not an object'],
  [
    'another format',
    (usage) => ({ ...usage, format: 2 }),
    'format is not 1, the one that this version of mcp-portage reads',
  ],
  ['no rows', (usage) => ({ ...usage, rows: undefined }), /^rows is not a list of up to \d+ items$/],
  [
    'too many rows',
    (usage) => ({ ...usage, rows: new Array(2 * MAX_ROWS).fill(usage.rows[0]) }),
    /^rows is not a list of up to/,
  ],
  [
    'another kind of client',
    (usage) => {
      usage.rows[0].client.kind = 'secret';
      return usage;
    },
    'rows[0].client.kind is not one of client, others, bridge',
  ],
  [
    'a long name',
    (usage) => {
      usage.rows[0].client.name = 'secret'.repeat(100);
      return usage;
    },
    'rows[0].client.name is not a text of up to 64 characters',
  ],
  [
    'a count that is none',
    (usage) => {
      usage.rows[0].days[0].calls = -1;
      return usage;
    },
    'rows[0].days[0].calls is not a whole number that is not negative',
  ],
  [
    'a count that is too large',
    (usage) => {
      usage.rows[0].days[0].latency[0] = 1e300;
      return usage;
    },
    'rows[0].days[0].latency[0] is not a whole number that is not negative',
  ],
  [
    'a day twice',
    (usage) => {
      usage.rows[0].days.push(usage.rows[0].days[0]);
      return usage;
    },
    'rows[0].days is not in the order of the days',
  ],
  [
    'a time that is none',
    (usage) => {
      usage.served[1].untilMs = 'secret';
      return usage;
    },
    'served[1].untilMs is not a whole number that is not negative',
  ],
  [
    'another feature',
    (usage) => {
      usage.rows[1].deprecated[0].feature = 'secret';
      return usage;
    },
    /^rows\[1\]\.deprecated\[0\]\.feature is not one of sampling, /,
  ],
] as const satisfies readonly (readonly [
  string,
  // biome-ignore lint/suspicious/noExplicitAny: it is spoiled on purpose.
  (usage: any) => unknown,
  string | RegExp,
])[]) {
  test(`usage with ${name} is refused, and the message tells the place and no value`, (t) => {
    const fault = t.throws(() => parseUsage(spoil(example())), { instanceOf: UsageFault });
    if (typeof message === 'string') t.is(fault.message, message);
    else t.regex(fault.message, message);
    t.false(fault.message.includes('secret'));
  });
}
