import test from 'ava';
import { InheritedStreams } from '../../../src/downstream/streamable-session/inherited-streams.ts';
import { ReplayBuffer } from '../../../src/downstream/streamable-session/replay-buffer.ts';
import type { StoredReplay } from '../../../src/relay/sessions/session-storage.ts';
import { encodeNumberedEvents } from '../../../src/wire/sse-encode.ts';
import { requestFrame, resultFrame } from '../../../src/wire/write-message.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const FIRST_OWN = 1000;
const GENERAL = 0;

const restored = (stored: Partial<StoredReplay> = {}): InheritedStreams => {
  const inherited = new InheritedStreams({ stream: FIRST_OWN, sequence: 2000 });
  const replay = { runs: [], waiting: [], unended: new Map(), ...stored };
  const buffer = new ReplayBuffer(new FakeClock());
  buffer.restore(replay);
  inherited.restore(replay, buffer, GENERAL);
  return inherited;
};
const idsOf = (inherited: InheritedStreams, stream: number, request?: string, newest = 0) =>
  inherited.answersOn({ stream, sequence: 1, request }, newest)?.map(({ id }) => id);

test('every call that was lost with its stream is answered with an error', (t) => {
  const inherited = restored({ unended: new Map([[7, { requests: ['a', 'b'], call: undefined }]]) });
  t.deepEqual(idsOf(inherited, 7), ['a', 'b']);
  t.is(inherited.answersOn({ stream: 7, sequence: 1, request: undefined }, 0)?.[0]?.kind, 'error');
  inherited.answered(7);
  t.is(idsOf(inherited, 7), undefined);
});

test('a request of a batch that was answered on the stream is not answered again', (t) => {
  const said = [resultFrame('a', {}), requestFrame('c', 'ping')].map(({ bytes }) => bytes);
  const runs = [{ stream: 7, sequence: 1, count: 2, bytes: encodeNumberedEvents('7-', 1, said) }];
  const inherited = restored({ runs, unended: new Map([[7, { requests: ['a', 'b', 'c'], call: undefined }]]) });
  t.deepEqual(idsOf(inherited, 7), ['b', 'c']);
});

test('a call is answered with an error whose stream was not stored before its bridge was lost', (t) => {
  const inherited = restored();
  t.deepEqual(idsOf(inherited, 7, 'a'), ['a']);
  t.is(idsOf(inherited, 7), undefined, 'the event does not name it');
  t.is(idsOf(inherited, 7, 'a', 3), undefined, 'there are events of it that can be told');
  t.is(idsOf(inherited, FIRST_OWN, 'a'), undefined, 'it would be a stream of this bridge');
});
