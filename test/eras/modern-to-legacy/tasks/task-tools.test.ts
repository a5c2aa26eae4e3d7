import test from 'ava';
import { listTaskTools } from '../../../../src/eras/modern-to-legacy/tasks/task-tools.ts';
import { serverFrame } from '../../../support/frames.ts';

const pageOf = (tools: readonly object[], nextCursor?: string) =>
  serverFrame({ id: 1, result: { tools, ...(nextCursor !== undefined && { nextCursor }) } });

const asTask = (name: string) => ({ name, execution: { taskSupport: 'required' } });

test('the tools of all pages that run only as tasks are known, and no others', (t) => {
  const listing = listTaskTools();
  listing.read(pageOf([asTask('a'), { name: 'plain' }], 'more'));
  t.is(listing.nextCursor, 'more');
  listing.read(pageOf([asTask('b')]));
  t.is(listing.nextCursor, undefined);
  t.deepEqual(
    [...listing.tools].map(({ name }) => name),
    ['a', 'b'],
  );
});
