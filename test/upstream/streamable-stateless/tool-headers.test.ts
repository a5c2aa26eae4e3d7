import test from 'ava';
import { pino } from 'pino';
import { TOOL_LIMITS } from '../../../src/relay/tool-catalog.ts';
import { ToolHeaders } from '../../../src/upstream/streamable-stateless/tool-headers.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { serverFrame } from '../../support/frames.ts';

const create = (): ToolHeaders => new ToolHeaders(new FakeClock(), pino({ level: 'silent' }));
const pageOf = (names: readonly string[], more: object = {}) =>
  serverFrame({ id: 1, result: { tools: names.map((name) => ({ name, inputSchema: {} })), ...more } });
const isKnown = (tools: ToolHeaders, name: string): boolean => tools.find(name).annotations !== undefined;

test('so many tools are remembered, and of long names, which a server chooses, fewer', (t) => {
  const many = create();
  const names = Array.from({ length: TOOL_LIMITS.count + 1 }, (_, n) => `t${n}`);
  many.pass(true, pageOf(names));
  t.deepEqual([isKnown(many, 't0'), isKnown(many, 't1')], [false, true]);
  const few = create();
  const long = Array.from({ length: TOOL_LIMITS.length / 1024 + 1 }, (_, n) => `${n}`.padEnd(1024, 'x'));
  few.pass(true, pageOf(long));
  t.deepEqual(
    long.filter((name) => isKnown(few, name)),
    long.slice(1),
  );
});

test('what a tool is told to repeat counts as well', (t) => {
  const tools = create();
  const properties = Object.fromEntries(
    Array.from({ length: 3 }, (_, n) => [
      `${n}`.padEnd(TOOL_LIMITS.length / 4, 'x'),
      { type: 'string', 'x-mcp-header': `H${n}` },
    ]),
  );
  const listed = ['a', 'b'].map((name) => ({ name, inputSchema: { properties } }));
  tools.pass(true, serverFrame({ id: 1, result: { tools: listed } }));
  t.deepEqual([isKnown(tools, 'a'), isKnown(tools, 'b')], [false, true]);
});

test('a list in pages replaces what was known when it is complete, else it adds to it', async (t) => {
  const tools = create();
  tools.pass(true, pageOf(['old']));
  const pages = ['a', 'b', 'c'];
  await tools.refresh(async (cursor) => {
    const at = Number(cursor ?? 0);
    if (at === 1) throw new Error('broken');
    return pageOf([pages[at] ?? ''], { nextCursor: `${at + 1}` });
  });
  t.deepEqual(
    ['old', 'a'].map((name) => isKnown(tools, name)),
    [true, true],
  );
  await tools.refresh(async (cursor) => {
    const at = Number(cursor ?? 0);
    return pageOf([pages[at] ?? ''], at < 2 ? { nextCursor: `${at + 1}` } : {});
  });
  t.deepEqual(
    ['old', ...pages].map((name) => isKnown(tools, name)),
    [false, true, true, true],
  );
});
