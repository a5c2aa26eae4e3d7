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

test('the more verbose of two held levels counts like one of a client, until it is released', (t) => {
  const levels = new LogLevels<string>();
  levels.hold('info');
  levels.hold('error');
  t.is(levels.mostVerbose(), 'info');
  levels.set('a', 'debug');
  t.is(levels.mostVerbose(), 'debug');
  levels.set('a', 'warning');
  levels.release();
  t.is(levels.mostVerbose(), 'warning');
});
