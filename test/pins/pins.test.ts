import test from 'ava';
import type { ToolDigests } from '../../src/mcp/classify/tool-definition.ts';
import {
  acceptTools,
  arePinnedAlike,
  DamagedPins,
  differenceOf,
  formatPins,
  MAX_WAITING_TOOLS,
  noteSightings,
  type Pins,
  parsePins,
  pinFirst,
} from '../../src/pins/pins.ts';

const digest = (letter: string) => letter.repeat(43);
const A: ToolDigests = { description: digest('a'), inputSchema: digest('b') };
const B: ToolDigests = { description: digest('c'), inputSchema: digest('b'), annotations: digest('d') };

const NONE: Pins = new Map();
const PINNED = pinFirst(NONE, 'one', new Map([['echo', { legacy: A }]]));
const seen = (pins: Pins, tool: string, digests: ToolDigests | undefined, era: 'legacy' | 'modern' = 'legacy') =>
  noteSightings(pins, [{ server: 'one', tool, era, digests }]);
const waiting = (pins: Pins) => [...(pins.get('one')?.waiting ?? [])];

test('a difference names the parts that are not as they were pinned', (t) => {
  t.is(differenceOf({ legacy: A }, 'legacy', A), undefined);
  t.deepEqual(differenceOf({ legacy: A }, 'legacy', B), { kind: 'changed', parts: ['description', 'annotations'] });
  t.deepEqual(differenceOf({ legacy: B }, 'legacy', A), { kind: 'changed', parts: ['description', 'annotations'] });
  t.deepEqual(differenceOf(undefined, 'legacy', A), { kind: 'appeared' });
});

test('an era that was not seen counts as the other, until a difference is accepted for it', (t) => {
  t.is(differenceOf({ legacy: A }, 'modern', A), undefined);
  t.is(differenceOf({ legacy: A }, 'modern', B)?.kind, 'changed');
  t.is(differenceOf({ legacy: A, modern: B }, 'modern', B), undefined);
  t.is(differenceOf({ legacy: A, modern: B }, 'legacy', A), undefined);
  t.is(differenceOf({ legacy: A, modern: B }, 'legacy', B)?.kind, 'changed');
});

test('the tools of a server are pinned at first sight, and never anew', (t) => {
  t.is(pinFirst(PINNED, 'one', new Map([['other', { legacy: B }]])), PINNED);
  const two = pinFirst(PINNED, 'two', new Map());
  t.deepEqual([...two.keys()], ['one', 'two']);
  t.is(two.get('one'), PINNED.get('one'));
});

test('what differs waits, until it is accepted or as it was', (t) => {
  const changed = seen(seen(PINNED, 'echo', B), 'new', A);
  t.deepEqual(waiting(changed), [
    ['echo', { legacy: B }],
    ['new', { legacy: A }],
  ]);
  t.is(seen(changed, 'echo', B), changed, 'nothing changes');
  t.deepEqual(waiting(seen(changed, 'echo', A)), [['new', { legacy: A }]]);
  t.deepEqual(waiting(seen(changed, 'echo', undefined)), [['new', { legacy: A }]]);
  t.is(noteSightings(PINNED, [{ server: 'unknown', tool: 'echo', era: 'legacy', digests: B }]), PINNED);
});

test('accepting makes a pin of what waits, for the tools that are named', (t) => {
  const changed = seen(seen(PINNED, 'echo', B), 'new', A);
  const accepted = acceptTools(changed, [{ server: 'one', tool: 'echo' }]);
  t.deepEqual(accepted.get('one')?.pinned, new Map([['echo', { legacy: B }]]));
  t.deepEqual(waiting(accepted), [['new', { legacy: A }]]);
  t.is(seen(accepted, 'echo', B), accepted);
  t.deepEqual(waiting(seen(accepted, 'echo', A)), [
    ['new', { legacy: A }],
    ['echo', { legacy: A }],
  ]);
});

test('each era of a tool is accepted by what was seen in it', (t) => {
  const changed = seen(PINNED, 'echo', B, 'modern');
  const accepted = acceptTools(changed, [{ server: 'one', tool: 'echo' }]);
  t.deepEqual(accepted.get('one')?.pinned.get('echo'), { legacy: A, modern: B });
});

test('a limited number of tools waits', (t) => {
  let pins = PINNED;
  for (let index = 0; index < MAX_WAITING_TOOLS + 10; index++) pins = seen(pins, `tool-${index}`, A);
  t.is(waiting(pins).length, MAX_WAITING_TOOLS);
  t.deepEqual(seen(pins, 'tool-0', B).get('one')?.waiting.get('tool-0'), { legacy: B });
});

test('a text is read as it was written, whatever tools are called', (t) => {
  const names = ['__proto__', 'constructor', '1', 'a"b', '\u2028', ''];
  const pins = pinFirst(seen(PINNED, 'new', B), 'two', new Map(names.map((name) => [name, { modern: A }])));
  const read = parsePins(formatPins(pins));
  t.deepEqual([...(read.get('two')?.pinned.keys() ?? [])].sort(), [...names].sort());
  t.deepEqual(read.get('one'), pins.get('one'));
  t.true(arePinnedAlike(read, pins));
  t.is(formatPins(read), formatPins(pins));
});

test('pins are alike whatever waits', (t) => {
  t.true(arePinnedAlike(PINNED, seen(PINNED, 'echo', B)));
  t.false(arePinnedAlike(PINNED, acceptTools(seen(PINNED, 'echo', B), [{ server: 'one', tool: 'echo' }])));
});

const GOOD = formatPins(PINNED);

test('no part of a text is a text of pins', (t) => {
  const trimmed = GOOD.trimEnd();
  for (let length = 0; length < trimmed.length; length++) {
    t.throws(() => parsePins(trimmed.slice(0, length)), { instanceOf: DamagedPins }, `${length}`);
  }
});

for (const [what, text] of [
  ['an empty text', ''],
  ['other JSON', '[]'],
  ['an object without pins', '{}'],
  ['another version', GOOD.replace('"version": 1', '"version": 2')],
  ['a list of servers', '{"version":1,"servers":[]}'],
  ['a server without tools', '{"version":1,"servers":{"a":{"waiting":{}}}}'],
  ['a server that does not say what waits', '{"version":1,"servers":{"a":{"tools":{}}}}'],
  ['an unknown member', '{"version":1,"servers":{},"more":1}'],
  ['an unknown member of a server', '{"version":1,"servers":{"a":{"tools":{},"waiting":{},"more":1}}}'],
  ['a tool without a definition', '{"version":1,"servers":{"a":{"tools":{"t":{}},"waiting":{}}}}'],
  ['an unknown era', '{"version":1,"servers":{"a":{"tools":{"t":{"future":{}}},"waiting":{}}}}'],
  ['an unknown part', GOOD.replace('"description"', '"icons"')],
  ['a digest that is cut', GOOD.replace(digest('a'), digest('a').slice(1))],
  ['a digest that is none', GOOD.replace(`"${digest('a')}"`, '1')],
] as const) {
  test(`damaged, and not read as fewer pins: ${what}`, (t) => {
    t.throws(() => parsePins(text), { instanceOf: DamagedPins });
  });
}
