import test from 'ava';
import {
  type AnswerForm,
  type AnswerSink,
  createAnswerReader,
  type OversizedText,
} from '../../../src/upstream/remote/answer-reader.ts';

/** What comes of a body that arrives in these pieces. */
function read(form: AnswerForm, ...chunks: readonly string[]) {
  const texts: string[] = [];
  const oversized: OversizedText[] = [];
  const sink: AnswerSink = {
    text: (bytes) => void texts.push(bytes.toString()),
    oversized: (text) => void oversized.push(text),
    retry: () => {},
    endpoint: () => undefined,
  };
  const body = createAnswerReader(form, sink, 20);
  for (const chunk of chunks) body.push(Buffer.from(chunk));
  body.end();
  return { texts, oversized, isStream: body.isStream, lastEventId: body.lastEventId };
}

test('a body is read in the form that its type names', (t) => {
  t.like(read('json', '{"a"', ':1}'), { texts: ['{"a":1}'], isStream: false, lastEventId: undefined });
  t.like(read('events', 'id: 7\ndata: {}\n\n'), { texts: ['{}'], isStream: true, lastEventId: '7' });
});

test('where that says nothing it is read in the form that its first bytes show', (t) => {
  t.like(read('unsure', ' \n', ' [1]'), { texts: ['[1]'.padStart(4)], isStream: false });
  t.like(read('unsure', '\n', ': hello\n', 'data: {}\n\n'), { texts: ['{}'], isStream: true });
});

test('a body without anything in it has no form', (t) => {
  t.deepEqual(read('unsure', ' \n'), { texts: [], oversized: [], isStream: false, lastEventId: undefined });
});

test('what is over the limit is told and not kept', (t) => {
  const json = read('json', '{"a":"', 'x'.repeat(20));
  t.deepEqual(json.texts, []);
  t.like(json.oversized, [{ byteLength: 26, kind: undefined }]);
  const events = read('events', 'data: {"jsonrpc":"2.0","id":7,"method":"m"}\n\n');
  t.deepEqual(events.texts, []);
  t.like(events.oversized, [{ kind: 'request', id: 7 }]);
});
