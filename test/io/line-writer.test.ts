import { Writable } from 'node:stream';
import test from 'ava';
import { HIGH_WATER_BYTES, JOIN_BELOW_BYTES, LineWriter } from '../../src/io/line-writer.ts';

/** A stream that keeps what it gets and finishes writes when told to. */
class Sink extends Writable {
  /** One entry per system call a pipe would make. */
  readonly writes: Buffer[][] = [];
  #isHeld: boolean;
  #release: (() => void) | undefined;

  constructor(mode: 'free' | 'held' = 'free') {
    super();
    this.#isHeld = mode === 'held';
  }

  get text(): string {
    return Buffer.concat(this.writes.flat()).toString();
  }

  release(): void {
    this.#isHeld = false;
    this.#release?.();
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#take([chunk], done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.#take(
      chunks.map(({ chunk }) => chunk),
      done,
    );
  }

  #take(chunks: Buffer[], done: () => void): void {
    this.writes.push(chunks);
    if (this.#isHeld) this.#release = done;
    else done();
  }
}

const nextTurn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

test('writes the first message of a turn at once', (t) => {
  const sink = new Sink();
  new LineWriter(sink, () => undefined).send(Buffer.from('{}'));
  t.is(sink.text, '{}\n');
});

test('writes what follows in the same turn together, in order', async (t) => {
  const sink = new Sink();
  const writer = new LineWriter(sink, () => undefined);
  for (let message = 0; message < 100; message++) writer.send(Buffer.from(String(message)));
  await nextTurn();
  t.is(sink.writes.length, 2);
  t.is(sink.text, Array.from({ length: 100 }, (_, message) => `${message}\n`).join(''));
});

test('after a turn with several messages the first of the next waits for the others, until one comes alone', async (t) => {
  const sink = new Sink();
  const writer = new LineWriter(sink, () => undefined);
  const send = (...lines: readonly string[]): void => lines.forEach((line) => void writer.send(Buffer.from(line)));
  send('1', '2');
  await nextTurn();
  send('3', '4');
  t.is(sink.text, '1\n2\n');
  await nextTurn();
  t.is(sink.text, '1\n2\n3\n4\n');
  t.is(sink.writes.length, 3);
  send('5');
  await nextTurn();
  send('6');
  t.is(sink.text, '1\n2\n3\n4\n5\n6\n');
});

test('hands large messages over without copying them, small ones around them in order', async (t) => {
  const sink = new Sink();
  const writer = new LineWriter(sink, () => undefined);
  const large = Buffer.alloc(JOIN_BELOW_BYTES, 'L');
  for (const line of [large, Buffer.from('a'), large, Buffer.from('b'), Buffer.from('c'), large]) writer.send(line);
  await nextTurn();
  t.is(sink.text, `${large}\na\n${large}\nb\nc\n${large}\n`);
  t.is(sink.writes.flat().filter((chunk) => chunk.buffer === large.buffer).length, 3);
});

test('is full above the high-water mark of the stream and says once when there is capacity', async (t) => {
  const sink = new Sink('held');
  let drains = 0;
  const writer = new LineWriter(sink, () => drains++);
  t.false(writer.send(Buffer.alloc(HIGH_WATER_BYTES)));
  t.false(writer.send(Buffer.from('taken all the same')));
  await nextTurn();
  t.is(drains, 0);
  sink.release();
  await nextTurn();
  t.is(drains, 1);
  t.true(sink.text.endsWith('taken all the same\n'));
});

test('is full when too much waits for the end of the turn, and tells of capacity even if the stream takes all at once', async (t) => {
  const sink = new Sink();
  let drains = 0;
  const writer = new LineWriter(sink, () => drains++);
  const line = Buffer.alloc(JOIN_BELOW_BYTES - 1);
  const answers = Array.from({ length: 5 }, () => writer.send(line));
  t.deepEqual(answers, [true, true, true, true, false]);
  t.is(drains, 0);
  await nextTurn();
  t.is(drains, 1);
  t.true(writer.send(line));
});

test('tells of no capacity nobody waits for', async (t) => {
  const sink = new Sink('held');
  let drains = 0;
  new LineWriter(sink, () => drains++).send(Buffer.alloc(20_000));
  sink.release();
  await nextTurn();
  t.is(drains, 0);
});

test('writes what is kept when flushed', (t) => {
  const sink = new Sink();
  const writer = new LineWriter(sink, () => undefined);
  writer.send(Buffer.from('first'));
  writer.send(Buffer.from('second'));
  writer.flush();
  t.is(sink.text, 'first\nsecond\n');
});

test('swallows what comes after the end of the stream', async (t) => {
  const sink = new Sink();
  const writer = new LineWriter(sink, () => undefined);
  writer.send(Buffer.from('before'));
  writer.send(Buffer.from('kept until the end of the turn'));
  sink.destroy();
  t.true(writer.send(Buffer.alloc(HIGH_WATER_BYTES)));
  await nextTurn();
  t.is(sink.text, 'before\n');
});
