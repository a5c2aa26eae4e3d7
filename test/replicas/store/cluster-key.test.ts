import test from 'ava';
import { ClusterKey } from '../../../src/replicas/store/cluster-key.ts';

const ONE = 'one key of more than thirty-two characters'.replaceAll(' ', '-');
const OTHER = 'other key of more than thirty-two characters'.replaceAll(' ', '-');

test('opens what it has sealed, in the same context only, and nothing that was changed', (t) => {
  const key = new ClusterKey([ONE]);
  const plain = Buffer.from('session');
  const sealed = key.seal(plain, 'here');
  t.deepEqual(key.open(sealed, 'here'), plain);
  t.is(key.open(sealed, 'there'), undefined);
  t.false(sealed.includes('session'));
  for (let index = 0; index < sealed.length; index += 1) {
    const changed = Buffer.from(sealed);
    changed[index] = (changed[index] ?? 0) ^ 1;
    t.is(key.open(changed, 'here'), undefined);
    t.is(key.open(sealed.subarray(0, index), 'here'), undefined);
  }
});

test('the first key seals, all open', (t) => {
  const sealed = new ClusterKey([ONE]).seal(Buffer.from('x'), '');
  t.truthy(new ClusterKey([OTHER, ONE]).open(sealed, ''));
  t.is(new ClusterKey([OTHER]).open(sealed, ''), undefined);
});
