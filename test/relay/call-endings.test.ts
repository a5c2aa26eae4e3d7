import test from 'ava';
import { overdue, shortestOf } from '../../src/relay/call-endings.ts';
import { Exchange } from '../../src/relay/exchange.ts';
import { FakeLane } from '../support/fake-peers.ts';

const TIMES = { requestTimeoutMs: 10, maxCallMs: 100 };

/** Opened at 1000. */
function exchangeOf(method: string, { lastActiveMs = 1000, openQuestions = 0 } = {}): Exchange {
  const exchange = new Exchange(1, method, new FakeLane(), undefined, 1000);
  return Object.assign(exchange, { lastActiveMs, openQuestions });
}

const phaseAt = (nowMs: number, exchange: Exchange, times: { requestTimeoutMs: number; maxCallMs?: number } = TIMES) =>
  overdue(exchange, nowMs, times)?.data?.phase;

test('a call is overdue when nothing has happened for so long', (t) => {
  const call = exchangeOf('tools/call', { lastActiveMs: 1020 });
  t.is(phaseAt(1029, call), undefined);
  t.is(phaseAt(1030, call), 'response');
  t.is(phaseAt(1e9, call, { requestTimeoutMs: 0 }), undefined);
});

test('a call is overdue when it is open for so long, whatever has happened and whoever is being asked', (t) => {
  const call = exchangeOf('tools/call', { lastActiveMs: 1099, openQuestions: 1 });
  t.is(phaseAt(1099, call), undefined);
  t.is(phaseAt(1100, call), 'call');
  t.is(phaseAt(1e9, call, { requestTimeoutMs: 10, maxCallMs: 0 }), undefined);
  t.regex(overdue(call, 1100, TIMES)?.message ?? '', /tools\/call within 100 ms.*raise --max-call-time/);
});

test('a subscription is never overdue', (t) => {
  t.is(overdue(exchangeOf('subscriptions/listen'), 1e9, TIMES), undefined);
});

test('the shortest limit says how often to look', (t) => {
  t.is(shortestOf(TIMES), 10);
  t.is(shortestOf({ requestTimeoutMs: 0, maxCallMs: 5 }), 5);
  t.is(shortestOf({ requestTimeoutMs: 7 }), 7);
  t.is(shortestOf({ requestTimeoutMs: 0, maxCallMs: 0 }), undefined);
});
