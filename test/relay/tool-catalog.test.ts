import test from 'ava';
import type { TaskSupport } from '../../src/mcp/classify/tool-list.ts';
import { MAX_PAGES, TOOL_LIMITS, ToolCatalog, ToolListing } from '../../src/relay/tool-catalog.ts';
import { serverFrame } from '../support/frames.ts';

const all = (): boolean => true;
const tool = (name: string, taskSupport: TaskSupport = 'forbidden') => ({
  name,
  annotations: { headers: [] },
  taskSupport,
});
const namesIn = (tools: ToolCatalog) => [...tools].map(({ name }) => name);
const pageOf = (name: string, more: object = {}) => serverFrame({ id: 1, result: { tools: [{ name }], ...more } });

test('so many tools are remembered, and of long names, which a server chooses, fewer', (t) => {
  const many = new ToolCatalog(all);
  many.add(Array.from({ length: TOOL_LIMITS.count + 1 }, (_, n) => tool(`t${n}`)));
  t.is(many.size, TOOL_LIMITS.count);
  t.is(many.find('t0'), undefined);
  t.is(many.find('t1')?.name, 't1');
  const long = new ToolCatalog(all);
  const names = Array.from({ length: TOOL_LIMITS.length / 1024 + 1 }, (_, n) => `${n}`.padEnd(1024, 'x'));
  long.add(names.map((name) => tool(name)));
  t.deepEqual(namesIn(long), names.slice(1));
});

test('a tool that is not worth remembering anymore is forgotten', (t) => {
  const tools = new ToolCatalog(({ taskSupport }) => taskSupport === 'required');
  tools.add([tool('a', 'required'), tool('b', 'required')]);
  tools.add([tool('a')]);
  t.deepEqual(namesIn(tools), ['b']);
});

test('a list is complete with its last page, and good for as long as the page that is soonest too old', (t) => {
  const listing = new ToolListing(all);
  t.false(listing.isComplete);
  listing.read(pageOf('a', { ttlMs: 50, nextCursor: 'more' }));
  t.deepEqual([listing.isComplete, listing.nextCursor], [false, 'more']);
  listing.read(pageOf('b', { ttlMs: 20 }));
  t.deepEqual([listing.isComplete, listing.nextCursor, listing.ttlMs], [true, undefined, 20]);
  t.deepEqual(namesIn(listing.tools), ['a', 'b']);
  const other = new ToolListing(all);
  other.read(pageOf('a', { ttlMs: 20, nextCursor: 'more' }));
  other.read(pageOf('b', { ttlMs: 50 }));
  t.is(other.ttlMs, 20);
});

test('an answer that is no page ends the list, and says nothing of how long it is good', (t) => {
  const listing = new ToolListing(all);
  t.is(listing.read(serverFrame({ id: 1, error: { code: 1, message: 'no' } })), undefined);
  t.deepEqual([listing.isComplete, listing.nextCursor], [false, undefined]);
});

test('a list of which a later page does not come is not complete, and no more is asked for', (t) => {
  const listing = new ToolListing(all);
  listing.read(pageOf('a', { nextCursor: 'more' }));
  listing.read(serverFrame({ id: 1, result: {} }));
  t.deepEqual([listing.isComplete, listing.nextCursor], [false, undefined]);
  t.deepEqual(namesIn(listing.tools), ['a']);
});

test('a list without end is read so far and no further, and is not complete', (t) => {
  const listing = new ToolListing(all);
  let pages = 0;
  do {
    listing.read(pageOf(`t${pages}`, { nextCursor: 'more' }));
    pages += 1;
  } while (listing.nextCursor !== undefined);
  t.is(pages, MAX_PAGES);
  t.false(listing.isComplete);
});
