import test from 'ava';
import fc from 'fast-check';
import { joinMembers } from '../../src/wire/write-message.ts';
import { anyJson, anyText } from './json-text.ts';

test('makes one object of JSON texts', (t) => {
  fc.assert(
    fc.property(fc.dictionary(anyText, anyJson, { maxKeys: 4 }), (object) => {
      const members = new Map(Object.entries(object).map(([key, value]) => [key, Buffer.from(JSON.stringify(value))]));
      t.is(joinMembers(members).toString(), JSON.stringify(object));
    }),
  );
});
