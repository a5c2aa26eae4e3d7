import test from 'ava';
import { separateMessages } from '../../src/wire/separate-messages.ts';
import { serverFrame } from '../support/frames.ts';

const answer = (id: number, text = 'x') => `{"jsonrpc":"2.0","id":${id},"result":{"text":${JSON.stringify(text)}}}`;
const separate = (text: string) => separateMessages(serverFrame(text))?.map(({ bytes }) => bytes.toString());

test('one message is one message, whatever its strings hold', (t) => {
  for (const text of ['x', '}{', '} {', `${answer(2)}${answer(3)}`, '\\"}{']) {
    t.is(separate(answer(1, text)), undefined, text);
  }
});

for (const [title, seam] of [
  ['nothing', ''],
  ['a space', ' '],
] as const) {
  test(`messages with ${title} between them are taken apart`, (t) => {
    const all = [answer(1, '}{'), '{"jsonrpc":"2.0","method":"notifications/x"}', answer(2)];
    t.deepEqual(separate(all.join(seam)), all);
  });
}

test('what is no message is left out, and so is what has no end', (t) => {
  t.deepEqual(separate(`${answer(1)}{"level":"info"}${answer(2)}`), [answer(1), answer(2)]);
  t.deepEqual(separate(`${answer(1)}{"jsonrpc":"2.0","id":2,"result":{"a":"}`), [answer(1)]);
  t.deepEqual(separate(`${answer(1)}{} x ${answer(2)}`), [answer(1)]);
});
