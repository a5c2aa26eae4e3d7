import test from 'ava';
import { joinObservers } from '../../src/observe/observers.ts';
import type { Observer } from '../../src/relay/observer.ts';
import { FakeObserver, ORIGIN } from '../support/calls.ts';
import { call, client, ending, runCall, SERVER_2025 } from '../support/observed.ts';

const fail = (): never => {
  throw new Error('a fault');
};
const THROWS_AT_ONCE: Observer = { seesCalls: true, opened: fail, connected: fail, refused: fail, used: fail };
const THROWS_LATER: Observer = { ...THROWS_AT_ONCE, opened: () => fail, connected: () => fail };
const SEES_NOTHING: Observer = { seesCalls: false, opened: noOne, connected: noOne, refused: noOne, used: noOne };

function noOne(): undefined {
  return undefined;
}

function useAll(observer: Observer | undefined): void {
  observer?.connected(client(), SERVER_2025)?.('ERR_SESSION_CLOSED');
  observer?.opened(call())?.(ending());
  observer?.refused(ORIGIN, 'ERR_SESSION_LIMIT');
  observer?.used('roots', { server: 'everything', client: undefined });
}

test('without observers there is none, so that nothing is read for their sake', (t) => {
  t.is(joinObservers([], fail), undefined);
});

for (const count of [1, 2, 3]) {
  test(`each of ${count} observers sees everything`, (t) => {
    const observers = Array.from({ length: count }, () => new FakeObserver());
    useAll(joinObservers(observers, fail));
    for (const { calls, clients, uses, refusals } of observers) {
      t.deepEqual(calls as object, [{ ...call(), endings: [ending()] }]);
      t.deepEqual(clients as object, [{ client: client(), server: SERVER_2025, left: ['ERR_SESSION_CLOSED'] }]);
      t.deepEqual(uses, ['roots']);
      t.deepEqual(refusals as object, [{ client: ORIGIN, reason: 'ERR_SESSION_LIMIT' }]);
    }
  });
}

test('where nobody wants to know of the end, nobody is told', (t) => {
  const joined = joinObservers([SEES_NOTHING, SEES_NOTHING], fail);
  t.is(joined?.opened(call()), undefined);
  t.is(joined?.connected(client(), undefined), undefined);
});

for (const [when, faulty] of [
  ['at once', THROWS_AT_ONCE],
  ['at the end', THROWS_LATER],
] as const) {
  test(`an observer that throws ${when} is reported once, and breaks neither calls nor other observers`, (t) => {
    const reported: unknown[] = [];
    const others = [new FakeObserver(), new FakeObserver()] as const;
    const joined = joinObservers([others[0], faulty, others[1]], (error) => reported.push(error));
    useAll(joined);
    useAll(joined);
    t.is(reported.length, 1);
    for (const { calls, clients } of others) {
      t.deepEqual(
        calls.map(({ endings }) => endings.length),
        [1, 1],
      );
      t.deepEqual(
        clients.map(({ left }) => left.length),
        [1, 1],
      );
    }
  });
}

test('an observer that is alone and throws breaks no call either', (t) => {
  const reported: unknown[] = [];
  const joined = joinObservers([THROWS_AT_ONCE], (error) => reported.push(error)) as Observer;
  t.notThrows(() => runCall(joined));
  t.is(reported.length, 1);
});

test('calls are looked at where one of the observers wants to see them', (t) => {
  const observers = [new FakeObserver(), new FakeObserver()] as const;
  for (const observer of observers) observer.seesCalls = false;
  const joined = joinObservers(observers, fail);
  t.false(joined?.seesCalls);
  observers[1].seesCalls = true;
  t.true(joined?.seesCalls);
});
