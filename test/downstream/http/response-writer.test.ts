import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import test from 'ava';
import {
  endWith,
  FULL_BYTES,
  MAX_QUEUED_BYTES,
  ResponseWriter,
  SLICE_BYTES,
} from '../../../src/downstream/http/response-writer.ts';
import { STALL_MS } from '../../../src/http/reading-watch.ts';

const KIB = 1024;

/** A response over a pipe that takes `capacity` bytes and then no more until somebody reads. */
class NarrowResponse extends EventEmitter {
  readonly writes: Buffer[] = [];
  writableLength = 0;
  destroyed = false;
  writableEnded = false;
  capacity = Number.POSITIVE_INFINITY;

  write(bytes: Buffer): boolean {
    this.writes.push(bytes);
    const taken = Math.min(bytes.length, this.capacity);
    this.capacity -= taken;
    this.writableLength += bytes.length - taken;
    return this.writableLength === 0;
  }

  end(bytes?: Buffer): void {
    if (bytes !== undefined) this.write(bytes);
    this.writableEnded = true;
  }

  destroy(): void {
    this.destroyed = true;
  }

  /** The client reads so many bytes. */
  read(count: number): void {
    const taken = Math.min(count, this.writableLength);
    this.writableLength -= taken;
    this.capacity += count - taken;
    if (this.writableLength === 0) this.emit(this.writableEnded ? 'finish' : 'drain');
  }

  get written(): Buffer {
    return Buffer.concat(this.writes);
  }
}

function createWriter(capacity = Number.POSITIVE_INFINITY) {
  const response = new NarrowResponse();
  response.capacity = capacity;
  let drains = 0;
  const writer = new ResponseWriter(response as unknown as ServerResponse, 0, () => {
    drains += 1;
  });
  return { response, writer, drains: () => drains };
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test('writes what one turn of the event loop brings in one go', async (t) => {
  const { response, writer } = createWriter();
  for (const text of ['a', 'bc', 'd']) t.true(writer.write(Buffer.from(text)));
  t.is(response.writes.length, 0);
  await turn();
  t.deepEqual(response.writes.map(String), ['abcd']);
});

test('passes a lone buffer on without copying it', async (t) => {
  const { response, writer } = createWriter();
  const bytes = Buffer.from('event');
  writer.write(bytes);
  await turn();
  t.is(response.writes[0], bytes);
});

test('ends a short answer with its only write', (t) => {
  const { response, writer } = createWriter();
  writer.end(Buffer.from('body'));
  t.deepEqual(response.writes.map(String), ['body']);
  t.true(response.writableEnded);
});

test('ends after what was written before', (t) => {
  const { response, writer } = createWriter();
  writer.write(Buffer.from('a'));
  writer.end(Buffer.from('b'));
  t.is(response.written.toString(), 'ab');
  t.true(response.writableEnded);
});

test('is full from 256 KiB on and says once when there is capacity again', async (t) => {
  const { response, writer, drains } = createWriter(0);
  t.true(writer.write(Buffer.alloc(FULL_BYTES - 1)));
  t.false(writer.write(Buffer.alloc(1)));
  t.false(writer.write(Buffer.alloc(1)));
  t.true(writer.isFull);
  await turn();
  response.read(FULL_BYTES);
  t.true(writer.isFull);
  t.is(drains(), 0);
  response.read(1);
  t.false(writer.isFull);
  t.is(drains(), 1);
  t.true(writer.write(Buffer.alloc(1)));
});

test('hands the socket a slice at a time and nothing more until it wants more', async (t) => {
  const { response, writer } = createWriter(0);
  writer.write(Buffer.alloc(3 * SLICE_BYTES + 8 * KIB));
  await turn();
  t.deepEqual(
    response.writes.map((bytes) => bytes.length),
    [SLICE_BYTES],
  );
  t.is(writer.queuedBytes, 3 * SLICE_BYTES + 8 * KIB);
  response.read(SLICE_BYTES);
  t.is(response.writes.length, 2);
  writer.write(Buffer.alloc(10));
  await turn();
  t.is(response.writes.length, 2);
});

test('keeps the order and every byte, whatever the sizes and however it is read', async (t) => {
  const { response, writer } = createWriter(1000);
  const parts: Buffer[] = [];
  for (let count = 0; count < 20_000; count += 1) {
    const length = count % 1000 === 0 ? 100 * KIB : count % 37;
    const part = Buffer.alloc(length, count % 251);
    parts.push(part);
    writer.write(part);
    if (count % 100 === 0) {
      await turn();
      response.read(64 * KIB);
    }
  }
  writer.end();
  while (!response.writableEnded) response.read(64 * KIB);
  t.true(response.written.equals(Buffer.concat(parts)));
});

test('ends a big answer only when the socket has taken it all', (t) => {
  const { response, writer, drains } = createWriter(0);
  writer.end(Buffer.alloc(4 * SLICE_BYTES + 1));
  t.true(writer.isFull);
  for (let read = 0; read < 4; read += 1) response.read(SLICE_BYTES);
  t.false(response.writableEnded);
  response.read(SLICE_BYTES);
  t.true(response.writableEnded);
  t.is(response.written.length, 4 * SLICE_BYTES + 1);
  t.is(drains(), 1);
});

test('lets a client go that has read nothing for 30 s', async (t) => {
  const { response, writer } = createWriter(10);
  writer.write(Buffer.alloc(100));
  await turn();
  writer.tick(1000);
  writer.tick(STALL_MS);
  t.false(response.destroyed);
  writer.write(Buffer.alloc(100));
  writer.tick(STALL_MS + 1000);
  t.true(response.destroyed, 'that more is written is no sign of reading');
});

test('keeps a client that reads slowly, however long it takes', async (t) => {
  const { response, writer } = createWriter(0);
  writer.end(Buffer.alloc(10 * SLICE_BYTES));
  let nowMs = 0;
  for (let read = 0; read < 10; read += 1) {
    nowMs += STALL_MS - 1;
    response.read(SLICE_BYTES);
    writer.tick(nowMs);
  }
  t.false(response.destroyed);
  t.true(response.writableEnded);
});

test('keeps a client that reads a large slice slowly: the socket knows how much of it is gone', (t) => {
  const { response, writer } = createWriter(0);
  const handle = { writeQueueSize: SLICE_BYTES };
  Object.assign(response, { socket: { _handle: handle } });
  writer.end(Buffer.alloc(SLICE_BYTES));
  for (let nowMs = 0; nowMs < 10 * STALL_MS; nowMs += STALL_MS - 1) {
    handle.writeQueueSize -= 1;
    writer.tick(nowMs);
  }
  t.false(response.destroyed);
  writer.tick(12 * STALL_MS);
  t.true(response.destroyed);
});

test('an answer of one slice that nobody reads is full until it is gone', (t) => {
  const { response, writer, drains } = createWriter(0);
  writer.end(Buffer.alloc(SLICE_BYTES));
  t.true(response.writableEnded);
  t.true(writer.isFull);
  response.read(SLICE_BYTES);
  t.false(writer.isFull);
  t.is(drains(), 1);
});

test('keeps a client for which nothing waits, for ever', async (t) => {
  const { response, writer } = createWriter();
  writer.write(Buffer.alloc(10));
  await turn();
  for (let nowMs = 0; nowMs < 10 * STALL_MS; nowMs += 1000) writer.tick(nowMs);
  t.false(response.destroyed);
});

test('lets a client go for which more than 8 MiB wait beside the largest message, whatever its size', (t) => {
  const { response, writer } = createWriter(0);
  writer.write(Buffer.alloc(3 * MAX_QUEUED_BYTES));
  // What the server sent in the same moment, such as the answer to a call behind its progress.
  writer.write(Buffer.alloc(MAX_QUEUED_BYTES));
  t.false(response.destroyed);
  writer.write(Buffer.alloc(1));
  t.true(response.destroyed);
});

test('a large message that was read frees no capacity for others', async (t) => {
  const { response, writer } = createWriter();
  writer.write(Buffer.alloc(3 * MAX_QUEUED_BYTES));
  await turn();
  response.capacity = 0;
  for (let n = 0; n < 3; n += 1) writer.write(Buffer.alloc(MAX_QUEUED_BYTES / 2));
  t.false(response.destroyed);
  writer.write(Buffer.alloc(1));
  t.true(response.destroyed);
});

test('writes nothing to a connection that is gone', async (t) => {
  const { response, writer } = createWriter(0);
  writer.write(Buffer.alloc(100 * KIB));
  await turn();
  response.destroy();
  response.emit('drain');
  writer.write(Buffer.alloc(10));
  writer.end();
  await turn();
  t.is(response.writes.length, 1);
  t.false(response.writableEnded);
});

/** Ends a response with a body of this size over a pipe that takes `capacity` bytes. */
function endNarrow(bodyBytes: number, capacity = Number.POSITIVE_INFINITY) {
  const response = new NarrowResponse();
  response.capacity = capacity;
  let drains = 0;
  const create = () =>
    new ResponseWriter(response as unknown as ServerResponse, 0, () => {
      drains += 1;
    });
  const body = Buffer.alloc(bodyBytes, 'x');
  const writer = endWith(response as unknown as ServerResponse, body, create);
  return { response, writer, body, drains: () => drains };
}

test('an answer that the system takes at once needs no writer', (t) => {
  const { response, writer, body } = endNarrow(KIB);
  t.is(writer, undefined);
  t.true(response.writableEnded);
  t.is(response.writes[0], body);
});

test('what the system does not take of an answer is looked after by a writer', (t) => {
  const { response, writer, drains } = endNarrow(FULL_BYTES + KIB, KIB);
  t.true(response.writableEnded);
  t.true(writer?.isFull);
  t.is(writer?.queuedBytes, FULL_BYTES);
  response.read(FULL_BYTES);
  t.false(writer?.isFull);
  t.is(drains(), 1);
});

test('a client that reads nothing of an answer is let go', (t) => {
  const { response, writer } = endNarrow(KIB, 1);
  writer?.tick(1000);
  t.false(response.destroyed);
  writer?.tick(1000 + STALL_MS);
  t.true(response.destroyed);
});

test('an answer of several slices leaves slice by slice', (t) => {
  const { response, writer } = endNarrow(SLICE_BYTES + KIB, SLICE_BYTES);
  t.deepEqual(
    response.writes.map(({ length }) => length),
    [SLICE_BYTES, KIB],
  );
  t.is(writer?.queuedBytes, KIB);
});
