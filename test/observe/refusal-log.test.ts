import test from 'ava';
import { RefusalLog } from '../../src/observe/refusal-log.ts';
import { collectLog } from '../process/collected-log.ts';
import { FakeClock } from '../support/fake-clock.ts';

function start() {
  const { log, entries } = collectLog();
  const clock = new FakeClock();
  return { clock, refusals: new RefusalLog({ log, clock }), lines: () => entries.map(({ msg }) => msg) };
}

test('logs the requests that were refused in one line a minute, by reason, the most frequent first', (t) => {
  const { clock, refusals, lines } = start();
  for (const code of [
    'ERR_AUTH_REQUIRED',
    'ERR_AUTH_TOKEN',
    'ERR_AUTH_REQUIRED',
    'ERR_AUTH_TOKEN',
    'ERR_AUTH_TOKEN',
  ] as const)
    refusals.refused(code);
  clock.advance(59_999);
  t.deepEqual(lines(), []);
  clock.advance(1);
  t.deepEqual(lines(), ['5 requests were refused in the last minute: 3 × ERR_AUTH_TOKEN, 2 × ERR_AUTH_REQUIRED']);
  clock.advance(3_600_000);
  t.is(lines().length, 1, 'without refusals there is no line');
  refusals.refused('ERR_HTTP_HOST');
  clock.advance(60_000);
  t.is(lines().at(-1), '1 request was refused in the last minute: 1 × ERR_HTTP_HOST');
  t.is(clock.pendingTimers, 0);
});

test('logs at the end what no line has said', (t) => {
  const { clock, refusals, lines } = start();
  refusals.close();
  t.deepEqual(lines(), []);
  refusals.refused('ERR_AUTH_TOKEN');
  refusals.close();
  t.deepEqual(lines(), ['1 request was refused before the end: 1 × ERR_AUTH_TOKEN']);
  t.is(clock.pendingTimers, 0);
});

test('is silent about what happens in the normal course, and about failures of the server', (t) => {
  const { clock, refusals } = start();
  for (const code of ['ERR_SESSION_UNKNOWN', 'ERR_HTTP_METHOD', 'ERR_UPSTREAM_CONNECT'] as const)
    refusals.refused(code);
  t.is(clock.pendingTimers, 0);
});
