import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import test from 'ava';
import { MAX_AHEAD_BYTES, MESSAGES_PER_TURN, SharedInput } from '../../../src/downstream/duplex/connection-peer.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';

const UNTAKEN_TIMEOUT_MS = 4000;

/** An input, what was taken of it, and what was told of its end. */
function openInput({ untakenTimeoutMs = UNTAKEN_TIMEOUT_MS, heldTimeoutMs = 0 } = {}) {
  const input = new PassThrough();
  const clock = new FakeClock();
  const taken: string[] = [];
  const ends: number[] = [];
  const shared: SharedInput = new SharedInput({
    source: input,
    clock,
    untakenTimeoutMs,
    heldTimeoutMs,
    take: (chunk) => {
      taken.push(chunk.toString());
      if (chunk.toString().startsWith('hold')) shared.pauseFor(input);
      return undefined;
    },
    onEnd: (untakenBytes) => ends.push(untakenBytes),
  });
  input.on('data', (chunk: Buffer) => shared.read(chunk));
  for (const end of ['end', 'error']) input.on(end, () => shared.over());
  /** Resolves when it has been read, taken or not. */
  const say = async (text: string): Promise<void> => {
    input.write(text);
    await waitFor(() => input.readableLength === 0 && input.writableLength === 0);
  };
  return { input, clock, shared, taken, ends, say };
}

test('is taken again when the last of those who hold it back lets go, however often each of them held it', async (t) => {
  const { shared, taken, say } = openInput();
  const [one, other] = [{}, {}];
  shared.pauseFor(one);
  shared.pauseFor(one);
  shared.pauseFor(other);
  await say('a');
  shared.resumeFor(one);
  await say('b');
  t.deepEqual(taken, []);
  shared.resumeFor(other);
  t.deepEqual(taken, [], 'not from within');
  await say('c');
  t.deepEqual(taken, ['a', 'b', 'c']);
  shared.resumeFor(other);
  await say('d');
  t.is(taken.join(''), 'abcd');
});

test('what was read ahead is held back again by whoever takes a part of it', async (t) => {
  const { input, shared, taken, say } = openInput();
  await say('hold');
  await say('hold 2');
  await say('rest');
  t.deepEqual(taken, ['hold']);
  shared.resumeFor(input);
  await waitFor(() => taken.length > 1);
  t.deepEqual(taken, ['hold', 'hold 2']);
  shared.resumeFor(input);
  await waitFor(() => taken.length > 2);
  t.deepEqual(taken, ['hold', 'hold 2', 'rest']);
});

test('a client that is not read is given up when nothing of what it has said is taken for too long', async (t) => {
  const { clock, shared, input, ends, say } = openInput({ heldTimeoutMs: 1000 });
  await say('hold');
  clock.advance(10_000);
  t.deepEqual(ends, [], 'it is still read, so its end would be seen');
  const half = 'x'.repeat(MAX_AHEAD_BYTES / 2);
  await say(half);
  await say(half);
  t.true(input.isPaused());
  clock.advance(999);
  // Something is taken, and it is held back again.
  shared.resumeFor(input);
  shared.pauseFor(input);
  clock.advance(1);
  t.deepEqual(ends, [2 * half.length]);
  shared.read(Buffer.from('more'));
  t.deepEqual(ends, [2 * half.length], 'told once');
});

test('a client that is not read has its time anew whenever something is taken', async (t) => {
  const { clock, shared, input, taken, ends, say } = openInput({ heldTimeoutMs: 1000 });
  await say('hold');
  await say('hold');
  await say('x'.repeat(MAX_AHEAD_BYTES));
  clock.advance(999);
  shared.resumeFor(input);
  await waitFor(() => taken.length === 2);
  clock.advance(999);
  t.deepEqual(ends, []);
  shared.resumeFor(input);
  await waitFor(() => !input.isPaused());
  clock.advance(10_000);
  t.deepEqual(ends, []);
});

test('the end is told when there is nothing before it, whoever holds it back', async (t) => {
  const { input, ends, say } = openInput();
  await say('hold');
  input.end();
  await once(input, 'end');
  t.deepEqual(ends, [0]);
});

test('the end is told once, after all that was before it', async (t) => {
  const { input, clock, shared, taken, ends, say } = openInput();
  await say('hold');
  await say('rest');
  input.end();
  await once(input, 'end');
  t.deepEqual(ends, []);
  shared.resumeFor(input);
  await waitFor(() => ends.length > 0);
  t.deepEqual(taken, ['hold', 'rest']);
  t.deepEqual(ends, [0]);
  t.is(clock.pendingTimers, 0);
});

test('the end is told with what is dropped when nothing before it is taken for too long', async (t) => {
  const { input, clock, shared, taken, ends, say } = openInput();
  await say('hold');
  await say('hold 2');
  await say('rest');
  input.end();
  await once(input, 'end');
  clock.advance(UNTAKEN_TIMEOUT_MS - 1);
  shared.resumeFor(input);
  await waitFor(() => taken.length === 2);
  clock.advance(UNTAKEN_TIMEOUT_MS - 1);
  t.deepEqual(ends, [], 'something was taken');
  clock.advance(1);
  t.deepEqual(ends, ['rest'.length]);
  shared.resumeFor(input);
  await new Promise(setImmediate);
  t.is(taken.length, 2);
});

test('without a time limit the end waits for all before it to be taken', async (t) => {
  const { input, clock, shared, taken, ends, say } = openInput({ untakenTimeoutMs: 0 });
  await say('hold');
  await say('rest');
  input.end();
  await once(input, 'end');
  clock.advance(24 * 3_600_000);
  t.deepEqual(ends, []);
  shared.resumeFor(input);
  await waitFor(() => ends.length > 0);
  t.deepEqual(taken, ['hold', 'rest']);
});

test('is read ahead up to a limit, beyond which it stays unread, and is read on when there is capacity', async (t) => {
  const { input, shared, taken, say } = openInput();
  await say('hold');
  const chunk = 'x'.repeat(MAX_AHEAD_BYTES / 4);
  for (let sent = 0; sent < 3; sent += 1) await say(chunk);
  t.false(input.isPaused());
  await say(chunk);
  t.true(input.isPaused());
  input.end('last');
  shared.resumeFor(input);
  await once(input, 'end');
  t.is(taken.join('').length, 4 + MAX_AHEAD_BYTES + 4);
});

test('short pieces are limited, too', async (t) => {
  const { input, say } = openInput();
  await say('hold');
  let pieces = 0;
  while (!input.isPaused()) {
    input.write('x');
    pieces += 1;
  }
  t.is(pieces, MAX_AHEAD_BYTES / 1024);
});

/** An input whose pieces are messages of one byte each, and how many were taken in each turn. */
function openFlooded(bytesOfMessage = 1) {
  const taken: number[] = [0];
  let isPaused = false;
  const shared: SharedInput = new SharedInput({
    source: {
      pause: () => {
        isPaused = true;
      },
      resume: () => {
        isPaused = false;
      },
    },
    clock: new FakeClock(),
    untakenTimeoutMs: UNTAKEN_TIMEOUT_MS,
    heldTimeoutMs: 0,
    take: (piece, maxMessages) => {
      const count = Math.min(piece.length, maxMessages);
      for (let index = 0; index < count; index += 1) shared.tookMessage(bytesOfMessage);
      taken[taken.length - 1] = (taken.at(-1) ?? 0) + count;
      return count < piece.length ? piece.subarray(count) : undefined;
    },
    onEnd: () => undefined,
  });
  const turn = async (): Promise<void> => {
    taken.push(0);
    await new Promise(setImmediate);
  };
  return { shared, taken, turn, isPaused: () => isPaused };
}

test('so many messages are taken in one turn, and the source waits until the others were served', async (t) => {
  const { shared, taken, turn, isPaused } = openFlooded();
  shared.read(Buffer.alloc(2 * MESSAGES_PER_TURN + 5));
  shared.read(Buffer.alloc(7));
  t.true(isPaused());
  await turn();
  await turn();
  t.deepEqual(taken, [MESSAGES_PER_TURN, MESSAGES_PER_TURN, 12]);
  t.false(isPaused());
});

test('a large message counts as several', async (t) => {
  const { shared, taken, turn } = openFlooded(64 * 1024);
  for (let piece = 0; piece < MESSAGES_PER_TURN; piece += 1) shared.read(Buffer.alloc(1));
  await turn();
  t.true((taken[0] ?? 0) < MESSAGES_PER_TURN / 4);
  for (let turns = 0; turns < MESSAGES_PER_TURN; turns += 1) await turn();
  t.is(
    taken.reduce((sum, count) => sum + count, 0),
    MESSAGES_PER_TURN,
  );
});
