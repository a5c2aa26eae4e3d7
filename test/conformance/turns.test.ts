import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import { Turns } from './turns.ts';

interface Task {
  readonly done: Promise<string>;
  end(error?: Error): void;
}

/** Tasks that go on until they are told to end, and the names of those that have begun. */
function enqueue(turns: Turns, ...names: string[]) {
  const begun: string[] = [];
  const tasks = names.map((name): Task => {
    const { promise, resolve, reject } = withResolvers();
    const done = turns.run(() => {
      begun.push(name);
      return promise;
    });
    return { done, end: (error) => (error === undefined ? resolve(name) : reject(error)) };
  });
  return { begun, tasks };
}

function withResolvers() {
  let resolve: (value: string) => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<string>((...settle) => {
    [resolve, reject] = settle;
  });
  return { promise, resolve, reject };
}

test('as many tasks run as there may be at a time, the others in their order when one has ended', async (t) => {
  const { begun, tasks } = enqueue(new Turns(2), 'a', 'b', 'c', 'd');
  await nextTurn();
  t.deepEqual(begun, ['a', 'b']);
  tasks[1]?.end();
  t.is(await tasks[1]?.done, 'b');
  await nextTurn();
  t.deepEqual(begun, ['a', 'b', 'c']);
  for (const task of tasks) task.end();
  t.deepEqual(await Promise.all(tasks.map(({ done }) => done)), ['a', 'b', 'c', 'd']);
});

test('a task that fails gives up its turn, and fails for who asked for it', async (t) => {
  const { begun, tasks } = enqueue(new Turns(1), 'a', 'b');
  tasks[0]?.end(new Error('not this one'));
  await t.throwsAsync(async () => tasks[0]?.done, { message: 'not this one' });
  tasks[1]?.end();
  t.is(await tasks[1]?.done, 'b');
  t.deepEqual(begun, ['a', 'b']);
});

test('a turn that nobody waited for is there for who comes later', async (t) => {
  const turns = new Turns(1);
  for (const name of ['a', 'b']) {
    const { tasks } = enqueue(turns, name);
    tasks[0]?.end();
    t.is(await tasks[0]?.done, name);
  }
});
