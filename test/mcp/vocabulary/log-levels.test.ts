import test from 'ava';
import { parseLogLevel, severityOf } from '../../../src/mcp/vocabulary/log-levels.ts';

const LEAST_SEVERE_FIRST = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

test('knows the levels of the specification in their order', (t) => {
  t.deepEqual(
    LEAST_SEVERE_FIRST.map((name) => {
      const level = parseLogLevel(name);
      return level && severityOf(level);
    }),
    [0, 1, 2, 3, 4, 5, 6, 7],
  );
});

test('takes nothing else for a level', (t) => {
  for (const value of ['DEBUG', 'warn', '', 'constructor', '__proto__', 3, null, undefined, ['info'], {}]) {
    t.is(parseLogLevel(value), undefined);
  }
});
