import test from 'ava';
import { pino } from 'pino';
import { createSystemDeps } from '../../src/cli/system-deps.ts';

test('ids are 128 bits that nobody can guess: no two are alike, however many are taken', (t) => {
  const { randomId } = createSystemDeps(pino({ level: 'silent' }));
  const ids = Array.from({ length: 10_000 }, randomId);
  t.is(new Set(ids).size, ids.length);
  for (const id of ids) t.is(Buffer.from(id, 'base64url').length, 16);
  // Of so many random bits about half are set.
  const bits = Buffer.from(ids.join(''), 'base64url').reduce(
    (sum, byte) => sum + byte.toString(2).replaceAll('0', '').length,
    0,
  );
  t.true(Math.abs(bits / (ids.length * 128) - 0.5) < 0.01);
});
