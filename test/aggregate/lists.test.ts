import test from 'ava';
import { pageResult } from '../../src/aggregate/compose-list.ts';
import { readListPage, renamed, TOOLS } from '../../src/aggregate/lists.ts';
import { placesOf, withTaskIds } from '../../src/aggregate/task-ids.ts';
import { serverFrame } from '../support/frames.ts';

/** As some servers write: with spaces, escapes, large numbers, and members that nobody knows. */
const ITEM = '{ "x":1e400, "name" : "dr\\u0061w","inputSchema":{"type":"object" ,"name":"name"},"name2":"draw"}';

test('an item of a list keeps every byte but those of its name', (t) => {
  const page = readListPage(
    serverFrame(`{"jsonrpc":"2.0","id":1,"result":{"tools":[${ITEM}, {"noName":1}],"nextCursor":"7"}}`),
    TOOLS,
  );
  t.is(page?.nextCursor, '7');
  t.is(page?.items.length, 1);
  const [item] = page?.items ?? [];
  if (item === undefined) return t.fail();
  t.is(item.key, 'draw');
  t.is(renamed(item, 'draw').toString(), ITEM);
  t.is(renamed(item, 'a__draw').toString(), ITEM.replace('"dr\\u0061w"', '"a__draw"'));
  const written = pageResult(TOOLS, { items: [renamed(item, 'b'), renamed(item, 'c')], nextCursor: 'n' }, { ttlMs: 0 });
  t.is(
    written.toString(),
    `{"tools":[${ITEM.replace('"dr\\u0061w"', '"b"')},${ITEM.replace('"dr\\u0061w"', '"c"')}],"ttlMs":0,"nextCursor":"n"}`,
  );
  t.is(pageResult(TOOLS, { items: [], nextCursor: undefined }).toString(), '{"tools":[]}');
});

test('ids of tasks are changed where they name a task, and nowhere else', (t) => {
  const text = (task: string) =>
    `{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"taskId":"x","task":{"taskId":"x"}},"taskId":"x","task":{"taskId":"${task}" }}}`;
  const shown = withTaskIds(serverFrame(text('x')), placesOf('tools/call', serverFrame(text('x'))), (id) => `a+${id}`);
  t.is(shown.bytes.toString(), text('a+x'));
});
