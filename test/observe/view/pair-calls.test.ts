import test from 'ava';
import {
  CallPairs,
  type Entry,
  MAX_KEPT_BYTES,
  MAX_OPEN_REQUESTS,
  MAX_REQUESTS_OF_CALL,
  SETTLE_MS,
} from '../../../src/observe/view/pair-calls.ts';
import { parse, RecordedLines } from './recorded-lines.ts';

function pair({ lines }: RecordedLines, pairs = new CallPairs({ lines: 'dropped' })): readonly Entry[] {
  return lines.flatMap((line) => pairs.take(parse(line), line));
}

function pairToEnd(recorded: RecordedLines): readonly Entry[] {
  const pairs = new CallPairs({ lines: 'dropped' });
  return [...pair(recorded, pairs), ...pairs.end()];
}

const OK = { result: {} };
const tool = (name: string) => ({ name, arguments: {} });

test('a translated call is one entry of the four messages, with the times and sizes that the client saw', (t) => {
  const recorded = new RecordedLines().request(1, 'tools/call', tool('echo')).wait(40).answer(1, OK);
  const [entry, ...others] = pair(recorded);
  t.deepEqual(others, []);
  t.like(entry, { kind: 'call', server: 'everything', client: 'claude-code', call: 1, durationMs: 43 });
  t.like(entry, { outcome: { kind: 'answered' }, request: { method: 'tools/call', subject: 'echo', side: 'client' } });
  const sizes = recorded.lines.map((line) => parse(line).bytes);
  t.like(entry, { request: { bytes: sizes[0], answer: { bytes: sizes[3] } } });
});

test('calls are given in the order in which they end, whatever the order of their messages', (t) => {
  const recorded = new RecordedLines().request(1, 'tools/call').request(2, 'tools/list').answer(2, OK).answer(1, OK);
  t.deepEqual(
    pair(recorded).map(({ call }) => call),
    [2, 1],
  );
});

test('an outcome says how a call ended', (t) => {
  const outcomes = [
    { result: { content: [] } },
    { result: { isError: true } },
    { error: { code: -32602, message: 'no' } },
    { error: { message: 'without a code' } },
    { error: 'not even an object' },
    { result: { resultType: 'input_required' } },
    // Cut: the beginning of its JSON text.
    { result: '{"content":[],"isError":true,"x":"…' },
    { error: '{"code":-32000,"message":"…' },
  ].map((answer) => {
    const [entry] = pair(new RecordedLines().request(1, 'tools/call').answer(1, answer));
    return entry?.kind === 'call' ? entry.outcome : undefined;
  });
  t.deepEqual(outcomes, [
    { kind: 'answered' },
    { kind: 'tool-error' },
    { kind: 'error', code: -32602 },
    { kind: 'error', code: undefined },
    { kind: 'error', code: undefined },
    { kind: 'input-required' },
    { kind: 'tool-error' },
    { kind: 'error', code: -32000 },
  ]);
});

test('ids are told apart by their kind and their session', (t) => {
  const recorded = new RecordedLines()
    .add('client', 'in', { id: 1, method: 'a' }, { call: 1 })
    .add('client', 'in', { id: '1', method: 'b' }, { call: 2 })
    .add('client', 'in', { id: 1, method: 'c' }, { call: 3, session: 's2' })
    .add('client', 'out', { id: 1, ...OK }, { call: 2 })
    .add('client', 'out', { id: 1, ...OK }, { call: 1 });
  t.deepEqual(
    pair(recorded).map(({ call }) => call),
    [1],
  );
});

test('a question in a call belongs to it, and is listed once although it passes both sides', (t) => {
  const recorded = new RecordedLines()
    .request(1, 'tools/call')
    .add('server', 'in', { id: 0, method: 'sampling/createMessage' }, { call: 1 })
    .add('client', 'out', { id: 'q1', method: 'sampling/createMessage' }, { call: 1 })
    .add('client', 'out', { method: 'notifications/progress' }, { call: 1 })
    .wait(500)
    .add('client', 'in', { id: 'q1', ...OK }, { call: 1 })
    .add('server', 'out', { id: 0, error: { code: -1 } }, { call: 1 })
    .add('server', 'in', { id: 1, method: 'elicitation/create' }, { call: 1 })
    .answer(1, OK);
  const [entry, ...others] = pair(recorded);
  t.deepEqual(others, []);
  t.like(entry, {
    notifications: 1,
    questions: [
      { method: 'sampling/createMessage', side: 'client', answer: { outcome: { kind: 'answered' } } },
      // The client was never asked.
      { method: 'elicitation/create', side: 'server', answer: undefined },
    ],
  });
});

test('a withdrawn call is canceled at that moment, and its cancellation at the server is part of it', (t) => {
  const recorded = new RecordedLines()
    .request(1, 'tools/call')
    .wait(98)
    .add('client', 'in', { method: 'notifications/cancelled', params: { requestId: 1 } }, { call: 1 })
    .add('server', 'out', { method: 'notifications/cancelled', params: { requestId: 'b1' } }, { call: 1 });
  t.deepEqual(pair(recorded), []);
  recorded.wait(SETTLE_MS).add('server', 'in', { method: 'notifications/message' });
  const [call, notification] = pair(recorded);
  t.like(call, { kind: 'call', outcome: { kind: 'canceled' }, durationMs: 100, notifications: 2 });
  t.like(notification, { kind: 'notification', method: 'notifications/message' });
});

test('a question that is withdrawn cancels no call', (t) => {
  const recorded = new RecordedLines()
    .request(1, 'tools/call')
    .add('server', 'in', { method: 'notifications/cancelled', params: { requestId: 0 } }, { call: 1 })
    .add('client', 'out', { method: 'notifications/cancelled', params: { requestId: 'q' } }, { call: 1 })
    .answer(1, OK);
  t.like(pair(recorded)[0], { outcome: { kind: 'answered' }, notifications: 2 });
});

test('an answer counts although the server was told of a cancellation before, as when time is up', (t) => {
  const recorded = new RecordedLines()
    .request(1, 'tools/call')
    .add('server', 'out', { method: 'notifications/cancelled', params: { requestId: 'b1' } }, { call: 1 })
    .add('client', 'out', { id: 1, error: { code: -32603 } }, { call: 1 });
  t.like(pairToEnd(recorded)[0], { outcome: { kind: 'error', code: -32603 } });
});

test('what never ends is unanswered, and given at the end of the recording', (t) => {
  const recorded = new RecordedLines().request(1, 'subscriptions/listen').request(2, 'tools/call').answer(2, OK);
  t.deepEqual(
    pairToEnd(recorded).map((entry) => entry.kind === 'call' && [entry.call, entry.outcome.kind, entry.durationMs]),
    [
      [2, 'answered', 3],
      [1, 'unanswered', undefined],
    ],
  );
});

test('outside of calls, requests of the bridge and of servers are entries of their own', (t) => {
  const recorded = new RecordedLines()
    .add('server', 'out', { id: 1, method: 'ping' }, { client: undefined })
    .add('server', 'in', { id: 1, method: 'roots/list' })
    .add('server', 'out', { id: 1, ...OK })
    .add('server', 'in', { id: 1, ...OK });
  t.deepEqual(
    pair(recorded).map((entry) => entry.kind === 'call' && [entry.request.method, entry.request.direction, entry.call]),
    [
      ['roots/list', 'in', undefined],
      ['ping', 'out', undefined],
    ],
  );
});

test('a request that was made before its call was known gets its answer, although only that has the number', (t) => {
  const recorded = new RecordedLines()
    .add('client', 'in', { id: 1, method: 'server/discover' }, { call: 1 })
    .add('server', 'out', { id: 5, method: 'initialize' })
    .add('server', 'in', { id: 5, ...OK }, { call: 1 })
    .add('client', 'out', { id: 1, ...OK }, { call: 1 });
  t.deepEqual(
    pair(recorded).map((entry) => entry.kind === 'call' && [entry.request.method, entry.outcome.kind]),
    [
      ['initialize', 'answered'],
      ['server/discover', 'answered'],
    ],
  );
});

test('an answer whose request is not there stands alone, and so does one that comes after the end of its call', (t) => {
  const recorded = new RecordedLines()
    .add('server', 'in', { id: 7, ...OK })
    .request(1, 'tools/call')
    .answer(1, OK)
    .add('server', 'in', { id: 'b1', error: { code: 1 } }, { call: 1 })
    .add('client', 'out', { id: null, error: { code: -32700 } });
  t.deepEqual(
    pair(recorded).map(({ kind }) => kind),
    ['answer', 'call', 'answer', 'answer'],
  );
});

test('an id that is used again before its answer begins another call', (t) => {
  const recorded = new RecordedLines()
    .add('server', 'out', { id: 1, method: 'ping' })
    .add('server', 'out', { id: 1, method: 'ping' })
    .add('server', 'in', { id: 1, ...OK });
  t.deepEqual(
    pair(recorded).map((entry) => entry.kind === 'call' && entry.outcome.kind),
    ['unanswered', 'answered'],
  );
});

test('a restarted bridge counts again, and its calls are not those of before', (t) => {
  const before = new RecordedLines().request(1, 'before').request(2, 'answered before').answer(2, OK);
  const after = new RecordedLines().request(1, 'after').answer(1, OK);
  const pairs = new CallPairs({ lines: 'dropped' });
  const entries = [...pair(before, pairs), ...pair(after, pairs), ...pairs.end()];
  t.deepEqual(
    entries.map((entry) => entry.kind === 'call' && [entry.request.method, entry.outcome.kind]),
    [
      ['answered before', 'answered'],
      ['after', 'answered'],
      ['before', 'unanswered'],
    ],
  );
});

test('two bridges that write to one file keep their calls apart', (t) => {
  const one = new RecordedLines().request(1, 'one').answer(1, OK);
  const other = new RecordedLines().request(1, 'other').answer(1, { error: { code: 5 } });
  const [first = '', ...rest] = one.lines;
  const [second = '', ...answers] = rest;
  const mixed = [first, second, ...other.lines.flatMap((line, at) => [line, ...answers.slice(at, at + 1)])];
  const pairs = new CallPairs({ lines: 'dropped' });
  t.deepEqual(
    mixed
      .flatMap((line) => pairs.take(parse(line), line))
      .map((entry) => entry.kind === 'call' && [entry.request.method, entry.outcome.kind]),
    [
      ['one', 'answered'],
      ['other', 'error'],
    ],
  );
});

test('a recording may begin in the middle, and miss lines', (t) => {
  const recorded = new RecordedLines();
  recorded.seq = 500;
  recorded.answer(1, OK).request(2, 'tools/list');
  recorded.seq += 20;
  recorded.answer(2, OK);
  t.deepEqual(
    pair(recorded).map(({ kind, call }) => [kind, call]),
    [
      ['answer', 1],
      ['answer', 1],
      ['call', 2],
    ],
  );
});

test('members that are not what they should be break nothing', (t) => {
  const recorded = new RecordedLines();
  for (const params of [null, 7, 'text', [], { name: {} }, JSON.parse('{"__proto__":{"name":"x"}}')]) {
    recorded.add('client', 'in', { id: recorded.seq, method: 'tools/call', params });
    recorded.add('client', 'in', { method: 'notifications/cancelled', params });
  }
  for (const id of [null, {}, true, [1]]) recorded.add('client', 'out', { id, result: 7 }).add('client', 'in', { id });
  t.is(pairToEnd(recorded).filter(({ kind }) => kind === 'call').length, 6);
});

test('calls that never end take a limited amount of memory', (t) => {
  const pairs = new CallPairs({ lines: 'dropped' });
  const recorded = new RecordedLines();
  let unanswered = 0;
  for (let call = 1; call <= MAX_OPEN_REQUESTS; call += 1) {
    recorded.lines.length = 0;
    recorded.add('client', 'in', { id: call, method: 'x'.repeat(1000) }, { call });
    unanswered += pair(recorded, pairs).length;
  }
  t.is(unanswered, 0);
  recorded.lines.length = 0;
  recorded.request(MAX_OPEN_REQUESTS + 1, 'tools/call');
  const [first, second, ...others] = pair(recorded, pairs);
  t.like(first, { call: 1, outcome: { kind: 'unanswered' } });
  t.is(first?.kind === 'call' && first.request.method.length, 257);
  t.like(second, { call: 2 });
  t.deepEqual(others, []);
});

test('a call with more requests than any call has is still one call', (t) => {
  const recorded = new RecordedLines().request(1, 'tools/call');
  for (let number = 0; number < MAX_REQUESTS_OF_CALL * 2; number += 1)
    recorded.add('client', 'out', { id: `q${number}`, method: 'roots/list' }, { call: 1 });
  recorded.answer(1, OK);
  const [entry] = pair(recorded);
  t.is(entry?.kind === 'call' && entry.questions.length, MAX_REQUESTS_OF_CALL - 2);
});

test('lines are kept for whoever wants to see them, up to a limit, and then counted', (t) => {
  const pairs = new CallPairs({ lines: 'kept' });
  const recorded = new RecordedLines().request(1, 'tools/call');
  t.deepEqual(pair(recorded, pairs), []);
  recorded.seq += 1;
  const large = JSON.stringify({
    ...parse(recorded.lines[0] ?? ''),
    seq: recorded.seq,
    padding: 'x'.repeat(MAX_KEPT_BYTES),
  });
  t.deepEqual(pairs.take(parse(large), large), []);
  recorded.lines.length = 0;
  const [entry] = pair(recorded.answer(1, OK), pairs);
  t.is(entry?.lines.length, 4);
  t.is(entry?.leftOut, 1);
});
