import test from 'ava';
import {
  type KeptOutcome,
  KeptOutcomes,
  MAX_REMEMBERED,
} from '../../../src/eras/modern-to-legacy/questions/parked-calls.ts';

/** Outcomes within 100 bytes, and which of them were given up. */
class Trial {
  readonly outcomes = new KeptOutcomes(100);
  readonly givenUp: string[] = [];

  keep(id: string, principal: string, bytes: number): KeptOutcome {
    const outcome = { id, principal, bytes, giveUp: () => void this.givenUp.push(id) };
    this.outcomes.keep(outcome);
    return outcome;
  }
}

test('the oldest outcome of the caller who keeps most is dropped, others lose nothing', (t) => {
  const trial = new Trial();
  trial.keep('modest', 'bob', 20);
  trial.keep('first', 'ada', 30);
  trial.keep('second', 'ada', 30);
  trial.keep('third', 'ada', 30);
  t.deepEqual(trial.givenUp, ['first']);
  trial.keep('big', 'cid', 60);
  t.deepEqual(trial.givenUp, ['first', 'second', 'third']);
  t.is(trial.outcomes.bytes, 80);
});

test('an outcome larger than the whole capacity is kept alone until the next one', (t) => {
  const trial = new Trial();
  trial.keep('small', 'ada', 10);
  trial.keep('huge', 'ada', 500);
  t.deepEqual(trial.givenUp, ['small']);
  t.is(trial.outcomes.bytes, 500);
  trial.keep('next', 'bob', 10);
  t.deepEqual(trial.givenUp, ['small', 'huge']);
  t.is(trial.outcomes.bytes, 10);
});

test('what is released frees capacity, once, and was not given up', (t) => {
  const trial = new Trial();
  const outcome = trial.keep('done', 'ada', 90);
  trial.outcomes.release(outcome);
  trial.outcomes.release(outcome);
  t.is(trial.outcomes.bytes, 0);
  trial.keep('next', 'ada', 90);
  t.deepEqual(trial.givenUp, []);
  t.false(trial.outcomes.wasGivenUp('done', 'ada'));
});

test('what was given up is remembered for its caller alone, and not for ever', (t) => {
  const trial = new Trial();
  for (let n = 0; n <= MAX_REMEMBERED; n++) trial.keep(`n${n}`, 'ada', 100);
  t.true(trial.outcomes.wasGivenUp('n0', 'ada'));
  t.false(trial.outcomes.wasGivenUp('n0', 'bob'));
  trial.keep('last', 'ada', 100);
  t.false(trial.outcomes.wasGivenUp('n0', 'ada'));
  t.true(trial.outcomes.wasGivenUp('n1', 'ada'));
});
