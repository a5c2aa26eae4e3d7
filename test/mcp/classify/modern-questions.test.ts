import test from 'ava';
import { ModernQuestions } from '../../../src/mcp/classify/modern-questions.ts';
import { collectLog } from '../../process/collected-log.ts';
import { serverFrame } from '../../support/frames.ts';

test('a server that asks what it must not ask is mentioned once, however often and at whatever length it does', (t) => {
  const { log, entries } = collectLog();
  const questions = new ModernQuestions();
  for (let id = 0; id < 100; id++) questions.ignore(serverFrame({ id, method: 'm'.repeat(10_000) }), log);
  const warnings = entries.filter(({ level }) => level > 20);
  t.is(warnings.length, 1);
  t.is(warnings[0]?.method, 'm'.repeat(100));
});
