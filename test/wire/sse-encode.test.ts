import test from 'ava';
import {
  encodeComment,
  encodeEvent,
  encodeEvents,
  encodeNumberedEvents,
  encodePriming,
  encodeRetry,
  skipEvents,
} from '../../src/wire/sse-encode.ts';

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

const LINES = ['{"text":"é"}', '', `"${'x'.repeat(5000)}"`, '1'].map((text) => Buffer.from(text));

test('several events in one buffer are what they would be one by one', (t) => {
  const single = LINES.map((data) => encodeEvent({ event: 'message', data }));
  t.deepEqual(encodeEvents(LINES), Buffer.concat(single));
  t.is(encodeEvents([]).length, 0);
  for (const first of [1, 8, 99, 1_000_000]) {
    const numbered = LINES.map((data, index) => encodeEvent({ event: 'message', id: `7-${first + index}`, data }));
    t.deepEqual(encodeNumberedEvents('7-', first, LINES), Buffer.concat(numbered));
  }
});

test('finds where the events after the first so many start', (t) => {
  const priming = encodePriming('7-1', 1000);
  const events = Buffer.concat([priming, encodeNumberedEvents('7-', 2, LINES)]);
  t.is(skipEvents(events, 0), 0);
  t.is(skipEvents(events, 1), priming.length);
  t.deepEqual(events.subarray(skipEvents(events, 4)), encodeNumberedEvents('7-', 5, LINES.slice(3)));
  t.is(skipEvents(events, 5), events.length);
});
