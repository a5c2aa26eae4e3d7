import test from 'ava';
import { isJson, parseAccept } from '../../src/http/headers.ts';

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
  exec(t, header: string | undefined, expected: string) {
    const { json, eventStream, prefersEventStream } = parseAccept(header);
    const read = [json && 'json', eventStream && 'stream', prefersEventStream && 'prefers stream'];
    t.is(read.filter(Boolean).join(', '), expected);
  },
});

test(accept, undefined, 'json, stream');
test(accept, '', '');
test(accept, 'application/json, text/event-stream', 'json, stream');
test(accept, 'text/event-stream, application/json', 'json, stream, prefers stream');
test(accept, 'text/event-stream,application/json', 'json, stream, prefers stream');
test(accept, 'Application/JSON, Text/Event-Stream', 'json, stream');
test(accept, '*/*', 'json, stream');
test(accept, 'application/*, text/*', 'json, stream');
test(accept, 'text/*, application/*', 'json, stream, prefers stream');
test(accept, 'application/json', 'json');
test(accept, 'text/event-stream', 'stream, prefers stream');
test(accept, 'text/html, image/png', '');
test(accept, 'application/json;charset=utf-8, text/event-stream; x=1', 'json, stream');
test(accept, 'text/event-stream;q=0, application/json', 'json');
test(accept, 'application/json;q=0.000, text/event-stream', 'stream, prefers stream');
test(accept, 'application/json;q=0;x=1, text/event-stream', 'stream, prefers stream');
// The heavier one, wherever it stands; order decides between equals only.
test(accept, 'application/json;q=0.5, text/event-stream', 'json, stream, prefers stream');
test(accept, 'text/event-stream;q=0.5, application/json', 'json, stream');
test(accept, 'text/event-stream;q=0.9, application/json; Q=0.90', 'json, stream, prefers stream');
// The most specific range speaks for a type.
test(accept, '*/*, application/json;q=0', 'stream, prefers stream');
test(accept, 'text/event-stream;q=0, */*', 'json');
test(accept, '*/*;q=0.1, application/json', 'json, stream');
test(accept, 'text/event-stream, */*;q=0.1', 'json, stream, prefers stream');
