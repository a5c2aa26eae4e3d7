import test, { type ExecutionContext } from 'ava';
import { type Parkable, ParkedCalls } from '../../../../src/eras/modern-to-legacy/questions/parked-calls.ts';

/** Capacity for 3 calls of a caller, 4 together; for 50 bytes of a caller, 100 together. */
class Trial {
  readonly #t: ExecutionContext;
  readonly calls = new ParkedCalls({ perPrincipal: 3, total: 4, bytesPerPrincipal: 50, bytes: 100 });
  #count = 0;

  constructor(t: ExecutionContext) {
    this.#t = t;
  }

  parks(principal: string, bytes: number): Parkable {
    const call = this.#call(principal);
    this.#t.true(this.calls.admit(call, bytes), `${principal}, ${bytes}`);
    this.#t.is(this.calls.find(call.id), call);
    return call;
  }

  refuses(principal: string, bytes: number): void {
    const call = this.#call(principal);
    this.#t.false(this.calls.admit(call, bytes), `${principal}, ${bytes}`);
    this.#t.is(this.calls.find(call.id), undefined);
  }

  #call(principal: string): Parkable {
    this.#count += 1;
    return { id: `${this.#count}`, principal, isOver: false };
  }
}

test('so many calls of one caller may wait, and so many of all', (t) => {
  const trial = new Trial(t);
  const first = trial.parks('ada', 1);
  trial.parks('ada', 1);
  trial.parks('ada', 1);
  trial.refuses('ada', 1);
  trial.parks('bob', 1);
  trial.refuses('cid', 1);
  trial.calls.forget(first);
  trial.calls.forget(first);
  trial.parks('cid', 1);
  trial.refuses('bob', 1);
});

test('waiting calls hold so many bytes, and so many of one caller', (t) => {
  const trial = new Trial(t);
  const first = trial.parks('ada', 30);
  trial.refuses('ada', 30);
  trial.parks('bob', 50);
  trial.refuses('cid', 21);
  trial.parks('cid', 20);
  trial.calls.forget(first);
  trial.parks('ada', 30);
});

test('a call that waits may come to hold more within the limit, and always less', (t) => {
  const trial = new Trial(t);
  const first = trial.parks('ada', 30);
  t.true(trial.calls.admit(first, 50));
  t.false(trial.calls.admit(first, 51));
  trial.parks('bob', 50);
  t.true(trial.calls.admit(first, 40), 'less fits, however full it is');
  trial.parks('cid', 10);
  t.false(trial.calls.admit(first, 41), 'what it had is given to others');
  trial.calls.forget(first);
  trial.parks('ada', 40);
  trial.refuses('ada', 1);
});
