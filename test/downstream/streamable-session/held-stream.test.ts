import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { LiveStreams } from '../../../src/downstream/http/response-writer.ts';
import { REPLAY_LIMITS, ReplayBuffer } from '../../../src/downstream/streamable-session/replay-buffer.ts';
import { ResumableStream } from '../../../src/downstream/streamable-session/resumable-stream.ts';
import { resultFrame } from '../../../src/wire/write-message.ts';
import { FakeClock } from '../../support/fake-clock.ts';

interface HeldStream {
  readonly stream: ResumableStream;
  /** It has been stored. */
  readonly store: () => void;
  /** All that its client gets. */
  readonly text: Promise<string>;
}

/** A stream whose client waits for its response, which is held back until `store`. */
async function openHeld(t: ExecutionContext, maxBytes: number): Promise<HeldStream> {
  const server = createServer().listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const text = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).then((response) => response.text());
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse];
  const clock = new FakeClock();
  const replay = new ReplayBuffer(clock, { ...REPLAY_LIMITS, maxBytes });
  const context = { live: new LiveStreams(clock), replay, priming: true, pollAfterMs: 0 };
  let store = (): void => {};
  const stored = new Promise<void>((resolve) => {
    store = resolve;
  });
  const stream = new ResumableStream(1, context, { onDrain: () => {}, stored });
  stream.open(response);
  return { stream, store, text };
}

test('a client gets all that was said while its stream was held back', async (t) => {
  const { stream, store, text } = await openHeld(t, 10_000);
  stream.send(resultFrame(1, { said: 'first' }));
  await new Promise(setImmediate);
  stream.send(resultFrame(2, { said: 'second' }));
  store();
  await new Promise(setImmediate);
  stream.end();
  t.deepEqual((await text).match(/^id: .*|"said":"\w+"/gm), [
    'id: 1-1',
    'id: 1-2',
    '"said":"first"',
    'id: 1-3',
    '"said":"second"',
  ]);
});

test('a client gets a message that is larger than what is kept for clients that come back', async (t) => {
  const { stream, store, text } = await openHeld(t, 1000);
  stream.send(resultFrame(1, { said: 'x'.repeat(2000) }));
  stream.end();
  await new Promise(setImmediate);
  store();
  t.regex(await text, /"said":"x{2000}"/);
});
