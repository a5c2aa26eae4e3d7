import test from 'ava';
import { AnswerLimit } from '../../src/upstream/answer-limit.ts';
import { collectLog } from '../process/collected-log.ts';
import { clientFrame } from '../support/frames.ts';

const MIB = 1024 * 1024;
const answer = clientFrame({ id: 1, result: {} });

test('only answers are left out, and only those for a server that takes nothing', (t) => {
  const { log, entries } = collectLog();
  const limit = new AnswerLimit(log);
  for (let count = 0; count < 10_000; count++) t.false(limit.excludes(answer, false));
  for (let count = 0; count < 4096; count++) t.false(limit.excludes(answer, true));
  t.true(limit.excludes(answer, true));
  t.true(limit.excludes(answer, true));
  t.false(limit.excludes(clientFrame({ id: 1, method: 'tools/call' }), true));
  t.is(entries.length, 1, 'it is said once');
  t.false(limit.excludes(answer, false), 'it takes something again');
  t.false(limit.excludes(answer, true));
});

test('their bytes count, too', (t) => {
  const limit = new AnswerLimit(collectLog().log);
  const large = clientFrame({ id: 1, result: { text: 'x'.repeat(16 * MIB) } });
  const excluded = Array.from({ length: 5 }, () => limit.excludes(large, true));
  t.deepEqual(excluded, [false, false, false, true, true]);
});
