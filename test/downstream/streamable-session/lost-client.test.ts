import test from 'ava';
import { startHttpHarness } from '../../support/http-harness.ts';
import { call, openStreamable } from '../../support/legacy-clients.ts';
import { waitFor } from '../../support/wait-for.ts';

const STREAM_FIRST = { Accept: 'text/event-stream, application/json' };

test('the lane of a call tells since when its client has had no connection, until it has one again', async (t) => {
  const { clock, ...harness } = await startHttpHarness(t);
  const session = await openStreamable({ clock, ...harness });
  const { connection } = session;
  const [first, second] = [
    (await session.post(call(1), STREAM_FIRST)).events(),
    (await session.post(call(2), STREAM_FIRST)).events(),
  ];
  await connection.next('tools/call');
  await connection.next('tools/call');
  const lanes = connection.calls.slice(-2).map((open) => open?.lane);
  const lostAt = () => lanes.map((lane) => lane?.lostAtMs);
  const closedResponses = () => harness.logLines.filter((line) => line.includes('"method":"POST"')).length;
  const before = closedResponses();
  clock.advance(1000);
  first.leave();
  await waitFor(() => closedResponses() > before, { message: 'the end of the first response' });
  t.deepEqual(lostAt(), [undefined, undefined], 'one of them will do');
  clock.advance(1000);
  second.leave();
  await waitFor(() => lanes[0]?.lostAtMs !== undefined, { message: 'the end of the second response' });
  t.deepEqual(lostAt(), [clock.now(), clock.now()]);
  const stream = (await session.get()).events();
  t.deepEqual(lostAt(), [undefined, undefined]);
  stream.leave();
});
