import test from 'ava';
import { QueueSizes } from '../../src/collections/queue-sizes.ts';

test('queues of one name are one, and those that are gone are not there', (t) => {
  const queues = new QueueSizes();
  t.deepEqual(queues.sizes, []);
  const leave = queues.add(() => [{ queue: 'parked', items: 2, bytes: 10 }]);
  queues.add(() => [
    { queue: 'parked', items: 1, bytes: undefined },
    { queue: 'bodies', items: undefined, bytes: 7 },
  ]);
  t.deepEqual(queues.sizes, [
    { queue: 'parked', items: 3, bytes: 10 },
    { queue: 'bodies', items: undefined, bytes: 7 },
  ]);
  leave();
  t.deepEqual(queues.sizes[0], { queue: 'parked', items: 1, bytes: undefined });
});
