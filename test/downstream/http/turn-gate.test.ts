import test from 'ava';
import {
  MAX_BURST_BYTES,
  MAX_HELD_BYTES,
  MAX_WAITING_TURNS,
  type Turn,
  TurnGate,
} from '../../../src/downstream/http/read-post.ts';

function createGate() {
  const gate = new TurnGate();
  const passed: string[] = [];
  const enter = (name: string, kind: Turn['kind'] = 'message', more: Partial<Turn> = {}): boolean => {
    const turn = { kind, bytes: 0, run: () => void passed.push(name), ...more };
    if (!gate.lets(turn.kind)) return gate.hold(turn);
    turn.run();
    return true;
  };
  return { gate, passed, enter };
}

test('lets everything pass at once while it is open', (t) => {
  const { passed, enter } = createGate();
  t.true(enter('a', 'unread'));
  t.true(enter('b'));
  t.true(enter('c', 'answer'));
  t.deepEqual(passed, ['a', 'b', 'c']);
});

test('holds everything while the server is full, then lets it go in order', (t) => {
  const { gate, passed, enter } = createGate();
  gate.close('server');
  for (const [name, kind] of [
    ['a', 'unread'],
    ['b', 'message'],
    ['c', 'answer'],
    ['d', 'message'],
  ] as const) {
    t.true(enter(name, kind));
  }
  t.deepEqual(passed, []);
  gate.open('server');
  t.deepEqual(passed, ['a', 'b', 'c', 'd']);
});

test('holds messages while the client does not read; answers and reading go on', (t) => {
  const { gate, passed, enter } = createGate();
  gate.close('reader');
  enter('message');
  enter('answer', 'answer');
  enter('body', 'unread');
  t.deepEqual(passed, ['answer', 'body']);
  gate.open('reader');
  t.deepEqual(passed, ['answer', 'body', 'message']);
});

test('stays closed until both reasons are gone', (t) => {
  const { gate, passed, enter } = createGate();
  gate.close('reader');
  gate.close('server');
  enter('a');
  gate.open('server');
  t.deepEqual(passed, []);
  gate.open('reader');
  t.deepEqual(passed, ['a']);
});

test('keeps the others waiting, in order, when one that passes fills the server again', (t) => {
  const { gate, passed, enter } = createGate();
  gate.close('server');
  enter('a', 'message', {
    run: () => {
      passed.push('a');
      gate.close('server');
    },
  });
  enter('b');
  gate.open('server');
  enter('c');
  t.deepEqual(passed, ['a']);
  gate.open('server');
  t.deepEqual(passed, ['a', 'b', 'c']);
});

test('leaves bodies unread while much waits in memory', (t) => {
  const { gate, passed, enter } = createGate();
  gate.close('reader');
  enter('big', 'message', { bytes: MAX_HELD_BYTES });
  enter('body', 'unread');
  t.deepEqual(passed, []);
  gate.open('reader');
  t.deepEqual(passed, ['big', 'body']);
});

test('refuses one more than may wait', (t) => {
  const { gate, passed, enter } = createGate();
  gate.close('server');
  for (let count = 0; count < MAX_WAITING_TURNS; count += 1) t.true(enter(String(count)));
  t.false(enter('too many'));
  gate.open('server');
  t.is(passed.length, MAX_WAITING_TURNS);
  t.true(enter('after'));
});

test('opens for good when the client is gone', (t) => {
  const { gate, passed, enter } = createGate();
  gate.close('server');
  enter('a');
  gate.openForGood();
  gate.close('reader');
  enter('b');
  t.deepEqual(passed, ['a', 'b']);
});

test('holds a burst of messages that were being read when it closed, and refuses those beyond it', (t) => {
  const { gate, passed, enter } = createGate();
  gate.close('server');
  const half = { bytes: MAX_BURST_BYTES / 2 };
  t.true(enter('a', 'message', half));
  t.true(enter('b', 'answer', half));
  t.false(enter('c', 'message', { bytes: 1 }));
  t.true(enter('body', 'unread'), 'it waits outside of memory');
  gate.open('server');
  t.deepEqual(passed, ['a', 'b', 'body']);
});

test('holds one message, however large it is', (t) => {
  const { gate, passed, enter } = createGate();
  gate.close('server');
  t.true(enter('huge', 'message', { bytes: 2 * MAX_BURST_BYTES }));
  t.false(enter('another', 'message', { bytes: 1 }));
  gate.open('server');
  t.deepEqual(passed, ['huge']);
});
