import test from 'ava';
import { decodeId } from '../../src/wire/decode-id.ts';
import { isNullToken } from '../../src/wire/envelope-members.ts';

const idOf = (token: string) => {
  const bytes = Buffer.from(`[${token}]`);
  return decodeId(bytes, 1, 1 + Buffer.byteLength(token));
};

test('an id is a string, or an integer that a double holds exactly', (t) => {
  t.is(idOf('7'), 7);
  t.is(idOf('-7'), -7);
  t.is(idOf('9007199254740991'), Number.MAX_SAFE_INTEGER);
  t.is(idOf('"\\u00e9"'), 'é');
});

for (const token of ['', '-', '1.0', '1e3', '+1', '0x1', '9007199254740992', '00000000000000000007', 'null']) {
  test(`no id: ${JSON.stringify(token)}`, (t) => {
    t.is(idOf(token), undefined);
  });
}

test('null is known by its first letter and its length', (t) => {
  const tokens = Buffer.from('null nil 1234');
  t.true(isNullToken(tokens, 0, 4));
  t.false(isNullToken(tokens, 5, 8));
  t.false(isNullToken(tokens, 9, 13));
});
