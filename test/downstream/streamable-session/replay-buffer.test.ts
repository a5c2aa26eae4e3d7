import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import fc from 'fast-check';
import { ReplayBuffer, type ReplayLimits } from '../../../src/downstream/streamable-session/replay-buffer.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const LARGE: ReplayLimits = { maxEvents: 100, maxBytes: 1000, maxAgeMs: 1000 };

class Recorded {
  readonly clock = new FakeClock();
  readonly buffer: ReplayBuffer;

  constructor(limits: Partial<ReplayLimits> = {}) {
    this.buffer = new ReplayBuffer(this.clock, { ...LARGE, ...limits });
  }

  add(stream: number, sequence: number, text = `${stream}/${sequence}`): this {
    this.buffer.add({ stream, sequence }, Buffer.from(text));
    return this;
  }

  after(stream: number, sequence: number, lastSequence?: number): readonly string[] | undefined {
    return this.buffer.after({ stream, sequence }, lastSequence)?.map(String);
  }
}

test('replays what followed on the stream, in order, and nothing of other streams', (t) => {
  const recorded = new Recorded().add(1, 1).add(2, 1).add(1, 2).add(0, 1).add(2, 2).add(1, 3);
  t.deepEqual(recorded.after(1, 1), ['1/2', '1/3']);
  t.deepEqual(recorded.after(2, 1), ['2/2']);
  t.deepEqual(recorded.after(2, 2), []);
  t.deepEqual(recorded.after(0, 1), []);
});

test('knows nothing of streams and events that never were', (t) => {
  const recorded = new Recorded().add(1, 1);
  t.is(recorded.after(1, 2), undefined);
  t.is(recorded.after(2, 1), undefined);
  t.is(recorded.after(2, 1, 0), undefined);
  t.is(new Recorded().after(0, 1), undefined);
});

test('an event that was sent last is known to the stream even when the buffer has lost it', (t) => {
  const recorded = new Recorded({ maxEvents: 1 }).add(1, 1).add(2, 1);
  t.deepEqual(recorded.after(1, 1, 1), []);
  t.is(recorded.after(1, 1), undefined, 'without the stream nobody knows whether more followed');
  t.is(recorded.after(1, 2, 1), undefined);
});

test('a gap is no replay: something that followed is gone', (t) => {
  const recorded = new Recorded({ maxEvents: 2 }).add(1, 1).add(1, 2).add(1, 3).add(1, 4);
  t.is(recorded.after(1, 1), undefined);
  t.deepEqual(recorded.after(1, 2), ['1/3', '1/4']);
  t.is(recorded.after(1, 3, 5), undefined, 'the stream has sent one that is not here');
});

test('keeps at most so many events', (t) => {
  const recorded = new Recorded({ maxEvents: 3 });
  for (let sequence = 1; sequence <= 10; sequence += 1) recorded.add(1, sequence);
  t.is(recorded.after(1, 6), undefined);
  t.deepEqual(recorded.after(1, 7), ['1/8', '1/9', '1/10']);
});

test('keeps at most so many bytes', (t) => {
  const recorded = new Recorded({ maxBytes: 30 });
  for (let sequence = 1; sequence <= 5; sequence += 1) recorded.add(1, sequence, 'x'.repeat(10));
  t.is(recorded.after(1, 1), undefined);
  t.is(recorded.after(1, 2)?.length, 3);
});

test('keeps nothing for longer than the age allows, but for the newest', (t) => {
  const recorded = new Recorded({ maxAgeMs: 100 }).add(1, 1);
  recorded.clock.advance(60);
  recorded.add(1, 2).add(2, 1);
  recorded.clock.advance(60);
  t.deepEqual(recorded.after(1, 1), ['1/2']);
  t.is(recorded.after(1, 0, 2), undefined);
  recorded.clock.advance(1000);
  t.is(recorded.after(1, 1), undefined);
  t.deepEqual(recorded.after(2, 0, 1), ['2/1']);
});

test('the newest event stays even if it alone is larger than the limit', (t) => {
  const recorded = new Recorded({ maxBytes: 10 }).add(1, 1).add(1, 2, 'x'.repeat(50));
  t.deepEqual(recorded.after(1, 1), ['x'.repeat(50)]);
  recorded.add(2, 1);
  t.is(recorded.after(1, 1), undefined);
  t.deepEqual(recorded.after(2, 0, 1), ['2/1']);
});

/** Events that were sent together, as they are encoded: each ends with an empty line. */
const runOf = (stream: number, sequence: number, count: number): Buffer =>
  Buffer.from(Array.from({ length: count }, (_, index) => `${stream}/${sequence + index}\n\n`).join(''));

test('events that were sent together are replayed from any of them on', (t) => {
  const recorded = new Recorded();
  recorded.buffer.add({ stream: 1, sequence: 1 }, runOf(1, 1, 3), 3);
  recorded.buffer.add({ stream: 2, sequence: 1 }, runOf(2, 1, 2), 2);
  recorded.buffer.add({ stream: 1, sequence: 4 }, runOf(1, 4, 2), 2);
  t.is(recorded.after(1, 0, 5)?.join(''), '1/1\n\n1/2\n\n1/3\n\n1/4\n\n1/5\n\n');
  t.is(recorded.after(1, 2, 5)?.join(''), '1/3\n\n1/4\n\n1/5\n\n');
  t.is(recorded.after(1, 3, 5)?.join(''), '1/4\n\n1/5\n\n');
  t.is(recorded.after(1, 4)?.join(''), '1/5\n\n');
  t.deepEqual(recorded.after(1, 5), []);
  t.is(recorded.after(1, 6), undefined);
  t.is(recorded.after(2, 1)?.join(''), '2/2\n\n');
});

test('of events that were sent together exactly as many are kept as of others', (t) => {
  const run = fc.record({ stream: fc.integer({ min: 1, max: 2 }), count: fc.integer({ min: 1, max: 9 }) });
  fc.assert(
    fc.property(fc.array(run, { maxLength: 20 }), fc.integer({ min: 1, max: 12 }), (runs, maxEvents) => {
      const together = new Recorded({ maxEvents, maxBytes: 1e6 });
      const apart = new Recorded({ maxEvents, maxBytes: 1e6 });
      const last = [0, 0, 0];
      for (const { stream, count } of runs) {
        const sequence = (last[stream] ?? 0) + 1;
        together.buffer.add({ stream, sequence }, runOf(stream, sequence, count), count);
        for (let each = sequence; each < sequence + count; each += 1) apart.add(stream, each, `${stream}/${each}\n\n`);
        last[stream] = sequence + count - 1;
      }
      for (const stream of [1, 2]) {
        for (let sequence = 0; sequence <= (last[stream] ?? 0) + 1; sequence += 1) {
          const missed = together.after(stream, sequence, last[stream]);
          t.deepEqual(missed?.join(''), apart.after(stream, sequence, last[stream])?.join(''));
        }
      }
    }),
    { numRuns: 300 },
  );
});

test('the bytes of a run count until all of it is let go', (t) => {
  const recorded = new Recorded({ maxEvents: 3, maxBytes: 30 });
  recorded.buffer.add({ stream: 1, sequence: 1 }, runOf(1, 1, 5), 5);
  t.is(recorded.after(1, 2)?.join(''), '1/3\n\n1/4\n\n1/5\n\n');
  recorded.buffer.add({ stream: 1, sequence: 6 }, runOf(1, 6, 2), 2);
  t.is(recorded.after(1, 4), undefined, 'five events of 25 bytes were kept for three of them');
  t.is(recorded.after(1, 5)?.join(''), '1/6\n\n1/7\n\n');
});

test('what may be sent together is a small part of what is kept', (t) => {
  t.is(new Recorded({ maxBytes: 4096 }).buffer.maxRunBytes, 512);
  t.is(new Recorded({ maxBytes: 5 * 1024 * 1024 }).buffer.maxRunBytes, 64 * 1024);
});

test('lets go of the bytes of events it no longer keeps', async (t) => {
  const recorded = new Recorded({ maxBytes: 10 });
  const kept: WeakRef<Buffer>[] = [];
  for (let sequence = 1; sequence <= 5; sequence += 1) {
    const bytes = Buffer.alloc(10_000);
    kept.push(new WeakRef(bytes));
    recorded.buffer.add({ stream: 1, sequence }, bytes);
  }
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  t.is(kept.filter((bytes) => bytes.deref() !== undefined).length, 1);
  t.is(recorded.after(1, 4)?.length, 1);
});
