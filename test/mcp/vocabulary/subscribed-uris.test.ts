import test from 'ava';
import { MAX_SUBSCRIBED, MAX_SUBSCRIBED_LENGTH, SubscribedUris } from '../../../src/mcp/vocabulary/subscribed-uris.ts';

test('a client may subscribe to so many resources, and again to those it has', (t) => {
  const uris = new SubscribedUris();
  for (let n = 0; n < MAX_SUBSCRIBED; n += 1) t.true(uris.add(`file:///${n}`));
  t.false(uris.add('file:///more'));
  t.true(uris.add('file:///0'));
  t.true(uris.delete('file:///0'));
  t.false(uris.delete('file:///0'));
  t.true(uris.add('file:///more'));
  t.is(uris.size, MAX_SUBSCRIBED);
});

test('their URIs have so many characters together', (t) => {
  const uris = new SubscribedUris();
  const half = 'x'.repeat(MAX_SUBSCRIBED_LENGTH / 2);
  t.true(uris.add(`${half.slice(1)}1`));
  t.true(uris.add(`${half.slice(1)}2`));
  t.false(uris.add('y'));
  uris.delete(`${half.slice(1)}1`);
  t.true(uris.add('y'));
  uris.clear();
  t.deepEqual([...uris], []);
  t.true(uris.add(half + half));
});
