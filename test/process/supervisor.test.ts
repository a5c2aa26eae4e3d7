import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { CRASH_LOOP_FAILURES, RestartPolicy } from '../../src/process/supervisor.ts';
import { FakeClock } from '../support/fake-clock.ts';

const crash = new BridgeError('ERR_UPSTREAM_EXITED', 'exited with code 1');

function createPolicy(random = () => 1): { policy: RestartPolicy; clock: FakeClock } {
  const clock = new FakeClock();
  return { policy: new RestartPolicy({ name: 'node server.js', clock, random, noted: () => {} }), clock };
}

function crashTimes(policy: RestartPolicy, times: number): void {
  for (let time = 0; time < times; time++) {
    policy.started();
    policy.failed(crash, false);
  }
}

const delays: readonly (readonly [failures: number, delayMs: number])[] = [
  [0, 0],
  [1, 250],
  [2, 500],
  [3, 1000],
  [4, 2000],
  [5, 4000],
  [7, 16_000],
  [8, 30_000],
  [60, 30_000],
];
for (const [failures, delayMs] of delays) {
  test(`asks for ${delayMs} ms of patience after ${failures} failures in a row`, (t) => {
    const { policy, clock } = createPolicy();
    for (let failure = 0; failure < failures; failure++) {
      policy.started();
      policy.failed(crash, false);
      clock.advance(30_000);
    }
    t.is(policy.delayMs(), delayMs);
  });
}

test('lets chance take away up to half of a delay', (t) => {
  const { policy } = createPolicy(() => 0);
  crashTimes(policy, 3);
  t.is(policy.delayMs(), 500);
});

test('is ready until the failures in a row make a crash loop', (t) => {
  const { policy } = createPolicy();
  crashTimes(policy, CRASH_LOOP_FAILURES - 1);
  t.is(policy.refusal(), undefined);
  crashTimes(policy, 1);
  t.truthy(policy.refusal());
});

test('allows a start at once when the server was changed, and tells of the failure until a child answers', (t) => {
  const { policy } = createPolicy();
  crashTimes(policy, CRASH_LOOP_FAILURES);
  policy.changed();
  t.is(policy.refusal(), undefined);
  t.is(policy.delayMs(), 0);
  t.is(policy.attempt?.failure, crash);
});

test('tells of the last failure from the first one on, until a child answers', (t) => {
  const { policy, clock } = createPolicy();
  t.is(policy.attempt?.failure, undefined);
  crashTimes(policy, 1);
  clock.advance(3_600_000);
  t.is(policy.attempt?.failure, crash);
  policy.served();
  t.is(policy.attempt?.failure, undefined);
  policy.failed(crash, true);
  t.is(policy.attempt?.failure, undefined, 'it can run: it has served');
  const silent = new BridgeError('ERR_UPSTREAM_TIMEOUT', 'no answer');
  for (let time = 0; time < CRASH_LOOP_FAILURES; time++) policy.unanswered(silent);
  t.is(policy.attempt?.failure, silent);
  t.is(policy.refusal(), undefined, 'silence is no crash');
});

test('refuses starts in a crash loop with the time to wait and the last failure', (t) => {
  const { policy, clock } = createPolicy();
  crashTimes(policy, CRASH_LOOP_FAILURES);
  clock.advance(1500);
  const error = t.throws(() => policy.started(), { instanceOf: BridgeError });
  t.is(error?.code, 'ERR_UPSTREAM_CRASH_LOOP');
  t.is(error?.retryAfterMs, 2500);
  t.regex(error?.message ?? '', /"node server.js" failed 5 times .* another 3 s\. Last failure: exited with code 1/);
});

test('lets one start through per delay while in a crash loop', (t) => {
  const { policy, clock } = createPolicy();
  crashTimes(policy, CRASH_LOOP_FAILURES);
  clock.advance(4000);
  t.is(policy.refusal(), undefined);
  t.notThrows(() => policy.started());
  t.throws(() => policy.started(), { instanceOf: BridgeError });
  policy.failed(crash, false);
  t.is(policy.refusal()?.retryAfterMs, 8000);
});

test('leaves the crash loop with the first answer of any child', (t) => {
  const { policy, clock } = createPolicy();
  crashTimes(policy, CRASH_LOOP_FAILURES);
  clock.advance(4000);
  policy.started();
  policy.served();
  t.is(policy.refusal(), undefined);
  t.is(policy.delayMs(), 0);
});

test('counts anew after an answer', (t) => {
  const { policy } = createPolicy();
  crashTimes(policy, CRASH_LOOP_FAILURES - 1);
  policy.served();
  crashTimes(policy, CRASH_LOOP_FAILURES - 1);
  t.is(policy.refusal(), undefined);
});

test('takes no number of crashes after answers for a crash loop, but asks for a short delay', (t) => {
  const { policy } = createPolicy();
  for (let child = 0; child < 20; child++) policy.failed(crash, true);
  t.is(policy.refusal(), undefined);
  t.is(policy.delayMs(), 250);
});

test('a crash of a child that had answered does not end or prolong a crash loop', (t) => {
  const { policy } = createPolicy();
  crashTimes(policy, CRASH_LOOP_FAILURES);
  policy.failed(crash, true);
  t.is(policy.refusal()?.retryAfterMs, 4000);
});

test('a crash of a child that had answered does not shorten the delay after others that had not', (t) => {
  const { policy } = createPolicy();
  crashTimes(policy, 3);
  policy.failed(crash, true);
  t.is(policy.delayMs(), 1000);
});

test('each start that fails and each answer is noted, but not the end of a child that had answered', (t) => {
  const outcomes: string[] = [];
  const noted = (outcome: string) => void outcomes.push(outcome);
  const policy = new RestartPolicy({ name: 'server', clock: new FakeClock(), random: () => 1, noted });
  policy.failed(crash, false);
  policy.unanswered(crash);
  policy.served();
  policy.failed(crash, true);
  t.deepEqual(outcomes, ['failed', 'failed', 'served']);
});
