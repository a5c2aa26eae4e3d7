import test from 'ava';
import { GivenUpCalls, MAX_GIVEN_UP } from '../../../../src/eras/modern-to-legacy/pool/unclear-questions.ts';

test('calls count as given up until the server answers them', (t) => {
  const calls = new GivenUpCalls();
  t.true(calls.isEmpty);
  calls.add(1);
  calls.add(2);
  calls.answered(1);
  calls.answered('2');
  t.false(calls.isEmpty);
  calls.answered(2);
  t.true(calls.isEmpty);
});

test('of more than can be remembered none is taken to be over, until the server is another one', (t) => {
  const calls = new GivenUpCalls();
  for (let id = 0; id <= MAX_GIVEN_UP; id += 1) calls.add(id);
  for (let id = 0; id <= MAX_GIVEN_UP; id += 1) calls.answered(id);
  t.false(calls.isEmpty);
  calls.clear();
  t.true(calls.isEmpty);
});
