import { PassThrough } from 'node:stream';
import test from 'ava';
import { SharedInput } from '../../../src/downstream/stdio/shared-input.ts';

test('flows again when the last of those who hold it back lets go, however often each of them held it', (t) => {
  const input = new PassThrough();
  input.on('data', () => {});
  const shared = new SharedInput(input);
  const [one, other] = [{}, {}];
  shared.pauseFor(one);
  shared.pauseFor(one);
  shared.pauseFor(other);
  shared.resumeFor(one);
  t.true(input.isPaused());
  shared.resumeFor(other);
  t.false(input.isPaused());
  shared.resumeFor(other);
  t.false(input.isPaused());
});
