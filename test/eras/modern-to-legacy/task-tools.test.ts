import test from 'ava';
import { ToolPages } from '../../../src/eras/modern-to-legacy/task-tools.ts';
import { serverFrame } from '../../support/frames.ts';

const pageOf = (names: readonly string[], nextCursor?: string) =>
  serverFrame({
    id: 1,
    result: {
      tools: names.map((name) => ({ name, execution: { taskSupport: 'required' } })),
      ...(nextCursor !== undefined && { nextCursor }),
    },
  });

test('the tools of all pages that run only as tasks are known', (t) => {
  const pages = new ToolPages(1);
  t.is(pages.take(pageOf(['a'], 'more')), 'more');
  t.is(pages.take(pageOf(['b'])), undefined);
  t.deepEqual(
    ['a', 'b', 'c'].map((name) => pages.required.has(name)),
    [true, true, false],
  );
});

test('so many of them are remembered, and of long names, which a server chooses, fewer', (t) => {
  const many = new ToolPages(1);
  many.take(pageOf(Array.from({ length: 1001 }, (_, n) => `t${n}`)));
  t.is(many.required.size, 1000);
  const long = new ToolPages(1);
  const names = Array.from({ length: 65 }, (_, n) => `${n}`.padEnd(1024, 'x'));
  long.take(pageOf(names));
  t.deepEqual(
    names.filter((name) => long.required.has(name)),
    names.slice(1),
  );
});
