import test, { type ExecutionContext } from 'ava';
import {
  KeptNotices,
  MAX_KEPT_NOTICE_BYTES,
  MAX_KEPT_NOTICES,
} from '../../../src/eras/modern-to-legacy/call-notices.ts';
import { ParkedBytes } from '../../../src/eras/parked-bytes.ts';
import type { Frame } from '../../../src/wire/frame.ts';
import { serverFrame } from '../../support/frames.ts';

/** Notices by their numbers; capacity for so many bytes of a caller. */
class Trial {
  readonly #bytes: ParkedBytes;
  readonly capacity: number;
  readonly kept: KeptNotices;

  constructor(capacity = Number.MAX_SAFE_INTEGER) {
    this.capacity = capacity;
    this.#bytes = new ParkedBytes({ bytes: capacity, bytesPerPrincipal: capacity });
    this.kept = new KeptNotices(this.#bytes.open('ada'));
  }

  log(n: number, bytes = 0): this {
    return this.#add('message', n, bytes);
  }

  progress(n: number, bytes = 0): this {
    return this.#add('progress', n, bytes);
  }

  #add(method: string, n: number, bytes: number): this {
    this.kept.add(notice(method, n, bytes));
    return this;
  }

  /** So many bytes of the caller are not held by anything. */
  hasFree(bytes: number): boolean {
    const other = this.#bytes.open('ada');
    const isFree = other.set(bytes) && !this.#bytes.open('ada').set(1);
    other.set(0);
    return isFree;
  }

  isLeft(t: ExecutionContext, expected: readonly number[], dropped = 0): void {
    t.is(this.kept.dropped, dropped);
    const left = this.kept.takeAll().map((frame) => (frame.json() as { params: { n: number } }).params.n);
    t.deepEqual(left, expected);
  }
}

/** At least so many bytes, exactly if that is enough to say anything. */
function notice(method: string, n: number, bytes: number): Frame {
  const frame = (pad: string): Frame => serverFrame({ method: `notifications/${method}`, params: { n, pad } });
  return frame('x'.repeat(Math.max(0, bytes - frame('').bytes.length)));
}

function upTo(n: number): number[] {
  return Array.from({ length: n }, (_, index) => index);
}

test('what is kept is taken once, in its order', (t) => {
  const trial = new Trial().log(1).progress(2).log(3);
  trial.isLeft(t, [1, 2, 3]);
  trial.isLeft(t, []);
});

test('so many are kept; then the oldest goes', (t) => {
  const trial = new Trial();
  for (const n of upTo(MAX_KEPT_NOTICES + 1)) trial.log(n);
  trial.isLeft(t, upTo(MAX_KEPT_NOTICES + 1).slice(1), 1);
});

test('so many bytes are kept; then the oldest go', (t) => {
  const half = MAX_KEPT_NOTICE_BYTES / 2;
  new Trial().log(1, half).log(2, half).isLeft(t, [1, 2]);
  new Trial().log(1, half).log(2, half).log(3, 100).isLeft(t, [2, 3], 1);
  new Trial()
    .log(1, half)
    .log(2, half)
    .log(3, half + 1)
    .isLeft(t, [3], 2);
});

test('what is larger than the whole capacity is not kept, and nothing is dropped for it', (t) => {
  new Trial()
    .progress(1)
    .log(2)
    .log(3, MAX_KEPT_NOTICE_BYTES + 1)
    .progress(4, MAX_KEPT_NOTICE_BYTES + 1)
    .isLeft(t, [1, 2], 2);
});

test('how far the call has come stays, however much is said since', (t) => {
  const trial = new Trial().progress(-2).progress(-1);
  for (const n of upTo(2 * MAX_KEPT_NOTICES)) trial.log(n);
  trial.isLeft(t, [-1, ...upTo(2 * MAX_KEPT_NOTICES).slice(1 - MAX_KEPT_NOTICES)], MAX_KEPT_NOTICES + 2);
});

test('a caller’s capacity is used by what is kept, until it is taken', (t) => {
  const trial = new Trial(1000).log(1, 300).progress(2, 100);
  t.true(trial.hasFree(600));
  trial.kept.takeAll();
  t.true(trial.hasFree(1000));
});

test('at capacity the oldest are dropped, and the latest progress after everything else', (t) => {
  new Trial(1000).progress(1, 100).log(2, 500).log(3, 500).isLeft(t, [1, 3], 1);
  const trial = new Trial(1000).progress(1, 100).log(2, 1001);
  t.true(trial.hasFree(900));
  trial.isLeft(t, [1], 1);
  new Trial(50).progress(1, 100).isLeft(t, [], 1);
});

test('to keep a notice does not keep what it was read with', (t) => {
  const { kept } = new Trial();
  const read = notice('message', 1, 1000);
  kept.add(read);
  const [frame] = kept.takeAll();
  t.deepEqual(frame?.bytes, read.bytes);
  t.not(frame?.bytes.buffer, read.bytes.buffer);
});
