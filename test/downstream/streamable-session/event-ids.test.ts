import test from 'ava';
import fc from 'fast-check';
import { eventIdPrefix, parseEventId } from '../../../src/downstream/streamable-session/event-ids.ts';

const anyPosition = fc.record({ stream: fc.nat(), sequence: fc.integer({ min: 1, max: 1e9 }) });

test('event ids are visible ASCII and read back as what they were made of', (t) => {
  t.is(`${eventIdPrefix(0)}1`, '0-1');
  fc.assert(
    fc.property(anyPosition, fc.option(fc.oneof(fc.integer(), fc.string({ maxLength: 12 }))), (position, request) => {
      const id = `${eventIdPrefix(position.stream, request ?? undefined)}${position.sequence}`;
      t.regex(id, /^[\x21-\x7e]+$/);
      t.deepEqual(parseEventId(id), { ...position, request: request ?? undefined });
    }),
  );
});

test('the id of a request that is long is no part of event ids', (t) => {
  t.is(eventIdPrefix(3, 'x'.repeat(46)).length, '3.-'.length + 64);
  t.is(eventIdPrefix(3, 'x'.repeat(47)), '3-');
});

test('what is named in place of a request, and is no id of one, names none', (t) => {
  for (const text of ['null', '{}', '[1]', '1e400', 'true', 'not JSON']) {
    const id = `1.${Buffer.from(text).toString('base64url')}-2`;
    t.deepEqual(parseEventId(id), { stream: 1, sequence: 2, request: undefined }, text);
  }
});

for (const id of [
  '',
  '1',
  '1-',
  '-1',
  '1-x',
  ' 1-1',
  '1-1 ',
  '1-1-1',
  '1.-1',
  '1.a b-1',
  `1.${'a'.repeat(65)}-1`,
  '1e3-1',
  '-1-1',
  '1-0',
  '01-1',
  '1-01',
  `${'9'.repeat(16)}-1`,
]) {
  test(`refuses ${JSON.stringify(id)} as an event id`, (t) => {
    t.is(parseEventId(id), undefined);
  });
}

test('a position that is larger than a stored one can be is none', (t) => {
  t.is(parseEventId('0-999999999999999'), undefined);
  t.is(parseEventId('999999999999999-1'), undefined);
  t.deepEqual(parseEventId('0-99999999999999'), {
    stream: 0,
    sequence: 99_999_999_999_999,
    request: undefined,
  });
  t.true(99_999_999_999_999 < 2 ** 48);
});
