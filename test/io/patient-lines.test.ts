import test from 'ava';
import { MAX_WAITING_BYTES, PatientLines } from '../../src/io/patient-lines.ts';
import { waitFor } from '../support/wait-for.ts';

/** A pipe that takes as many bytes as it has capacity for. */
function pipe({ capacity = Infinity } = {}) {
  const state = { capacity, text: '', tries: 0, fault: undefined as string | undefined };
  const dropped: number[] = [];
  const lines: PatientLines = new PatientLines({
    fd: 2,
    onDropped: (count) => {
      dropped.push(count);
      lines.write(`lost ${count}\n`);
    },
    write: (_, bytes) => {
      state.tries += 1;
      if (state.fault !== undefined) throw Object.assign(new Error(state.fault), { code: state.fault });
      if (state.capacity === 0) throw Object.assign(new Error('full'), { code: 'EAGAIN' });
      const taken = Math.min(state.capacity, bytes.length);
      state.text += bytes.toString('latin1', 0, taken);
      state.capacity -= taken;
      return taken;
    },
  });
  return { state, dropped, lines };
}

test('a line is out before write returns', (t) => {
  const { state, lines } = pipe();
  lines.write('one\n');
  lines.write('two\n');
  t.is(state.text, 'one\ntwo\n');
});

test('lines that cannot be written wait, in order and without a byte lost, until there is some', async (t) => {
  const { state, dropped, lines } = pipe({ capacity: 6 });
  for (const line of ['one\n', 'two\n', 'three\n']) lines.write(line);
  t.is(state.text, 'one\ntw');
  state.capacity = 5;
  await waitFor(() => state.text === 'one\ntwo\nthr');
  state.capacity = Infinity;
  await waitFor(() => state.text === 'one\ntwo\nthree\n');
  t.deepEqual(dropped, []);
});

test('what waits is bounded: lines beyond that are dropped, and their number is told when there is capacity', async (t) => {
  const { state, dropped, lines } = pipe({ capacity: 0 });
  const line = `${'x'.repeat(1023)}\n`;
  const kept = MAX_WAITING_BYTES / line.length;
  for (let count = 0; count < kept + 7; count++) lines.write(line);
  lines.write('short enough, but later than what was lost\n');
  state.capacity = Infinity;
  await waitFor(() => dropped.length > 0);
  t.deepEqual(dropped, [8]);
  t.is(state.text, `${line.repeat(kept)}lost 8\n`);
  lines.write('after\n');
  t.true(state.text.endsWith('lost 8\nafter\n'));
});

test('what waits is written at the end, and the number of lost lines after it', (t) => {
  const { state, lines } = pipe({ capacity: 0 });
  lines.write('first\n');
  lines.write('x'.repeat(MAX_WAITING_BYTES));
  state.capacity = Infinity;
  lines.flushSync();
  t.is(state.text, 'first\nlost 1\n');
});

test('a reader that sleeps does not hold up the end', (t) => {
  const { state, lines } = pipe({ capacity: 0 });
  lines.write('never read\n');
  lines.flushSync();
  t.true(state.tries <= 102, 'every 5 ms for half a second, besides the first');
  t.is(state.text, '');
});

test('a reader that is gone is no reason to fail, and nothing is kept for it', (t) => {
  const { state, dropped, lines } = pipe();
  state.fault = 'EPIPE';
  t.notThrows(() => lines.write('unread\n'));
  t.notThrows(() => lines.write('x'.repeat(2 * MAX_WAITING_BYTES)));
  lines.flushSync();
  t.is(state.text, '');
  t.deepEqual(dropped, []);
});
