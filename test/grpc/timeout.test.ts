import test from 'ava';
import { parseTimeout } from '../../src/grpc/timeout.ts';

test('every unit of a timeout is read', (t) => {
  const timeouts = { '2H': 7_200_000, '3M': 180_000, '30S': 30_000, '250m': 250, '1500u': 2, '1n': 1, '0S': 0 };
  for (const [text, ms] of Object.entries(timeouts)) t.is(parseTimeout(text), ms, text);
});

test('a deadline that no timer can wait for is none', (t) => {
  t.is(parseTimeout('99999999H'), undefined);
  t.is(parseTimeout(undefined), undefined);
});

test('any other form is invalid', (t) => {
  for (const text of ['', '5', 'S', '-1S', '1.5S', '123456789S', '5s', '5 S', ['5S'], 5]) {
    t.is(parseTimeout(text), 'invalid', String(text));
  }
});
