import test from 'ava';
import fc from 'fast-check';
import {
  ABANDONED_MS,
  AbandonedCalls,
  attributeQuestion,
  MAX_ABANDONED,
  type PossibleCauses,
} from '../../../../src/relay/shared/legacy/attribution.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const [ADA, BOB] = [{ name: 'ada' }, { name: 'bob' }];
const CLIENTS = [ADA, BOB, undefined];
const TOOL = 'tools/call';

interface Call {
  readonly client: object | undefined;
}

function attribute(open: readonly Call[], abandoned: readonly (object | undefined)[], askedIn: 'client' | 'call') {
  return attributeQuestion({ open, abandoned, askedIn, clientOf: ({ client }: Call) => client });
}

const possible = fc.record({
  open: fc.array(fc.record({ client: fc.constantFrom(...CLIENTS) }), { maxLength: 4 }),
  abandoned: fc.array(fc.constantFrom(...CLIENTS), { maxLength: 4 }),
  askedIn: fc.constantFrom('client' as const, 'call' as const),
});

/** Every client that may have caused the question. Those without identity are each another one. */
function clientsOf({ open, abandoned }: Pick<PossibleCauses<Call>, 'open' | 'abandoned'>): readonly object[] {
  return [...open.map(({ client }) => client), ...abandoned].map((client) => client ?? {});
}

test('a client is asked only if every candidate is its own, or there is only one', (t) => {
  fc.assert(
    fc.property(possible, ({ open, abandoned, askedIn }) => {
      const owner = attribute(open, abandoned, askedIn);
      const clients = clientsOf({ open, abandoned });
      const isAsked = owner.kind === 'call' || owner.kind === 'client';
      return !isAsked || new Set(clients).size === 1;
    }),
  );
  t.pass();
});

test('the only open call is asked unless a call of another client was abandoned', (t) => {
  const one = possible.filter(({ open }) => open.length === 1);
  fc.assert(
    fc.property(one, ({ open, abandoned, askedIn }) => {
      const owner = attribute(open, abandoned, askedIn);
      const isOneClient = new Set(clientsOf({ open, abandoned })).size === 1;
      return isOneClient ? owner.kind === 'call' && owner.candidate === open[0] : owner.kind === 'abandoned';
    }),
  );
  t.pass();
});

test('a client that is alone is always asked where its session is, and where its call is as soon as only one is open', (t) => {
  fc.assert(
    fc.property(fc.nat({ max: 5 }), fc.nat({ max: 5 }), (openCalls, abandonedCalls) => {
      const open = Array.from({ length: openCalls }, () => ({ client: ADA }));
      const abandoned = Array.from({ length: abandonedCalls }, () => ADA);
      const [inSession, inCall] = (['client', 'call'] as const).map((askedIn) => attribute(open, abandoned, askedIn));
      const isAskedInSession = ['call', 'client'].includes(inSession?.kind ?? '');
      if (openCalls + abandonedCalls > 0 && !isAskedInSession) return false;
      return inCall?.kind === (['none', 'call'][openCalls] ?? 'several');
    }),
  );
  t.pass();
});

test('in a call nobody is asked while several are open, whoever they are of', (t) => {
  fc.assert(
    fc.property(possible, ({ open, abandoned }) => {
      const { kind } = attribute(open, abandoned, 'call');
      return open.length < 2 || kind === 'several' || kind === 'abandoned';
    }),
  );
  t.pass();
});

test('in a session the latest call of its client is asked, and without an open one the client itself', (t) => {
  const [first, second] = [{ client: ADA }, { client: ADA }];
  t.deepEqual(attribute([first, second], [ADA], 'client'), { kind: 'call', candidate: second });
  t.deepEqual(attribute([], [ADA, ADA], 'client'), { kind: 'client', client: ADA });
  t.deepEqual(attribute([], [ADA, BOB], 'client'), { kind: 'abandoned' });
  t.deepEqual(attribute([], [], 'client'), { kind: 'none' });
  t.deepEqual(attribute([], [ADA], 'call'), { kind: 'none' });
});

test('a call is abandoned until the server answers it', (t) => {
  const calls = new AbandonedCalls(new FakeClock(), Number.POSITIVE_INFINITY);
  t.true(calls.isEmpty);
  calls.add({ id: 'a', upstreamId: 1, method: TOOL }, ADA);
  calls.add({ id: 5, upstreamId: 2, method: TOOL }, undefined);
  t.deepEqual(calls.askers(), [ADA, undefined]);
  t.is(calls.takeAnswered('1'), undefined);
  t.is(calls.takeAnswered(3), undefined);
  t.like(calls.takeAnswered(1), { client: ADA, id: undefined });
  t.is(calls.takeAnswered(1), undefined);
  t.deepEqual(calls.askers(), [undefined]);
  t.like(calls.takeAnswered(2), { client: undefined, id: 5 });
  t.true(calls.isEmpty);
});

test('a call that was sent after the question, or cannot ask, did not ask it', (t) => {
  const calls = new AbandonedCalls(new FakeClock(), Number.POSITIVE_INFINITY);
  calls.add({ id: 7, upstreamId: 7, method: TOOL }, ADA);
  calls.add({ id: 8, upstreamId: 8, method: 'tools/list' }, BOB);
  t.deepEqual(calls.askers(6), []);
  t.deepEqual(calls.askers(7), [ADA]);
  t.deepEqual(calls.askers(), [ADA]);
  t.deepEqual(calls.clients(), [ADA, BOB]);
});

test('a call is abandoned for so long at most, each by itself', (t) => {
  const clock = new FakeClock();
  const calls = new AbandonedCalls(clock, ABANDONED_MS);
  calls.add({ id: 'a', upstreamId: 1, method: TOOL }, ADA);
  clock.advance(ABANDONED_MS - 1);
  calls.add({ id: 5, upstreamId: 2, method: TOOL }, BOB);
  t.deepEqual(calls.askers(), [ADA, BOB]);
  clock.advance(1);
  t.deepEqual(calls.askers(), [BOB]);
  clock.advance(ABANDONED_MS - 1);
  t.true(calls.isEmpty);
  t.is(clock.pendingTimers, 0);
});

for (const [title, second, remembered] of [
  ['of one client are known to be its own', ADA, ADA],
  ['of several clients are of nobody in particular', BOB, undefined],
] as const) {
  test(`those that are too many to be remembered ${title}, until they are over or the server is another one`, (t) => {
    const clock = new FakeClock();
    const calls = new AbandonedCalls(clock, ABANDONED_MS);
    calls.add({ id: 'a', upstreamId: 1, method: TOOL }, ADA);
    calls.add({ id: 5, upstreamId: 2, method: 'tools/list' }, second);
    const last = MAX_ABANDONED + 2;
    for (let upstreamId = 3; upstreamId <= last; upstreamId += 1) calls.add({ id: 0, upstreamId, method: TOOL }, BOB);
    for (let upstreamId = 1; upstreamId <= last; upstreamId += 1) calls.takeAnswered(upstreamId);
    t.deepEqual(calls.askers(), [remembered]);
    t.deepEqual(calls.askers(0), [remembered]);
    clock.advance(ABANDONED_MS);
    t.true(calls.isEmpty);
    for (let upstreamId = 1; upstreamId <= last; upstreamId += 1) calls.add({ id: 0, upstreamId, method: TOOL }, ADA);
    calls.clear();
    t.true(calls.isEmpty);
  });
}

test('abandoned calls are of a client if all that may ask are, and if that is certain', (t) => {
  const calls = new AbandonedCalls(new FakeClock(), Number.POSITIVE_INFINITY);
  t.true(calls.areAskersOf(undefined));
  calls.add({ id: 1, upstreamId: 1, method: TOOL }, ADA);
  calls.add({ id: 2, upstreamId: 2, method: 'tools/list' }, BOB);
  t.true(calls.areAskersOf(ADA));
  t.false(calls.areAskersOf(BOB));
  t.false(calls.areAskersOf(undefined));
  calls.takeAnswered(1);
  calls.add({ id: 3, upstreamId: 3, method: TOOL }, undefined);
  t.false(calls.areAskersOf(undefined));
  t.false(calls.areAskersOf(ADA));
});
