import test from 'ava';
import { OwnerTags } from '../../../src/replicas/ownership/owner-tags.ts';
import { ClusterKey } from '../../../src/replicas/store/cluster-key.ts';

const KEY = new ClusterKey(['k'.repeat(40)]);
const OTHER_KEY = new ClusterKey(['o'.repeat(40)]);
const BOTH_KEYS = new ClusterKey(['o'.repeat(40), 'k'.repeat(40)]);

test('an id tells replicas whose it is, and nobody else anything', (t) => {
  const owner = { id: 'replica-1', address: 'http://10.0.0.5:8000' };
  const tags = new OwnerTags(KEY);
  const id = tags.join('random', tags.seal(owner));
  t.deepEqual(new OwnerTags(KEY).ownerOf(id), owner);
  t.deepEqual(new OwnerTags(BOTH_KEYS).ownerOf(id), owner);
  t.is(new OwnerTags(OTHER_KEY).ownerOf(id), undefined);
  t.false(Buffer.from(id.split('.')[1] ?? '', 'base64url').includes('10.0.0.5'));
  for (const foreign of ['', 'plain', 'a.b', `x.${'y'.repeat(5000)}`]) t.is(tags.ownerOf(foreign), undefined);
  t.regex(id, /^[\x21-\x7e]+$/);
});
