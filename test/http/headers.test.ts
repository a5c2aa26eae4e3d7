import test from 'ava';
import { type AnswerType, acceptsStream, isJson, readAccept } from '../../src/http/headers.ts';

test('knows JSON with and without parameters, in any case', (t) => {
  for (const type of [
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON ;x=1',
    'application/json, application/json; charset=utf-8',
  ]) {
    t.true(isJson(type), type);
  }
  for (const type of [
    undefined,
    '',
    'text/json',
    'application/jsonp',
    'application/json-seq',
    'text/plain; application/json',
    'application/json, text/plain',
    'application/json; charset=utf-8, text/plain',
    'text/plain, application/json',
  ]) {
    t.false(isJson(type), type);
  }
});

const accept = test.macro({
  title: (_, header: string | undefined) => `reads Accept: ${header ?? '(absent)'}`,
  exec(t, header: string | undefined, expected: AnswerType) {
    t.is(readAccept(header), expected);
    t.is(acceptsStream(header), expected === 'json' || expected === 'stream');
  },
});

test(accept, undefined, 'json');
test(accept, '', 'neither');
test(accept, 'application/json, text/event-stream', 'json');
test(accept, 'text/event-stream, application/json', 'stream');
test(accept, 'text/event-stream,application/json', 'stream');
test(accept, 'Application/JSON, Text/Event-Stream', 'json');
test(accept, '*/*', 'json');
test(accept, 'application/*, text/*', 'json');
test(accept, 'text/*, application/*', 'stream');
test(accept, 'application/json', 'only-json');
test(accept, 'text/event-stream', 'stream');
test(accept, 'text/html, image/png', 'neither');
test(accept, 'application/json;charset=utf-8, text/event-stream; x=1', 'json');
test(accept, 'text/event-stream;q=0, application/json', 'only-json');
test(accept, 'application/json;q=0.000, text/event-stream', 'stream');
test(accept, 'application/json;q=0;x=1, text/event-stream', 'stream');
// The heavier one, wherever it stands; order decides between equals only.
test(accept, 'application/json;q=0.5, text/event-stream', 'stream');
test(accept, 'text/event-stream;q=0.5, application/json', 'json');
test(accept, 'text/event-stream;q=0.9, application/json; Q=0.90', 'stream');
// The most specific range speaks for a type.
test(accept, '*/*, application/json;q=0', 'stream');
test(accept, 'text/event-stream;q=0, */*', 'only-json');
test(accept, '*/*;q=0.1, application/json', 'json');
test(accept, 'text/event-stream, */*;q=0.1', 'stream');
