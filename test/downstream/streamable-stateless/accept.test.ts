/** Modern clients that read answers of one type only. */
import test from 'ava';
import { COMMIT_AFTER_MS } from '../../../src/downstream/streamable-session/post-lane.ts';
import { startHttpHarness } from '../../support/http-harness.ts';
import { listen, modernCall, nextCall, postModern, type RpcBody } from './modern-posts.ts';

const ONLY_JSON = { Accept: 'application/json' };

test('a long call with progress stays JSON for a client that reads only JSON', async (t) => {
  const harness = await startHttpHarness(t);
  const pending = postModern(harness, modernCall(1, 'work', { progressToken: 7 }), ONLY_JSON);
  const link = await nextCall(harness, 1);
  link.notify('notifications/progress', { progressToken: 7, progress: 1 });
  harness.clock.advance(COMMIT_AFTER_MS * 2);
  link.answer(await link.next('tools/call'), { done: true });
  const answer = await pending;
  t.is(answer.headers['content-type'], 'application/json');
  t.deepEqual((await answer.json<RpcBody>()).result, { done: true });
});

test('a subscription of a client that reads only JSON is refused with the way out', async (t) => {
  const harness = await startHttpHarness(t);
  const answer = await postModern(harness, listen(3), ONLY_JSON);
  t.is(answer.status, 406);
  const { id, error } = await answer.json<RpcBody>();
  t.is(id, 3);
  t.regex(error?.message ?? '', /list text\/event-stream/);
  t.is(harness.server.connections.length, 0);
});
