import test from 'ava';
import {
  type MessageFacts,
  originText,
  parseRecordedLine,
  recordedLine,
} from '../../src/recording/recorded-message.ts';

const FACTS: MessageFacts = {
  at: '2026-11-28T19:30:14.123Z',
  seq: 12,
  side: 'client',
  direction: 'in',
  server: 'everything',
  client: 'claude-code',
  session: 's3',
  carrier: 'streamable-http',
  era: 'legacy',
  call: 7,
  bytes: 40,
};

const lineOf = (facts: MessageFacts, message: string): string =>
  recordedLine(originText(facts, facts.direction), facts, message);

test('reads what was written, and leaves out what is not known', (t) => {
  const message = { jsonrpc: '2.0', id: 1, method: 'ping' };
  t.deepEqual(parseRecordedLine(lineOf(FACTS, JSON.stringify(message))), { ...FACTS, message });
  const unknown = { ...FACTS, client: undefined, session: undefined, call: undefined };
  const line = lineOf(unknown, '{}');
  t.deepEqual(Object.keys(JSON.parse(line) as object), [
    ...['at', 'seq', 'side', 'direction', 'server', 'carrier', 'era', 'bytes', 'message'],
  ]);
});

test('a line may have members and transports of later versions', (t) => {
  const line = lineOf({ ...FACTS, carrier: 'carrier-pigeon' }, '{}').replace('{', '{"later":true,');
  t.like(parseRecordedLine(line), { carrier: 'carrier-pigeon', message: {} });
});

test('says what is wrong with a line', (t) => {
  const broken = (changes: object): unknown => parseRecordedLine(JSON.stringify({ ...FACTS, message: {}, ...changes }));
  t.deepEqual(parseRecordedLine('{"at":'), { damage: 'is not JSON' });
  t.deepEqual(parseRecordedLine('[]'), { damage: 'is not an object' });
  t.deepEqual(parseRecordedLine('null'), { damage: 'is not an object' });
  t.deepEqual(broken({ at: 'yesterday' }), { damage: 'has no valid "at"' });
  t.deepEqual(broken({ seq: 1.5 }), { damage: 'has no valid "seq"' });
  t.deepEqual(broken({ side: 'inside' }), { damage: 'has no valid "side"' });
  t.deepEqual(broken({ call: 'seven' }), { damage: 'has no valid "call"' });
  t.deepEqual(broken({ message: [] }), { damage: 'has no valid "message"' });
});
