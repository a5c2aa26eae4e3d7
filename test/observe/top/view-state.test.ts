import test from 'ava';
import { readKeys } from '../../../src/observe/top/keys.ts';
import {
  FIRST_VIEW,
  press,
  type Seen,
  SORTS,
  selectedIn,
  type ViewState,
} from '../../../src/observe/top/view-state.ts';

const SEEN: Seen = { servers: ['a', 'b', 'c'], hiddenLines: 5 };
const [UP, DOWN, HOME, END, PAGE_DOWN] = ['\u001b[A', '\u001b[B', '\u001b[H', '\u001b[F', '\u001b[6~'];

/** The state after these keys. A lone ESC at the end is the key Esc, as after a while. */
function after(typed: string, seen: Seen = SEEN, from: ViewState = FIRST_VIEW): ViewState | 'quit' {
  const { keys, rest } = readKeys(typed);
  let state: ViewState | 'quit' = from;
  for (const key of rest === '\u001b' ? [...keys, { kind: 'escape' } as const] : keys) {
    if (state === 'quit') return state;
    state = press(state, key, seen);
  }
  return state;
}

function stateAfter(typed: string, seen: Seen = SEEN): ViewState {
  const state = after(typed, seen);
  if (state === 'quit') throw new Error(`${JSON.stringify(typed)} quits`);
  return state;
}

test('q quits on every page but where text is typed, and Ctrl-C everywhere', (t) => {
  for (const page of ['', '\r', '?', '\r?']) t.is(after(`${page}q`), 'quit');
  for (const page of ['', '\r', '?', '/x']) t.is(after(`${page}\u0003`), 'quit');
  t.is(stateAfter('/q').filter, 'q');
});

test('arrows, j and k move the selection, which stays within the servers', (t) => {
  const selected = (typed: string) => selectedIn(stateAfter(typed), SEEN.servers);
  t.is(selected(''), 'a');
  t.is(selected(`${DOWN}`), 'b');
  t.is(selected(`jj${UP}`), 'b');
  t.is(selected('jjk'), 'b');
  t.is(selected(`${UP}`), 'a');
  t.is(selected('jjjjj'), 'c');
  t.is(selected(`${END}`), 'c');
  t.is(selected(`${END}${HOME}`), 'a');
  t.is(selected(`${PAGE_DOWN}`), 'c');
});

test('the selection is a server and not a place, and the first one where that server is gone', (t) => {
  const state = stateAfter('j');
  t.is(selectedIn(state, ['c', 'b', 'a']), 'b');
  t.is(selectedIn(state, ['c', 'a']), 'c');
  t.is(selectedIn(state, []), undefined);
});

test('Enter shows the selected server, and Enter or Esc goes back', (t) => {
  t.deepEqual(stateAfter('j\r').page, { kind: 'details', server: 'b', scrolled: 0 });
  t.deepEqual(stateAfter('j\r\r').page, { kind: 'tables' });
  t.deepEqual(stateAfter('j\r\u001b').page, { kind: 'tables' });
  t.is(selectedIn(stateAfter('j\r\r'), SEEN.servers), 'b');
  t.deepEqual(stateAfter('\r', { servers: [], hiddenLines: 0 }).page, { kind: 'tables' });
});

test('arrows scroll the details up to their end', (t) => {
  const scrolled = (typed: string) => {
    const { page } = stateAfter(typed);
    return page.kind === 'details' ? page.scrolled : undefined;
  };
  t.is(scrolled(`\r${DOWN}j`), 2);
  t.is(scrolled(`\r${DOWN}${UP}k`), 0);
  t.is(scrolled(`\r${PAGE_DOWN}`), 5);
  t.is(scrolled(`\r${END}${UP}`), 4);
  t.is(scrolled(`\r${END}${HOME}`), 0);
});

test('s goes through the columns, and r reverses until the next', (t) => {
  t.deepEqual(
    SORTS.map((_, index) => stateAfter('s'.repeat(index)).sort),
    [...SORTS],
  );
  t.is(stateAfter('s'.repeat(SORTS.length)).sort, 'state');
  t.is(stateAfter('r').order, 'reversed');
  t.is(stateAfter('rr').order, 'usual');
  t.like(stateAfter('rs'), { sort: 'name', order: 'usual' });
});

test('/ types a filter, which Enter keeps and Esc clears', (t) => {
  t.like(stateAfter('/ec'), { filter: 'ec', page: { kind: 'typing' } });
  t.is(stateAfter('/日本\u007f').filter, '日');
  t.is(stateAfter('/\u007f').filter, '');
  t.like(stateAfter('/ec\r'), { filter: 'ec', page: { kind: 'tables' } });
  t.like(stateAfter('/ec\u001b'), { filter: '', page: { kind: 'tables' } });
  t.like(stateAfter('/ec\r\u001b'), { filter: '', page: { kind: 'tables' } });
  t.is(stateAfter('/ec\r/h').filter, 'ech');
  t.is(stateAfter(`/${'x'.repeat(1000)}`).filter.length, 60);
  t.is(selectedIn(stateAfter(`/jk${DOWN}`), SEEN.servers), 'b', 'arrows still move');
  t.is(stateAfter(`/jk${DOWN}`).filter, 'jk');
});

test('? and h show the keys, and any other key leads back', (t) => {
  t.is(stateAfter('?').page.kind, 'keys');
  t.is(stateAfter('h').page.kind, 'keys');
  t.is(stateAfter('?x').page.kind, 'tables');
  t.is(stateAfter('??').page.kind, 'tables');
  t.is(stateAfter('\r?\u001b').page.kind, 'details');
});
