/** Time that jumps: a machine that slept, a clock that was put back. */
import test, { type ExecutionContext } from 'ava';
import { modernCall, nextCall, postModern } from '../downstream/streamable-stateless/modern-posts.ts';
import { type HttpHarness, seriousLines, startHttpHarness } from '../support/http-harness.ts';
import { call, openStreamable } from '../support/legacy-clients.ts';

const DAY_MS = 24 * 60 * 60_000;
const REQUEST_TIMEOUT_MS = 10_000;
const SESSION_TIMEOUT_MS = 60_000;
/** Longer than any period in which somebody looks at the clock. */
const LOOK_MS = 30_000;

interface Jumpy {
  readonly harness: HttpHarness;
  /** The clock shows another time; no timer has run meanwhile. */
  jump(byMs: number): void;
}

async function startJumpy(t: ExecutionContext): Promise<Jumpy> {
  const harness = await startHttpHarness(t, {
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    sessionTimeoutMs: SESSION_TIMEOUT_MS,
  });
  const { clock } = harness;
  const steady = clock.now.bind(clock);
  let offsetMs = 0;
  clock.now = () => steady() + offsetMs;
  const jump = (byMs: number): void => {
    offsetMs += byMs;
  };
  return { harness, jump };
}

test('clock jumps a day ahead: what is open ends once, with a reason, and the next client is served', async (t) => {
  const { harness, jump } = await startJumpy(t);
  const session = await openStreamable(harness);
  const legacy = session.post(call(1));
  await session.connection.next('tools/call');
  const modern = postModern(harness, modernCall(1));
  await nextCall(harness, 2);
  jump(DAY_MS);
  harness.clock.advance(LOOK_MS);
  for (const answer of [await legacy, await modern]) {
    const texts = (await answer.text()).match(/ERR_[A-Z_]+/g);
    t.deepEqual(texts, ['ERR_UPSTREAM_TIMEOUT']);
  }
  harness.clock.advance(SESSION_TIMEOUT_MS + LOOK_MS);
  t.is((await session.post(call(2))).status, 404);
  const next = await openStreamable(harness);
  const answer = next.post(call(1));
  next.connection.answer(await next.connection.next('tools/call'), { ok: true });
  t.regex(await (await answer).text(), /"ok":true/);
  t.is(harness.modernCalls.size, 0);
  t.deepEqual(seriousLines(harness), [], 'the clients are told; the log says nothing');
});

test('clock jumps a day back: nothing ends before its time, and nothing fails', async (t) => {
  const { harness, jump } = await startJumpy(t);
  jump(DAY_MS);
  const session = await openStreamable(harness);
  const legacy = session.post(call(1));
  const asked = await session.connection.next('tools/call');
  const modern = postModern(harness, modernCall(1));
  const connection = await nextCall(harness, 2);
  jump(-DAY_MS);
  harness.clock.advance(LOOK_MS);
  session.connection.answer(asked, { ok: 1 });
  connection.answer(await connection.next('tools/call'), { resultType: 'complete', ok: 2 });
  t.regex(await (await legacy).text(), /"ok":1/);
  t.regex(await (await modern).text(), /"ok":2/);
  t.is(harness.sessions.size, 1);
  t.is(harness.modernCalls.size, 0);
  t.deepEqual(seriousLines(harness), []);
});
