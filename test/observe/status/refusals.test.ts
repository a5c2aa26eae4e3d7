import test from 'ava';
import { mergeRefused, Refusals } from '../../../src/observe/status/refusals.ts';
import { WallClock } from './seen.ts';

const MINUTE_MS = 60_000;

function createRefusals() {
  const clock = new WallClock();
  return { clock, refusals: new Refusals({ wallClock: clock.now }) };
}

test('counts what was refused, and by which code in the last hour, the most frequent first', (t) => {
  const { clock, refusals } = createRefusals();
  t.deepEqual(refusals.report(), { total: 0, lastHour: 0, byCode: [] });
  refusals.refused('ERR_HTTP_ORIGIN');
  clock.advance(59 * MINUTE_MS);
  refusals.refused('ERR_AUTH_TOKEN');
  refusals.refused('connections');
  refusals.refused('ERR_AUTH_TOKEN');
  t.deepEqual(refusals.report(), {
    total: 4,
    lastHour: 4,
    byCode: [
      { code: 'ERR_AUTH_TOKEN', count: 2 },
      { code: 'ERR_HTTP_ORIGIN', count: 1 },
      { code: 'connections', count: 1 },
    ],
  });
});

test('forgets what is more than an hour ago, but not the total', (t) => {
  const { clock, refusals } = createRefusals();
  refusals.refused('ERR_HTTP_ORIGIN');
  clock.advance(60 * MINUTE_MS);
  t.deepEqual(refusals.report(), { total: 1, lastHour: 0, byCode: [] });
  refusals.refused('ERR_AUTH_TOKEN');
  t.deepEqual(refusals.report(), { total: 2, lastHour: 1, byCode: [{ code: 'ERR_AUTH_TOKEN', count: 1 }] });
});

test('does not count what belongs to the usual course of the protocol, or is a failure of a server', (t) => {
  const { refusals } = createRefusals();
  for (const code of ['ERR_HTTP_METHOD', 'ERR_SESSION_UNKNOWN', 'ERR_UPSTREAM_EXITED'] as const) refusals.refused(code);
  t.is(refusals.report().total, 0);
});

test('a clock that is set back shows nothing of the future', (t) => {
  const { clock, refusals } = createRefusals();
  refusals.refused('ERR_HTTP_ORIGIN');
  clock.advance(-5 * MINUTE_MS);
  t.like(refusals.report(), { total: 1, lastHour: 0 });
});

test('adds up what replicas have refused', (t) => {
  const { refusals: one } = createRefusals();
  const { refusals: other } = createRefusals();
  one.refused('ERR_HTTP_ORIGIN');
  other.refused('ERR_HTTP_ORIGIN');
  other.refused('connections');
  t.deepEqual(mergeRefused([one.report(), other.report()]), {
    total: 3,
    lastHour: 3,
    byCode: [
      { code: 'ERR_HTTP_ORIGIN', count: 2 },
      { code: 'connections', count: 1 },
    ],
  });
});
