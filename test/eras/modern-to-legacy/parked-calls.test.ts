import test, { type ExecutionContext } from 'ava';
import { type Parkable, ParkedCalls } from '../../../src/eras/modern-to-legacy/parked-calls.ts';

/** Room for 3 calls of a caller, 4 together, and 100 bytes. */
class Trial {
  readonly #t: ExecutionContext;
  readonly calls = new ParkedCalls({ perPrincipal: 3, total: 4, bytes: 100 });
  #count = 0;

  constructor(t: ExecutionContext) {
    this.#t = t;
  }

  parks(principal: string, requestBytes: number): Parkable {
    const call = this.#call(principal, requestBytes);
    this.#t.true(this.calls.admit(call), `${principal}, ${requestBytes}`);
    return call;
  }

  refuses(principal: string, requestBytes: number): void {
    this.#t.false(this.calls.admit(this.#call(principal, requestBytes)), `${principal}, ${requestBytes}`);
  }

  #call(principal: string, requestBytes: number): Parkable {
    this.#count += 1;
    return { id: `${this.#count}`, principal, requestBytes };
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

test('the requests of waiting calls have so many bytes, half of them of one caller', (t) => {
  const trial = new Trial(t);
  const first = trial.parks('ada', 30);
  t.true(trial.calls.admit(first), 'what waits already, waits on');
  trial.refuses('ada', 30);
  trial.parks('bob', 50);
  trial.refuses('cid', 21);
  trial.parks('cid', 20);
  trial.calls.forget(first);
  trial.parks('ada', 30);
});
