import test from 'ava';
import { LogLevels } from '../../../../src/relay/shared/legacy/legacy-state.ts';

test('the most verbose level of all clients is the one the server needs', (t) => {
  const levels = new LogLevels<string>();
  t.is(levels.mostVerbose(), undefined);
  levels.set('a', 'error');
  levels.set('b', 'info');
  levels.set('c', 'emergency');
  t.is(levels.mostVerbose(), 'info');
  levels.set('b', 'critical');
  t.is(levels.mostVerbose(), 'error');
  levels.set('a', undefined);
  t.is(levels.mostVerbose(), 'critical');
  levels.set('b', undefined);
  levels.set('c', undefined);
  t.is(levels.mostVerbose(), undefined);
});

test('a client wants what is at least as severe as its level; without one, nothing', (t) => {
  const levels = new LogLevels<string>();
  levels.set('a', 'warning');
  t.false(levels.wants('a', 'notice'));
  t.true(levels.wants('a', 'warning'));
  t.true(levels.wants('a', 'emergency'));
  t.false(levels.wants('b', 'emergency'));
});
