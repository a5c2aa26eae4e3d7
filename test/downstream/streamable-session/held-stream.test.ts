import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { LiveStreams } from '../../../src/downstream/http/response-writer.ts';
import { REPLAY_LIMITS, ReplayBuffer } from '../../../src/downstream/streamable-session/replay-buffer.ts';
import { ResumableStream } from '../../../src/downstream/streamable-session/resumable-stream.ts';
import { resultFrame } from '../../../src/wire/write-message.ts';
import { FakeClock } from '../../support/fake-clock.ts';

interface OpenStream {
  readonly stream: ResumableStream;
  readonly replay: ReplayBuffer;
  readonly response: ServerResponse;
  /** All that its client gets. */
  readonly text: Promise<string>;
}

/** A stream whose client waits for its response, which is held back until `stored`; default: not at all. */
async function openStream(t: ExecutionContext, maxBytes: number, stored?: Promise<void>): Promise<OpenStream> {
  const server = createServer().listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const text = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).then((response) => response.text());
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse];
  const clock = new FakeClock();
  const replay = new ReplayBuffer(clock, { ...REPLAY_LIMITS, maxBytes });
  const context = { live: new LiveStreams(clock), replay, priming: true, pollAfterMs: 0 };
  const stream = new ResumableStream(1, context, { onDrain: () => {}, stored });
  stream.open(response);
  return { stream, replay, response, text };
}

interface Storing {
  readonly stored: Promise<void>;
  store(): void;
}

function beginStoring(): Storing {
  let store = (): void => {};
  const stored = new Promise<void>((resolve) => {
    store = resolve;
  });
  return { stored, store: () => store() };
}

const idsAndWords = (text: string): readonly string[] => text.match(/^id: .*|^: .*|"said":"\w+"/gm) ?? [];

test('a client gets all that was said while its stream was held back', async (t) => {
  const { stored, store } = beginStoring();
  const { stream, text } = await openStream(t, 10_000, stored);
  stream.send(resultFrame(1, { said: 'first' }));
  await new Promise(setImmediate);
  stream.send(resultFrame(2, { said: 'second' }));
  store();
  await new Promise(setImmediate);
  stream.end();
  t.deepEqual(idsAndWords(await text), ['id: 1-1', 'id: 1-2', '"said":"first"', 'id: 1-3', '"said":"second"']);
});

test('a client gets a message that is larger than what is kept for clients that come back', async (t) => {
  const { stored, store } = beginStoring();
  const { stream, text } = await openStream(t, 1000, stored);
  stream.send(resultFrame(1, { said: 'x'.repeat(2000) }));
  stream.end();
  await new Promise(setImmediate);
  store();
  t.regex(await text, /"said":"x{2000}"/);
});

test('what is said on a stream that its client has already can be held back as well, and its end too', async (t) => {
  const { stored, store } = beginStoring();
  const { stream, response, text } = await openStream(t, 10_000);
  stream.send(resultFrame(1, { said: 'first' }));
  // In the same turn, before it has left.
  stream.holdUntil(stored);
  await new Promise(setImmediate);
  response.write(': nothing yet\n\n');
  stream.send(resultFrame(2, { said: 'second' }));
  stream.end();
  await new Promise(setImmediate);
  response.write(': nothing still\n\n');
  store();
  t.deepEqual(idsAndWords(await text), [
    'id: 1-1',
    ': nothing yet',
    ': nothing still',
    'id: 1-2',
    '"said":"first"',
    'id: 1-3',
    '"said":"second"',
  ]);
});

test('a client that comes back while its stream is held back gets everything once', async (t) => {
  const { stored, store } = beginStoring();
  const { stream, replay } = await openStream(t, 10_000);
  stream.holdUntil(stored);
  stream.send(resultFrame(1, { said: 'first' }));
  stream.flush();
  const again = await openStream(t, 10_000, new Promise(() => {}));
  stream.resume(again.response, replay.after({ stream: 1, sequence: 1 }, undefined) ?? []);
  stream.send(resultFrame(2, { said: 'second' }));
  store();
  await new Promise(setImmediate);
  stream.end();
  t.deepEqual(idsAndWords(await again.text), ['id: 1-2', '"said":"first"', 'id: 1-3', '"said":"second"']);
});

test('a client that comes back before its first response has begun gets everything on the new one', async (t) => {
  const { stored, store } = beginStoring();
  const { stream, replay, text } = await openStream(t, 10_000, stored);
  const isOver = t.throwsAsync(text);
  stream.send(resultFrame(1, { said: 'first' }));
  stream.flush();
  const again = await openStream(t, 10_000, new Promise(() => {}));
  stream.resume(again.response, replay.after({ stream: 1, sequence: 1 }, undefined) ?? []);
  store();
  await new Promise(setImmediate);
  stream.send(resultFrame(2, { said: 'second' }));
  stream.end();
  await isOver;
  t.deepEqual(idsAndWords(await again.text), ['id: 1-2', '"said":"first"', 'id: 1-3', '"said":"second"']);
});
