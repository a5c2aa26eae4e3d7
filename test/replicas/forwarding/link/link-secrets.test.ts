import test from 'ava';
import { LinkSecrets } from '../../../../src/replicas/forwarding/link/link-secrets.ts';
import { ClusterKey } from '../../../../src/replicas/store/cluster-key.ts';

const KEY = new ClusterKey(['k'.repeat(40)]);
const OTHER_KEY = new ClusterKey(['o'.repeat(40)]);
const BOTH_KEYS = new ClusterKey(['o'.repeat(40), 'k'.repeat(40)]);

const secretsOf = (id: string, key = KEY) => new LinkSecrets(key, () => [id]);

/** What the owner says to the offer; fails the test when it refuses it. */
function accept(owner: LinkSecrets, offer: string) {
  const answer = owner.answer(offer);
  if (answer.kind !== 'accepted') throw new Error(`the offer was ${answer.kind}`);
  return answer;
}

test('both ends of a link get the same key', (t) => {
  const offer = secretsOf('one').offer('two');
  const answer = accept(secretsOf('two'), offer.text);
  const verdict = offer.judge(answer.text);
  t.deepEqual(verdict, { kind: 'accepted', key: answer.key });
  t.is(answer.key.length, 32);
});

test('no two links have the same key, even if the same offer is made twice', (t) => {
  const offer = secretsOf('one').offer('two');
  const [first, second] = [accept(secretsOf('two'), offer.text), accept(secretsOf('two'), offer.text)];
  const third = accept(secretsOf('two'), secretsOf('one').offer('two').text);
  t.is(new Set([first, second, third].map(({ key }) => key.toString('hex'))).size, 3);
});

test('an offer without the cluster key, or one that was changed, is refused', (t) => {
  const two = secretsOf('two');
  t.is(two.answer(secretsOf('one', OTHER_KEY).offer('two').text).kind, 'invalid');
  const { text } = secretsOf('one').offer('two');
  const [entry = '', owner = '', nonce = '', proof = ''] = text.split('.');
  const otherNonce = secretsOf('one').offer('two').text.split('.')[2] ?? '';
  for (const changed of [
    ['six', owner, nonce, proof],
    [entry, 'six', nonce, proof],
    [entry, owner, otherNonce, proof],
    [entry, owner, nonce, otherNonce],
    [entry, owner, nonce, proof.slice(1)],
    [entry, owner, nonce],
    [entry, owner, nonce, proof, ''],
  ]) {
    t.is(two.answer(changed.join('.')).kind, 'invalid', changed.join('.'));
  }
  for (const foreign of ['', '...', 'x', 'x'.repeat(100_000)]) t.is(two.answer(foreign).kind, 'invalid');
});

test('an answer to another offer, of nobody who has the key, or one that was changed, is not taken', (t) => {
  const [one, two] = [secretsOf('one'), secretsOf('two')];
  const offer = one.offer('two');
  const { text } = accept(two, offer.text);
  t.is(one.offer('two').judge(text).kind, 'invalid');
  const [nonce = '', proof = ''] = text.split('.');
  const otherNonce = accept(two, offer.text).text.split('.')[0] ?? '';
  for (const changed of [`${otherNonce}.${proof}`, `${nonce}.${otherNonce}`, nonce, '', '.', `${text}.`]) {
    t.is(offer.judge(changed).kind, 'invalid', changed);
  }
  t.is(offer.judge(text).kind, 'accepted');
});

test('a replica that is not the run that was meant proves that it is another one', (t) => {
  const offer = secretsOf('one').offer('two');
  const answer = secretsOf('three').answer(offer.text);
  t.is(answer.kind, 'not-here');
  t.is(offer.judge(answer.kind === 'not-here' ? answer.text : '').kind, 'not-here');
  t.is(
    secretsOf('one')
      .offer('two')
      .judge(answer.kind === 'not-here' ? answer.text : '').kind,
    'invalid',
  );
});

test('a replica is still known by its former names', (t) => {
  const renamed = new LinkSecrets(KEY, () => ['new', 'old']);
  t.is(renamed.answer(secretsOf('one').offer('old').text).kind, 'accepted');
});

test('while a key is exchanged, replicas open links with the one and with the other', (t) => {
  const pairs = [
    [KEY, BOTH_KEYS],
    [BOTH_KEYS, OTHER_KEY],
    [OTHER_KEY, BOTH_KEYS],
  ] as const;
  for (const [entryKey, ownerKey] of pairs) {
    const offer = secretsOf('one', entryKey).offer('two');
    const answer = accept(secretsOf('two', ownerKey), offer.text);
    t.deepEqual(offer.judge(answer.text), { kind: 'accepted', key: answer.key });
  }
});
