import test from 'ava';
import {
  MAX_HELD_ROOTS,
  MAX_HELD_ROOTS_BYTES,
  ROOTS_HOLD_MS,
  RootsQuestions,
} from '../../../../src/eras/modern-to-legacy/questions/roots-questions.ts';
import type { Frame, JsonRpcId } from '../../../../src/wire/frame.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { serverFrame } from '../../../support/frames.ts';

function setUp() {
  const clock = new FakeClock();
  const roots = new RootsQuestions(clock);
  const replies: Frame[] = [];
  const ask = (id: JsonRpcId, params: object = {}) =>
    roots.add(serverFrame({ id, method: 'roots/list', params }), (reply) => replies.push(reply));
  return { clock, roots, replies, ask };
}

test('a server that asks twice under one id gets one answer, and nothing of the first is kept', (t) => {
  const { clock, roots, replies, ask } = setUp();
  ask('q');
  ask('q');
  t.is(clock.pendingTimers, 1);
  const [question, ...others] = roots.takeWaiting();
  t.is(others.length, 0);
  question?.answer(Buffer.from('{"roots":[]}'));
  t.is(replies.length, 1);
});

test('nothing stays when the server is gone, whatever ids it has used', (t) => {
  const { clock, roots, replies, ask } = setUp();
  for (const id of ['q', 'q', 1, '1']) ask(id);
  roots.lost();
  t.is(clock.pendingTimers, 0);
  clock.advance(2 * ROOTS_HOLD_MS);
  t.deepEqual(replies, []);
});

test('a server that asks without end is refused what is too much', (t) => {
  const { clock, roots, replies, ask } = setUp();
  for (let id = 0; id < MAX_HELD_ROOTS + 5; id += 1) ask(id);
  t.is(replies.length, 5);
  t.true(replies.every(({ kind }) => kind === 'error'));
  t.is(roots.takeWaiting().length, MAX_HELD_ROOTS);
  t.is(clock.pendingTimers, 0);
});

test('questions that are too large together are refused until one of them is over', (t) => {
  const { roots, replies, ask } = setUp();
  const half = { _meta: { padding: 'x'.repeat(MAX_HELD_ROOTS_BYTES / 2 - 200) } };
  ask(1, half);
  ask(2, half);
  t.is(replies.length, 0);
  ask(3, half);
  t.like(replies[0]?.json(), { error: { code: -32603 } });
  roots.withdrawn(1);
  ask(4, half);
  t.is(replies.length, 1);
});

test('an answer is remembered for the next question, but for one that is too large to be kept', (t) => {
  const { roots, replies, ask } = setUp();
  const answerWith = (text: string): void => roots.takeWaiting()[0]?.answer(Buffer.from(text));
  ask(1);
  answerWith('{"roots":[]}');
  ask(2);
  t.is(replies.length, 2);
  roots.lost();
  ask(3);
  answerWith(`{"roots":[],"padding":"${'x'.repeat(MAX_HELD_ROOTS_BYTES)}"}`);
  t.is(replies.length, 3);
  ask(4);
  t.is(replies.length, 3, 'it is asked for again');
});

test('a server that waits for an answer is refused one when the session ends, so that it can end as well', (t) => {
  const { clock, roots, replies, ask } = setUp();
  ask(1);
  const [taken] = roots.takeWaiting();
  let withdrawn = 0;
  if (taken !== undefined) taken.onWithdrawn = () => (withdrawn += 1);
  ask(2);
  roots.close();
  t.deepEqual(
    replies.map(({ kind }) => kind),
    ['error', 'error'],
  );
  t.is(withdrawn, 1);
  t.is(clock.pendingTimers, 0);
  taken?.answer(Buffer.from('{}'));
  t.is(replies.length, 2);
});
