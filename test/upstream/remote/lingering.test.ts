import test from 'ava';
import { Outgoing } from '../../../src/upstream/remote/link-messages.ts';
import { Lingering } from '../../../src/upstream/remote/posted-calls.ts';
import type { Frame } from '../../../src/wire/frame.ts';
import { clientFrame } from '../../support/frames.ts';

/** A message of so many bytes. */
function frameOf(bytes: number, text = ''): Frame {
  const frame = clientFrame({ method: 'x', params: { text } });
  return frame.bytes.length === bytes ? frame : frameOf(bytes, 'x'.repeat(bytes - frame.bytes.length));
}

const post = (bytes: number) => ({ message: new Outgoing(frameOf(bytes), undefined) });

function collect(least: number) {
  const ended: object[] = [];
  return { ended, lingering: new Lingering({ count: 3, bytes: 1000, least }, (oldest) => ended.push(oldest)) };
}

test('the first are ended when there are too many, in number or in bytes', (t) => {
  const { ended, lingering } = collect(0);
  const [a, b, c, d, e] = [100, 100, 100, 100, 900].map(post) as [Post, Post, Post, Post, Post];
  for (const one of [a, b, c]) lingering.add(one);
  t.deepEqual(ended, []);
  lingering.add(d);
  t.deepEqual(ended, [a]);
  lingering.add(e);
  t.deepEqual(ended, [a, b, c]);
});

type Post = ReturnType<typeof post>;

test('what has ended by itself counts no more, nor does what was cleared', (t) => {
  const { ended, lingering } = collect(0);
  const first = post(900);
  lingering.add(first);
  lingering.delete(first);
  lingering.delete(first);
  lingering.add(post(900));
  lingering.clear();
  lingering.add(post(900));
  t.deepEqual(ended, []);
});

test('one that is too large by itself is ended at once, unless it is to be left alone while it is the latest', (t) => {
  const [strict, patient] = [collect(0), collect(1)];
  const large = post(1001);
  strict.lingering.add(large);
  t.deepEqual(strict.ended, [large]);
  patient.lingering.add(large);
  t.deepEqual(patient.ended, []);
  patient.lingering.add(post(100));
  t.deepEqual(patient.ended, [large]);
});
