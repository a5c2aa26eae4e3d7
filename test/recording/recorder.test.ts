import test, { type ExecutionContext } from 'ava';
import { parseRecordedLine, type RecordedMessage } from '../../src/recording/recorded-message.ts';
import { Recorder } from '../../src/recording/recorder.ts';
import { Call } from '../../src/relay/call.ts';
import type { MessageTap, MessageTaps } from '../../src/relay/message-tap.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { clientFrame, serverFrame } from '../support/frames.ts';

/** More than the recorder collects. */
const LARGE = 'x'.repeat(3 * 1024 * 1024);

interface Recorded {
  readonly clock: FakeClock;
  /** The messages of each batch of lines. */
  readonly batches: readonly (readonly RecordedMessage[])[];
  readonly taps: MessageTaps;
  readonly client: MessageTap;
  readonly server: MessageTap;
}

function record(t: ExecutionContext): Recorded {
  const clock = new FakeClock();
  const batches: RecordedMessage[][] = [];
  const read = (line: string): RecordedMessage => {
    const message = parseRecordedLine(line);
    if ('damage' in message) throw new Error(`the line ${message.damage}`);
    return message;
  };
  const sink = {
    format: { secrets: 'hidden', maxMessageBytes: 1024 },
    take: (lines: readonly string[]) => batches.push(lines.map(read)),
  } as const;
  const recorder = new Recorder({ clock, wallClock: () => 0, sinks: [sink] });
  t.teardown(() => recorder.flush());
  const taps = recorder.tapsOf('one');
  const client = taps.session({ transport: 'streamable-http', era: 'legacy' });
  return { clock, batches, taps, client, server: taps.connection({ transport: 'stdio', era: 'legacy' }) };
}

const nothing = (): void => undefined;

test('a large message that passes unchanged is collected for both sides', (t) => {
  const { clock, batches, client, server } = record(t);
  const request = clientFrame({ id: 1, method: 'tools/call', params: { name: 'read' } });
  const result = serverFrame({ id: 1, result: { text: LARGE } });
  client.received(request, undefined, () => server.sent(request, undefined));
  server.received(result, undefined, () => client.sent(result, undefined));
  t.is(batches.length, 0);
  clock.advance(50);
  t.deepEqual(
    batches.map((messages) => messages.map(({ side, direction, cut }) => ({ side, direction, cut }))),
    [
      [
        { side: 'client', direction: 'in', cut: undefined },
        { side: 'server', direction: 'out', cut: undefined },
        { side: 'server', direction: 'in', cut: true },
        { side: 'client', direction: 'out', cut: true },
      ],
    ],
  );
});

test('on a connection that several clients share, each message names the client of its call', (t) => {
  const { clock, batches, taps, server } = record(t);
  const callers = ['one', 'two'].map((name) => taps.call({ transport: 'streamable-http', era: 'modern', name }));
  callers.forEach((caller, id) => {
    const request = clientFrame({ id, method: 'tools/list' });
    caller.received(request, undefined, () => server.sent(request, undefined));
  });
  for (const id of [1, 0]) server.received(serverFrame({ id, result: {} }), undefined, nothing);
  server.received(serverFrame({ method: 'notifications/tools/list_changed' }), undefined, nothing);
  clock.advance(50);
  t.deepEqual(
    batches.flat().flatMap(({ side, client }) => (side === 'server' ? [client] : [])),
    ['one', 'two', 'two', 'one', undefined],
  );
});

test('a message without a call, and one of a call long ago, change no names of other calls', (t) => {
  const { clock, batches, taps, server } = record(t);
  const caller = (name: string) => taps.session({ transport: 'streamable-http', era: 'legacy', name });
  const [one, two] = [caller('one'), caller('two')];
  const call = (by: MessageTap, id: number): void => {
    const request = clientFrame({ id, method: 'tools/list' });
    by.received(request, undefined, () => server.sent(request, undefined));
  };
  call(two, 1);
  for (let id = 2; id <= 4096; id += 1) call(one, id);
  clock.advance(50);
  two.received(clientFrame({ method: 'notifications/roots/list_changed' }), undefined, nothing);
  server.received(serverFrame({ id: 4096, result: {} }), undefined, nothing);
  call(one, 4097);
  two.received(clientFrame({ method: 'notifications/cancelled', params: { requestId: 1 } }), undefined, nothing);
  server.received(serverFrame({ id: 4097, result: {} }), undefined, nothing);
  clock.advance(50);
  const answers = batches.flat().filter(({ side, direction }) => side === 'server' && direction === 'in');
  t.deepEqual(
    answers.map(({ client }) => client),
    ['one', 'one'],
  );
});

test('one large message is collected at a time', (t) => {
  const { batches, server } = record(t);
  for (let id = 1; id <= 4; id += 1) {
    server.received(serverFrame({ id, result: { text: LARGE } }), undefined, nothing);
    t.is(batches.flat().length, id - 1);
  }
});

test('a message that repeats is not collected without an end', (t) => {
  const { batches, server } = record(t);
  const notification = serverFrame({ method: 'notifications/message', params: {} });
  for (let count = 0; count < 1000; count += 1) server.received(notification, undefined, nothing);
  t.true(1000 - batches.flat().length <= 256);
});

test('a large message of a server belongs to the call of the message that it causes', (t) => {
  const { clock, batches, client, server } = record(t);
  const request = clientFrame({ id: 1, method: 'tools/call', params: { name: 'read' } });
  const told = serverFrame({ method: 'notifications/message', params: { data: LARGE } });
  client.received(request, undefined, nothing);
  server.received(told, undefined, () => client.sent(told, new Call(1, 'tools/call', { isOpen: true }, undefined, 0)));
  clock.advance(50);
  t.deepEqual(
    batches.flat().map(({ side, call }) => ({ side, call })),
    [
      { side: 'client', call: 1 },
      { side: 'server', call: 1 },
      { side: 'client', call: 1 },
    ],
  );
});
