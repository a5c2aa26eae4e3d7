import test from 'ava';
import {
  FIRM_LEGACY_MS,
  type Verdict,
  VerdictCache,
  WEAK_LEGACY_MS,
} from '../../../src/upstream/detect/verdict-cache.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const firm: Verdict = { kind: 'legacy', by: 'eventStream', confidence: 'firm' };
const weak: Verdict = { kind: 'legacy', by: 'initialize', confidence: 'weak' };
const modern: Verdict = { kind: 'modern', revision: '2026-07-28' };
const YEAR_MS = 365 * 24 * 60 * 60_000;

for (const [verdict, lifetimeMs, name] of [
  [firm, FIRM_LEGACY_MS, 'a firm legacy verdict is kept for a day'],
  [weak, WEAK_LEGACY_MS, 'a weak legacy verdict is kept for a minute'],
] as const) {
  test(name, (t) => {
    const clock = new FakeClock();
    const cache = new VerdictCache(clock, () => undefined);
    cache.store('a', verdict);
    clock.advance(lifetimeMs - 1);
    t.is(cache.find('a'), verdict);
    t.is(cache.find('b'), undefined);
    clock.advance(1);
    t.is(cache.find('a'), undefined);
  });
}

test('a modern verdict is kept until it is doubted', (t) => {
  const clock = new FakeClock();
  const cache = new VerdictCache(clock, () => undefined);
  cache.store('a', modern);
  clock.advance(YEAR_MS);
  t.is(cache.find('a'), modern);
  cache.doubt('a', 'legacy');
  t.is(cache.find('a'), modern);
  cache.doubt('a', 'modern');
  t.is(cache.find('a'), undefined);
});

test('many who ask at the same time make for one detection', async (t) => {
  const cache = new VerdictCache(new FakeClock(), () => undefined);
  let detections = 0;
  const detect = async (): Promise<Verdict> => {
    detections += 1;
    return firm;
  };
  const verdicts = await Promise.all(Array.from({ length: 100 }, () => cache.resolve('a', detect)));
  t.is(detections, 1);
  t.true(verdicts.every((verdict) => verdict === firm));
  await cache.resolve('a', detect);
  await cache.resolve('b', detect);
  t.is(detections, 2);
});

test('many who doubt one verdict make for one new detection', async (t) => {
  const cache = new VerdictCache(new FakeClock(), () => undefined);
  cache.store('a', modern);
  let detections = 0;
  const noticed = async (): Promise<Verdict> => {
    cache.doubt('a', 'modern');
    return cache.resolve('a', async () => {
      detections += 1;
      return firm;
    });
  };
  await Promise.all(Array.from({ length: 10 }, noticed));
  await noticed();
  t.is(detections, 1);
  t.is(cache.find('a'), firm);
});

test('a detection that fails fails for all who waited, and is not remembered', async (t) => {
  const cache = new VerdictCache(new FakeClock(), () => undefined);
  const failure = new Error('401');
  const fail = (): Promise<Verdict> => Promise.reject(failure);
  for (const outcome of await Promise.allSettled([cache.resolve('a', fail), cache.resolve('a', fail)])) {
    t.deepEqual(outcome, { status: 'rejected', reason: failure });
  }
  t.is(await cache.resolve('a', async () => firm), firm);
});

test('each verdict says what the server speaks, but for one that was found without a session', (t) => {
  const learned: unknown[] = [];
  const cache = new VerdictCache(new FakeClock(), (spoken) => void learned.push(spoken));
  for (const verdict of [firm, weak, modern]) cache.store('a', verdict);
  cache.store('a', { kind: 'legacy', by: 'discover', confidence: 'firm' });
  t.deepEqual(learned, [
    { transport: 'http-sse', era: 'legacy', revision: undefined },
    { transport: 'streamable-http', era: 'legacy', revision: undefined },
    { transport: 'streamable-http', era: 'modern', revision: '2026-07-28' },
  ]);
});
