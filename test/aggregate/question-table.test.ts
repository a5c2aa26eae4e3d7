import test from 'ava';
import { QuestionTable } from '../../src/aggregate/legacy/question-table.ts';
import { BridgeError } from '../../src/errors.ts';
import { serverFrame } from '../support/frames.ts';

const question = (id: number | string) => serverFrame({ id, method: 'roots/list' });
const answerTo = (id: number) => serverFrame({ id, result: {} });

test('a server that asks too much is refused, and another one may still ask', (t) => {
  const table = new QuestionTable<string>();
  for (let id = 1; id <= 100; id++) t.false(table.ask('one', question(id)) instanceof BridgeError);
  const refused = table.ask('one', question(101));
  t.regex(refused instanceof BridgeError ? refused.message : '', /100 unanswered requests/);
  t.false(table.ask('two', question(1)) instanceof BridgeError);
  t.is(table.answer(answerTo(1))?.asker, 'one');
  t.false(table.ask('one', question(102)) instanceof BridgeError);
  t.is(table.takeOf('one').length, 100);
  t.false(table.ask('one', question(1)) instanceof BridgeError);
});

test('an answer goes back once, under the id that the server wrote', (t) => {
  const table = new QuestionTable<string>();
  table.ask('one', question('a'));
  const answered = table.answer(answerTo(1));
  t.is(answered?.frame.id, 'a');
  t.is(table.answer(answerTo(1)), undefined);
});
