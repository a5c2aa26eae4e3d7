import test from 'ava';
import type { HttpCall } from '../../../src/http/client.ts';
import { PulledBody } from '../../../src/upstream/remote/pulled-body.ts';

class FakeCall implements HttpCall {
  isPaused = false;
  isAborted = false;
  abort(): void {
    this.isAborted = true;
  }
  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
  }
}

function createBody(isPaused = false) {
  const call = new FakeCall();
  const body = new PulledBody(() => call, isPaused);
  return { call, body, reader: body.getReader() };
}

const isSettled = async (promise: Promise<unknown>): Promise<boolean> => {
  const pending = Symbol('pending');
  return (await Promise.race([promise, new Promise((resolve) => setImmediate(resolve, pending))])) !== pending;
};

test('the connection is not read while nobody pulls', async (t) => {
  const { call, body, reader } = createBody();
  body.push(Buffer.from('a'));
  t.true(call.isPaused);
  body.push(Buffer.from('b'));
  t.deepEqual(await reader.read(), { done: false, value: Buffer.from('a') });
  t.deepEqual(await reader.read(), { done: false, value: Buffer.from('b') });
  const next = reader.read();
  t.false(call.isPaused, 'what was there has been taken');
  body.push(Buffer.from('c'));
  t.deepEqual(await next, { done: false, value: Buffer.from('c') });
});

test('nothing is handed out while paused', async (t) => {
  const { call, body, reader } = createBody(true);
  const read = reader.read();
  body.push(Buffer.from('a'));
  t.false(await isSettled(read));
  t.true(call.isPaused);
  body.resume();
  t.deepEqual(await read, { done: false, value: Buffer.from('a') });
});

test('what had come is handed out before the end, whichever end it is', async (t) => {
  const { body, reader } = createBody();
  body.push(Buffer.from('a'));
  body.end(new Error('cut'));
  body.end();
  t.deepEqual(await reader.read(), { done: false, value: Buffer.from('a') });
  await t.throwsAsync(reader.read(), { message: 'cut' });
  const whole = createBody();
  whole.body.end();
  t.deepEqual(await whole.reader.read(), { done: true });
});

test('a reader that gives up ends the connection', async (t) => {
  const { call, reader } = createBody();
  await reader.cancel();
  t.true(call.isAborted);
});
