import test from 'ava';
import { ListenPause } from '../../../src/upstream/streamable-stateless/listen-call.ts';

test('the pause doubles from one second to half a minute', (t) => {
  const pause = new ListenPause();
  t.deepEqual(
    Array.from({ length: 7 }, () => pause.next(0)),
    [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000],
  );
});

test('up to a quarter of it is chance', (t) => {
  const pause = new ListenPause();
  t.is(pause.next(1), 1250);
  t.is(pause.next(0.5), 2250);
});

test('a stream that lived for a while makes it short again; one that did not, does not', (t) => {
  const pause = new ListenPause();
  pause.next(0);
  pause.lived(9_999);
  t.is(pause.next(0), 2000);
  pause.lived(10_000);
  t.is(pause.next(0), 1000);
});

test('a server that asks for more patience gets it, up to five minutes', (t) => {
  const pause = new ListenPause();
  t.is(pause.next(0, 5000), 5000);
  t.is(pause.next(0, 1), 2000);
  t.is(pause.next(0, 1e9), 300_000);
});
