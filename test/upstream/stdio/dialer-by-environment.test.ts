import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { readRequestMetadata } from '../../../src/mcp/classify/request-metadata.ts';
import { CallRegistry } from '../../../src/relay/call-registry.ts';
import { CallerLinks } from '../../../src/relay/caller-links.ts';
import type { CallerEnvironment } from '../../../src/relay/ports.ts';
import { DialerByEnvironment, IDLE_DIALER_MS, MAX_DIALERS } from '../../../src/upstream/stdio/dialer-by-environment.ts';
import { ENVELOPE, FakeCaller } from '../../relay/call-pair.ts';
import { ALICE, Registry } from '../../relay/sessions/registry-bench.ts';
import { createCalls } from '../../support/calls.ts';
import { createFakeDeps, FakeDialer, FakePeer } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';
import { RecordingServerListener } from '../recording-server-listener.ts';

const OVER = new BridgeError('ERR_SESSION_CLOSED', 'over');

function setUp(deps = createFakeDeps()) {
  const { clock } = deps;
  const made: { readonly environment: CallerEnvironment; readonly dialer: FakeDialer; isClosed: boolean }[] = [];
  const create = (environment: CallerEnvironment) => {
    const entry = { environment, dialer: new FakeDialer(), isClosed: false };
    entry.dialer.close = async () => {
      entry.isClosed = true;
    };
    made.push(entry);
    return entry.dialer;
  };
  return { deps, clock, made, dialer: new DialerByEnvironment({ create, clock }) };
}

const listener = () => new RecordingServerListener();

test('equal values share a dialer, whatever their order; others have their own', (t) => {
  const { dialer, made } = setUp();
  dialer.forCaller({ A: '1', B: '2' }).dial(listener());
  dialer.forCaller({ B: '2', A: '1' }).dial(listener());
  dialer.forCaller({ A: '2', B: '1' }).dial(listener());
  dialer.forCaller(undefined).dial(listener());
  dialer.forCaller({}).dial(listener());
  t.deepEqual(
    made.map(({ environment, dialer: { dialed } }) => [environment, dialed.length]),
    [
      [{}, 2],
      [{ A: '1', B: '2' }, 2],
      [{ A: '2', B: '1' }, 1],
    ],
  );
});

test('a dialer that nobody uses is let go after a while, one that is used again is not', async (t) => {
  const { dialer, made, clock } = setUp();
  const environment = { A: '1' };
  dialer.forCaller(environment).dial(listener());
  clock.advance(IDLE_DIALER_MS * 2);
  t.false(made[1]?.isClosed);
  dialer.linkEnded(environment);
  clock.advance(IDLE_DIALER_MS - 1);
  dialer.forCaller(environment).dial(listener());
  clock.advance(IDLE_DIALER_MS);
  t.is(made.length, 2);
  t.false(made[1]?.isClosed);
  dialer.linkEnded({ ...environment });
  clock.advance(IDLE_DIALER_MS);
  t.true(made[1]?.isClosed);
  t.is(clock.pendingTimers, 0);
  dialer.forCaller(environment).dial(listener());
  t.is(made.length, 3);
  await dialer.close();
  t.true(made.every(({ isClosed }) => isClosed));
  dialer.linkEnded(environment);
  t.is(clock.pendingTimers, 0);
});

test('a dialer that cannot dial is not used', (t) => {
  const { dialer, made, clock } = setUp();
  dialer.forCaller({ A: '1' }).dial(listener());
  dialer.linkEnded({ A: '1' });
  const { dialer: failing } = made[1] ?? t.fail();
  failing.failure = OVER;
  t.throws(() => dialer.forCaller({ A: '1' }).dial(listener()));
  clock.advance(IDLE_DIALER_MS);
  t.true(made[1]?.isClosed);
});

/** A link is dialed for a client with these values. Returns the client's ways to end it. */
type Use = (bench: ReturnType<typeof setUp>, environment: CallerEnvironment) => { leave(): void };

const USES: Readonly<Record<string, Use>> = {
  'of a session': ({ dialer, deps }, environment) => {
    const { sessions } = new Registry({ dialers: dialer, deps });
    const { relay } = sessions.open(() => new FakePeer(), { ...ALICE, environment });
    return { leave: () => relay.clientClosed(OVER) };
  },
  'of a modern call': ({ dialer, deps }, environment) => {
    const calls = createCalls(deps.clock);
    const modernCalls = new CallRegistry({ dialers: dialer, deps, calls, requestTimeoutMs: 0 });
    const frame = clientFrame({ id: 1, method: 'tools/call', params: { name: 'x', _meta: ENVELOPE } });
    const metadata = readRequestMetadata(frame);
    if ('fault' in metadata) throw new Error(metadata.fault);
    const caller = { transport: 'streamable-http', principal: 'ann', environment, headers: undefined } as const;
    const client = new FakeCaller();
    modernCalls.open({ frame, metadata, ...caller }, () => client);
    return { leave: () => client.listener.clientLeft() };
  },
  'for notifications': ({ dialer, deps }, environment) => {
    const links = new CallerLinks(dialer, deps);
    links.send(clientFrame({ method: 'notifications/x' }), { principal: 'ann', environment, headers: undefined });
    return { leave: () => links.close(OVER) };
  },
};

for (const [what, use] of Object.entries(USES)) {
  test(`a dialer is used as long as the link ${what}`, (t) => {
    const bench = setUp();
    const { leave } = use(bench, { A: '1' });
    t.is(bench.made[1]?.dialer.dialed.length, 1);
    bench.clock.advance(IDLE_DIALER_MS - 1);
    leave();
    bench.clock.advance(IDLE_DIALER_MS - 1);
    t.false(bench.made[1]?.isClosed);
    bench.clock.advance(1);
    t.true(bench.made[1]?.isClosed);
  });

  test(`a server that ends counts as no longer used: the link ${what}`, (t) => {
    const bench = setUp();
    const { leave } = use(bench, { A: '1' });
    use(bench, { A: '1' });
    const [first, second] = bench.made[1]?.dialer.dialed ?? [];
    first?.listener.serverClosed(OVER);
    leave();
    bench.clock.advance(IDLE_DIALER_MS - 1);
    second?.listener.serverClosed(OVER);
    bench.clock.advance(IDLE_DIALER_MS - 1);
    t.false(bench.made[1]?.isClosed, 'the second link has ended later');
    bench.clock.advance(1);
    t.true(bench.made[1]?.isClosed);
  });
}

test('a client whose session could not be opened does not use its dialer', (t) => {
  const { dialer, deps, made, clock } = setUp();
  const { sessions } = new Registry({ dialers: dialer, deps });
  const refuse = () => {
    throw OVER;
  };
  t.throws(() => sessions.open(refuse, { ...ALICE, environment: { A: '1' } }));
  clock.advance(IDLE_DIALER_MS);
  t.true(made[1]?.isClosed);
});

test('there are only so many: an idle one is replaced, else the caller has to wait', (t) => {
  const { dialer, made } = setUp();
  for (let n = 0; n < MAX_DIALERS; n += 1) dialer.forCaller({ N: String(n) }).dial(listener());
  t.throws(() => dialer.forCaller({ N: 'more' }).dial(listener()), { code: 'ERR_SESSION_LIMIT' });
  dialer.linkEnded({ N: '7' });
  t.notThrows(() => dialer.forCaller({ N: 'more' }).dial(listener()));
  t.deepEqual(
    made.filter(({ isClosed }) => isClosed).map(({ environment }) => environment),
    [{ N: '7' }],
  );
});
