import test from 'ava';
import fc from 'fast-check';
import { mayBytesHoldSecret, mayHoldSecret } from '../../src/recording/secret-signs.ts';

const inBoth = (text: string): readonly boolean[] => [mayHoldSecret(text), mayBytesHoldSecret(Buffer.from(text))];

test('a sign is found at any place, in any mix of small and capital letters', (t) => {
  for (const sign of [
    'token',
    'secret',
    'KEY',
    'requestState',
    'Bearer',
    '://',
    '\\u0',
    '\\uF',
    'eyJ',
    'ghp_',
    'AKIA',
    'SG.',
  ]) {
    for (const written of [sign, sign.toLowerCase(), sign.toUpperCase()]) {
      for (const text of [written, `${written}ü`, `x${written}`, `ü${written}`, `☃${written}☃`, `to${written}`]) {
        t.deepEqual(inBoth(text), [true, true], text);
      }
    }
  }
});

test('prose, parts of signs and the token of a progress are no signs', (t) => {
  for (const text of [
    '',
    'the quick brown fox',
    'toke',
    'oken',
    'ecret',
    'ghp',
    '\\user',
    '{"progressToken":1}',
    'ŴůŨťŮ',
    'to\u{12b}en',
  ]) {
    t.deepEqual(inBoth(text), [false, false], text);
  }
});

test('a text and its bytes have the same signs', (t) => {
  const pieces = fc.constantFrom(
    'to',
    'k',
    'K',
    'en',
    'ke',
    'y',
    ':',
    '//',
    '\\',
    'u',
    '0',
    'ü',
    '\u{16b}',
    '☃',
    '\u{1f600}',
    ' ',
    'progress',
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
      const text = parts.join('');
      const isExpected = /key|:\/\/|:\\\/|\\u[0-9a-f]|(?<!progress)token/i.test(text.replaceAll(/[^\0-\x7f]/g, '\0'));
      t.deepEqual(inBoth(text), [isExpected, isExpected], text);
    }),
    { numRuns: 3000 },
  );
});
