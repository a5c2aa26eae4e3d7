import test from 'ava';
import {
  canWait,
  MAX_WAITING,
  MAX_WAITING_BYTES,
  NO_STREAM_GRACE_MS,
  UndeliveredQueue,
} from '../../../src/downstream/streamable-session/undelivered-queue.ts';
import type { Frame } from '../../../src/wire/frame.ts';
import { notificationFrame, requestFrame } from '../../../src/wire/write-message.ts';

const TOOLS = notificationFrame('notifications/tools/list_changed');
const PROMPTS = notificationFrame('notifications/prompts/list_changed');

function updated(uri: string): Frame {
  return notificationFrame('notifications/resources/updated', { uri });
}

function log(data: string): Frame {
  return notificationFrame('notifications/message', { level: 'info', data });
}

function methods(frames: readonly Frame[]): readonly unknown[] {
  return frames.map((frame) => frame.id ?? frame.method);
}

test('gives everything back in order, once', (t) => {
  const queue = new UndeliveredQueue();
  const frames = [TOOLS, log('a'), requestFrame(1, 'roots/list'), PROMPTS];
  for (const frame of frames) queue.add(frame, 0);
  t.is(queue.size, 4);
  t.deepEqual(queue.takeAll(), frames);
  t.is(queue.size, 0);
  t.deepEqual(queue.takeAll(), []);
});

test('keeps “look again” once, however often it was said', (t) => {
  const queue = new UndeliveredQueue();
  for (const frame of [TOOLS, updated('a:1'), TOOLS, updated('a:2'), updated('a:1'), PROMPTS]) queue.add(frame, 0);
  t.deepEqual(queue.takeAll(), [TOOLS, updated('a:1'), updated('a:2'), PROMPTS]);
});

test('keeps equal messages that are no “look again” each time', (t) => {
  const queue = new UndeliveredQueue();
  queue.add(log('same'), 0);
  queue.add(log('same'), 0);
  t.is(queue.takeAll().length, 2);
});

test('knows what may wait for a stream of its own', (t) => {
  t.true(canWait(TOOLS));
  t.true(canWait(updated('a:1')));
  t.false(canWait(log('now')));
  t.false(canWait(requestFrame(1, 'roots/list')));
});

test('drops the oldest notifications over the limit of messages, counts them, and keeps requests', (t) => {
  const queue = new UndeliveredQueue();
  queue.add(requestFrame('q', 'roots/list'), 0);
  for (let count = 0; count < MAX_WAITING + 5; count += 1) queue.add(log(String(count)), 0);
  t.is(queue.size, MAX_WAITING);
  t.is(queue.dropped, 6);
  const kept = queue.takeAll();
  t.is(kept[0]?.id, 'q');
  t.like(kept[1]?.json(), { params: { data: '6' } });
});

test('drops the oldest notifications over the limit of bytes', (t) => {
  const queue = new UndeliveredQueue();
  const big = 'x'.repeat(MAX_WAITING_BYTES / 4);
  for (const name of ['a', 'b', 'c', 'd', 'e']) queue.add(log(name + big), 0);
  t.is(queue.dropped, 2);
  const kept = queue.takeAll().map((frame) => (frame.json() as { params: { data: string } }).params.data[0]);
  t.deepEqual(kept, ['c', 'd', 'e']);
});

test('has no place for a request that exceeds the limit of bytes with the requests before it', (t) => {
  const queue = new UndeliveredQueue();
  const big = { text: 'x'.repeat(MAX_WAITING_BYTES / 2) };
  t.is(queue.add(requestFrame(1, 'sampling/createMessage', big), 0), 'added');
  t.is(queue.add(log('goes first'), 0), 'added');
  t.is(queue.add(requestFrame(2, 'sampling/createMessage', big), 0), 'full');
  t.is(queue.add(requestFrame(3, 'roots/list'), 0), 'added');
  t.is(queue.dropped, 1);
  t.deepEqual(methods(queue.takeAll()), [1, 3]);
});

test('has a place for one request of any size', (t) => {
  const queue = new UndeliveredQueue();
  t.is(queue.add(requestFrame(1, 'sampling/createMessage', { text: 'x'.repeat(2 * MAX_WAITING_BYTES) }), 0), 'added');
  t.is(queue.add(requestFrame(2, 'roots/list'), 0), 'full');
  t.deepEqual(methods(queue.takeAll()), [1]);
});

test('gives requests back when they have waited too long, and only those', (t) => {
  const queue = new UndeliveredQueue();
  queue.add(requestFrame(1, 'roots/list'), 0);
  queue.add(TOOLS, 0);
  queue.add(requestFrame(2, 'roots/list'), 5000);
  t.deepEqual(queue.takeOverdueRequests(NO_STREAM_GRACE_MS - 1), []);
  t.deepEqual(methods(queue.takeOverdueRequests(NO_STREAM_GRACE_MS)), [1]);
  t.deepEqual(methods(queue.takeAll()), ['notifications/tools/list_changed', 2]);
});

test('gives requests back before their time when they can be sent', (t) => {
  const queue = new UndeliveredQueue();
  queue.add(requestFrame(1, 'roots/list'), 0);
  queue.add(TOOLS, 0);
  queue.add(requestFrame(2, 'roots/list'), 0);
  t.deepEqual(methods(queue.takeRequests()), [1, 2]);
  t.is(queue.size, 1);
});

test('counts bytes anew after messages have left', (t) => {
  const queue = new UndeliveredQueue();
  const big = { text: 'x'.repeat(MAX_WAITING_BYTES - 100) };
  queue.add(requestFrame(1, 'sampling/createMessage', big), 0);
  queue.takeRequests();
  t.is(queue.add(requestFrame(2, 'sampling/createMessage', big), 0), 'added');
  queue.takeAll();
  t.is(queue.add(requestFrame(3, 'sampling/createMessage', big), 0), 'added');
});
