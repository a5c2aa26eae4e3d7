import test from 'ava';
import { HopPasses, ReplayWindow } from '../../src/cluster/hop-passes.ts';
import { OwnerTags } from '../../src/cluster/owner-tags.ts';
import { ClusterKey } from '../../src/store/cluster-key.ts';

const KEY = new ClusterKey('k'.repeat(40), 'test');
const OTHER_KEY = new ClusterKey('o'.repeat(40), 'test');
const BOTH_KEYS = new ClusterKey(`${'o'.repeat(40)}\n${'k'.repeat(40)}`, 'test');
const REQUEST = { method: 'POST', target: '/mcp?x=1' };

const passesOf = (id: string, key = KEY) => new HopPasses(key, () => [id]);

test('a pass is good once, for one request, at one replica', (t) => {
  const [one, two, three] = [passesOf('one'), passesOf('two'), passesOf('three')];
  const pass = one.issue('two', REQUEST, 'alice@example');
  t.is(three.redeem(pass, REQUEST), undefined);
  t.is(two.redeem(pass, { ...REQUEST, method: 'GET' }), undefined);
  t.is(two.redeem(pass, { ...REQUEST, target: '/mcp' }), undefined);
  t.is(two.redeem(pass, REQUEST), 'alice@example');
  t.is(two.redeem(pass, REQUEST), undefined);
  t.false(Buffer.from(pass.split('.')[2] ?? '', 'base64url').includes('alice'));
});

test('a replica is still known by its former names', (t) => {
  const renamed = new HopPasses(KEY, () => ['new', 'old']);
  const pass = passesOf('one').issue('old', REQUEST, 'alice');
  t.is(renamed.redeem(pass, REQUEST), 'alice');
  t.is(renamed.redeem(pass, REQUEST), undefined);
});

test('a pass of another key, or one that was changed, is none', (t) => {
  const two = passesOf('two');
  t.is(two.redeem(passesOf('one', OTHER_KEY).issue('two', REQUEST, 'alice'), REQUEST), undefined);
  const pass = passesOf('one').issue('two', REQUEST, 'alice');
  for (const changed of [pass.replace('one', 'six'), pass.replace('.0.', '.1.'), pass.slice(0, -2), '', 'x', 'a.1.']) {
    t.is(two.redeem(changed, REQUEST), undefined, changed);
  }
});

test('while a key is exchanged, replicas take passes of the one and of the other', (t) => {
  t.is(passesOf('two', BOTH_KEYS).redeem(passesOf('one').issue('two', REQUEST, 'a'), REQUEST), 'a');
  const onlyNew = passesOf('three', OTHER_KEY);
  t.is(onlyNew.redeem(passesOf('two', BOTH_KEYS).issue('three', REQUEST, 'b'), REQUEST), 'b');
});

test('numbers are taken once each, in any order within the window', (t) => {
  const window = new ReplayWindow();
  for (const number of [5, 3, 4, 0]) t.true(window.take(number));
  for (const number of [5, 3, 4, 0]) t.false(window.take(number));
  t.true(window.take(1_000_000));
  t.true(window.take(1_000_000 - 8191));
  t.false(window.take(1_000_000 - 8192));
  t.false(window.take(1));
  for (let number = 1_000_001; number < 1_020_000; number += 1) t.true(window.take(number));
  t.false(window.take(1_019_000));
});

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
