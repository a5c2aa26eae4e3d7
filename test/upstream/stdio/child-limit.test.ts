import test from 'ava';
import { SharedCapacity } from '../../../src/collections/shared-capacity.ts';
import { ChildLimit, type CountedChild } from '../../../src/upstream/stdio/child-limit.ts';

class RunningProcess implements CountedChild {
  isEnding = false;
  hasFailed = false;
  vanish = (): void => {};
  readonly gone = new Promise<void>((resolve) => {
    this.vanish = resolve;
  });
}

function start(limit: ChildLimit): RunningProcess {
  const child = new RunningProcess();
  limit.reserve().fill(child);
  return child;
}

test('counts a process until nothing of it runs anymore', async (t) => {
  const limit = new ChildLimit(2);
  const first = start(limit);
  start(limit);
  const error = t.throws(() => limit.reserve(), { message: /^2 server processes run.*--max-children/ });
  t.like(error, { code: 'ERR_SESSION_LIMIT', retryAfterMs: 1000 });
  first.vanish();
  await first.gone;
  t.is(limit.reserve().free, undefined);
});

test('counts a slot that is held for a process, until it is released', (t) => {
  const limit = new ChildLimit(1);
  const slot = limit.reserve();
  t.throws(() => limit.reserve());
  slot.release();
  slot.release();
  limit.reserve();
  t.throws(() => limit.reserve(), undefined, 'released once');
});

test('promises the slot of a process that is ending to one that waits, and not to two', async (t) => {
  const limit = new ChildLimit(2);
  const ending = start(limit);
  start(limit);
  ending.isEnding = true;
  const slot = limit.reserve();
  t.throws(() => limit.reserve(), { code: 'ERR_SESSION_LIMIT' });
  ending.vanish();
  await slot.free;
  t.throws(() => limit.reserve(), { code: 'ERR_SESSION_LIMIT' }, 'it is held');
  slot.fill(new RunningProcess());
  t.throws(() => limit.reserve(), { code: 'ERR_SESSION_LIMIT' });
});

test('those who wait get their slots in turn, and who leaves gives up its own', async (t) => {
  const limit = new ChildLimit(2);
  const children = [start(limit), start(limit)];
  for (const child of children) child.isEnding = true;
  const [first, second] = [limit.reserve(), limit.reserve()];
  first.release();
  const third = limit.reserve();
  const order: string[] = [];
  const told = [second.free?.then(() => order.push('second')), third.free?.then(() => order.push('third'))];
  children[1]?.vanish();
  await told[0];
  t.deepEqual(order, ['second']);
  children[0]?.vanish();
  await told[1];
  t.deepEqual(order, ['second', 'third']);
});

test('a slot that became free for who has left meanwhile goes to the next one', async (t) => {
  const limit = new ChildLimit(1);
  const child = start(limit);
  child.isEnding = true;
  const slot = limit.reserve();
  child.vanish();
  await slot.free;
  slot.release();
  t.is(limit.reserve().free, undefined);
});

test('leaves the processes of other servers their part of the machine, and takes it back when they have gone', async (t) => {
  const machine = new SharedCapacity(8);
  const [greedy, modest] = [new ChildLimit(100, machine.share()), new ChildLimit(100, machine.share())];
  const children = Array.from({ length: 6 }, () => start(greedy));
  t.throws(() => greedy.reserve(), { message: /^6 server processes run/ });
  start(modest);
  start(modest);
  t.throws(() => modest.reserve(), { message: /^2 server processes run/ });
  children[0]?.vanish();
  await children[0]?.gone;
  start(modest);
  t.throws(() => greedy.reserve());
});

test('counts the processes that failed, and not those that were told to end', async (t) => {
  const limit = new ChildLimit(2);
  for (const hasFailed of [true, false]) {
    const child = start(limit);
    child.isEnding = true;
    child.hasFailed = hasFailed;
    child.vanish();
    await child.gone;
    t.is(limit.failed, 1);
  }
});
