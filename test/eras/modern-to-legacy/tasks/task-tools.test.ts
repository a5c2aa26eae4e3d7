import test from 'ava';
import { listTaskTools, taskSupportIn } from '../../../../src/eras/modern-to-legacy/tasks/task-tools.ts';
import { serverFrame } from '../../../support/frames.ts';

const pageOf = (tools: readonly object[], nextCursor?: string) =>
  serverFrame({ id: 1, result: { tools, ...(nextCursor !== undefined && { nextCursor }) } });

const supporting = (name: string, taskSupport: string) => ({ name, execution: { taskSupport } });

test('the tools of all pages that can run as tasks are known, and no others', (t) => {
  const listing = listTaskTools();
  listing.read(pageOf([supporting('a', 'required'), { name: 'plain' }, supporting('never', 'forbidden')], 'more'));
  t.is(listing.nextCursor, 'more');
  listing.read(pageOf([supporting('b', 'optional')]));
  t.is(listing.nextCursor, undefined);
  t.deepEqual(
    [...listing.tools].map(({ name, taskSupport }) => [name, taskSupport]),
    [
      ['a', 'required'],
      ['b', 'optional'],
    ],
  );
});

test('a tool that is not known, and a name that is no text, stand for no task', (t) => {
  const { tools } = listTaskTools();
  t.deepEqual([taskSupportIn(tools, 'x'), taskSupportIn(tools, 7)], ['forbidden', 'forbidden']);
});
