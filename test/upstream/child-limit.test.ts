import test from 'ava';
import { ChildLimit } from '../../src/upstream/child-limit.ts';

test('counts a process until nothing of it runs any more', async (t) => {
  const limit = new ChildLimit(2);
  let end = (): void => undefined;
  limit.add(new Promise((resolve) => (end = resolve)));
  t.notThrows(() => limit.check());
  limit.add(new Promise(() => undefined));
  const error = t.throws(() => limit.check(), { message: /^2 server processes run.*--max-children/ });
  t.like(error, { code: 'ERR_SESSION_LIMIT', retryAfterMs: 1000 });
  end();
  await Promise.resolve();
  t.notThrows(() => limit.check());
});
