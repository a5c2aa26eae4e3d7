import test from 'ava';
import { encodeComment, encodeEvent, encodePriming, encodeRetry } from '../../src/wire/sse-encode.ts';

test('writes an event with the fields it is given', (t) => {
  const data = Buffer.from('{"text":"é"}');
  t.is(encodeEvent({ data }).toString(), 'data: {"text":"é"}\n\n');
  t.is(encodeEvent({ event: 'message', data }).toString(), 'event: message\ndata: {"text":"é"}\n\n');
  t.is(encodeEvent({ event: 'é', id: '7', data }).toString(), 'event: é\nid: 7\ndata: {"text":"é"}\n\n');
});

test('writes a comment and a retry time', (t) => {
  t.is(encodeComment('keep-alive').toString(), ': keep-alive\n\n');
  t.is(encodeRetry(1500).toString(), 'retry: 1500\n\n');
});

test('writes a priming event with an id and empty data', (t) => {
  t.is(encodePriming('s-1').toString(), 'id: s-1\ndata:\n\n');
  t.is(encodePriming('s-1', 3000).toString(), 'id: s-1\nretry: 3000\ndata:\n\n');
});
