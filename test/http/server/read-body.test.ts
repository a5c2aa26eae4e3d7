import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import {
  BODIES_AT_A_TIME,
  type BodyBudget,
  BodyCapacity,
  FREE_BODY_BYTES,
  readBody,
} from '../../../src/http/server/read-body.ts';

interface Read {
  readonly results: { code: string | undefined; body: string }[];
  readonly request: PassThrough;
}

function startReading(
  maxBytes: number,
  headers: Record<string, string> = {},
  bodies = new BodyCapacity(maxBytes).share(undefined),
): Read {
  const request = Object.assign(new PassThrough(), { headers });
  const results: Read['results'] = [];
  readBody(request as unknown as IncomingMessage, { maxMessageBytes: maxBytes, bodies }, (error, body) => {
    results.push({ code: error?.code, body: body.toString() });
  });
  return { results, request };
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

test('a body that comes byte by byte takes no more memory than it has bytes, with some for its parts', async (t) => {
  const bytes = 200_000;
  const { results, request } = startReading(bytes);
  collectGarbage();
  const { heapUsed: before } = process.memoryUsage();
  for (let sent = 0; sent < bytes; sent += 1) request.emit('data', Buffer.from('x'));
  collectGarbage();
  const grownBytes = process.memoryUsage().heapUsed - before;
  t.true(grownBytes < 10 * bytes, `${grownBytes} bytes more on the heap`);
  request.end();
  await settled();
  t.is(results[0]?.body.length, bytes);
});

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test('hands over the whole body once, whatever the chunks', async (t) => {
  for (const chunks of [['{"a":1}'], [...'{"a":1}'], []]) {
    const { results, request } = startReading(100);
    for (const chunk of chunks) request.write(chunk);
    request.end();
    await settled();
    t.deepEqual(results, [{ code: undefined, body: chunks.join('') }]);
  }
});

test('takes a body of exactly the limit and refuses one byte more', async (t) => {
  const exact = startReading(4);
  exact.request.end('1234');
  const over = startReading(4);
  over.request.write('1234');
  over.request.end('5');
  await settled();
  t.deepEqual(exact.results, [{ code: undefined, body: '1234' }]);
  t.deepEqual(over.results, [{ code: 'ERR_WIRE_FRAME_TOO_LARGE', body: '' }]);
});

test('refuses a declared length over the limit before a byte is read', (t) => {
  const { results, request } = startReading(4, { 'content-length': '5' });
  t.deepEqual(results, [{ code: 'ERR_WIRE_FRAME_TOO_LARGE', body: '' }]);
  t.is(request.listenerCount('data'), 0);
});

test('keeps nothing of a body that is too large, however much more comes', async (t) => {
  const { results, request } = startReading(10);
  for (let count = 0; count < 100; count += 1) request.write('x'.repeat(1000));
  request.end();
  await settled();
  t.is(results.length, 1);
  t.is(request.listenerCount('data'), 0);
});

test('says nothing when the client goes away midway', async (t) => {
  const { results, request } = startReading(100);
  request.write('{"a"');
  await settled();
  request.destroy();
  await settled();
  t.deepEqual(results, []);
});

test('bodies that come slowly hold no more together than the limit, and small ones always get in', async (t) => {
  const bodies = new BodyCapacity(100_000).share(undefined);
  const half = 'x'.repeat(FREE_BODY_BYTES + 50_000);
  const slow = Array.from({ length: 40 }, () => startReading(100_000, {}, bodies));
  for (const { request } of slow) request.write(half);
  await settled();
  const refused = slow.filter(({ results }) => results.length > 0);
  t.is(refused.length, 40 - (BODIES_AT_A_TIME * 100_000) / 50_000);
  t.deepEqual(refused[0]?.results, [{ code: 'ERR_SESSION_BUSY', body: '' }]);
  t.is(bodies.bytes, BODIES_AT_A_TIME * 100_000);
  const small = startReading(100_000, {}, bodies);
  small.request.end('y'.repeat(FREE_BODY_BYTES));
  await settled();
  t.is(small.results[0]?.code, undefined);
  t.is(small.results[0]?.body.length, FREE_BODY_BYTES);
});

test('what a body held is free once it was read, refused or left', async (t) => {
  const bodies = new BodyCapacity(100_000).share(undefined);
  const [read, refused, left] = [1, 2, 3].map(() => startReading(100_000, {}, bodies)) as [Read, Read, Read];
  for (const { request } of [read, refused, left]) request.write('x'.repeat(FREE_BODY_BYTES + 50_000));
  await settled();
  t.is(bodies.bytes, 150_000);
  read.request.end();
  refused.request.write('x'.repeat(100_000));
  left.request.destroy();
  await settled();
  await settled();
  t.is(bodies.bytes, 0);
  t.deepEqual(
    [read, refused, left].map(({ results }) => results[0]?.code ?? results.length),
    [1, 'ERR_WIRE_FRAME_TOO_LARGE', 0],
  );
});

test('one of several callers leaves half of the capacity to others, and occupies none when it is done', async (t) => {
  const maxMessageBytes = 100_000;
  const callerOf = ({ headers }: IncomingMessage): string => String(headers.caller);
  const bodies = new BodyCapacity(maxMessageBytes).share(callerOf);
  const send = (caller: string): Read => {
    const reading = startReading(maxMessageBytes, { caller }, bodies);
    reading.request.write('x'.repeat(maxMessageBytes - 1));
    return reading;
  };
  const greedy = Array.from({ length: BODIES_AT_A_TIME }, () => send('greedy'));
  await settled();
  const refused = greedy.filter(({ results }) => results.length > 0);
  t.true(refused.length >= 6);
  t.is(refused[0]?.results[0]?.code, 'ERR_SESSION_BUSY');
  const other = send('other');
  other.request.end();
  await settled();
  t.is(other.results[0]?.code, undefined);
  t.is(other.results.length, 1);
  for (const { request } of greedy) request.end();
  await settled();
  t.is(bodies.bytes, 0);
  const again = send('greedy');
  again.request.end();
  await settled();
  t.is(again.results[0]?.code, undefined);
});

test('six servers hold together what one may hold, and each has a part of it', async (t) => {
  const maxMessageBytes = 100_000;
  const capacity = new BodyCapacity(maxMessageBytes);
  const servers = Array.from({ length: 6 }, () => capacity.share(undefined));
  const [greedy, ...others] = servers as [BodyBudget, ...BodyBudget[]];
  for (const bodies of [...Array.from({ length: 20 }, () => greedy), ...others, ...others]) {
    startReading(maxMessageBytes, {}, bodies).request.write('x'.repeat(maxMessageBytes - 1));
  }
  await settled();
  for (const { bytes } of others) t.true(bytes > 0);
  const held = servers.reduce((sum, { bytes }) => sum + bytes, 0);
  t.true(held <= BODIES_AT_A_TIME * maxMessageBytes, String(held));
  t.true(held > (BODIES_AT_A_TIME * maxMessageBytes) / 2, String(held));
});

test('a caller has half of what all servers may hold, at how many it calls', async (t) => {
  const maxMessageBytes = 100_000;
  const capacity = new BodyCapacity(maxMessageBytes);
  const servers = Array.from({ length: 6 }, () => capacity.share(() => 'greedy'));
  for (const bodies of servers) {
    for (let count = 0; count < 4; count += 1) {
      startReading(maxMessageBytes, {}, bodies).request.write('x'.repeat(maxMessageBytes - 1));
    }
  }
  await settled();
  const held = servers.reduce((sum, { bytes }) => sum + bytes, 0);
  t.true(held <= (BODIES_AT_A_TIME * maxMessageBytes) / 2, String(held));
});

test('the part of a server that is gone goes to the others when the last message for it is gone', async (t) => {
  const maxMessageBytes = 100_000;
  const capacity = new BodyCapacity(maxMessageBytes);
  const [gone, staying] = [capacity.share(undefined), capacity.share(undefined)];
  const read = startReading(maxMessageBytes, {}, gone);
  read.request.write('x'.repeat(maxMessageBytes - 1));
  await settled();
  gone.close();
  read.request.end();
  await settled();
  t.is(gone.bytes, 0);
  const all = Array.from({ length: BODIES_AT_A_TIME }, () => startReading(maxMessageBytes, {}, staying));
  for (const { request } of all) request.write('x'.repeat(maxMessageBytes - 1));
  await settled();
  t.true(all.every(({ results }) => results.length === 0));
});
