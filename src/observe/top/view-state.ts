/** The choices of the terminal view's user, and the keys that change them. */
import type { Key } from './keys.ts';

/** Orders of the servers, as `s` goes through them. */
export const SORTS = ['state', 'name', 'open calls', 'calls a minute', 'errors', 'p95'] as const;
export type Sort = (typeof SORTS)[number];

export interface ViewState {
  readonly page: Page;
  /** Only what contains this text is shown. */
  readonly filter: string;
  readonly sort: Sort;
  /** `usual`: names from A to Z, and otherwise what is most urgent or most first. */
  readonly order: 'usual' | 'reversed';
  /** Name of the selected server; undefined: the first one. */
  readonly selected: string | undefined;
}

/**
 * - `tables`: the servers, clients and calls.
 * - `typing`: the same, while the filter is typed.
 * - `details`: everything about a server, from the line that has been scrolled to.
 * - `keys`: what the keys do, until another key leads `back`.
 */
export type Page =
  | { readonly kind: 'tables' | 'typing' }
  | { readonly kind: 'details'; readonly server: string; readonly scrolled: number }
  | { readonly kind: 'keys'; readonly back: Page };

/** The parts of the screen that keys depend on. */
export interface Seen {
  /** Names of the listed servers, in their order. */
  readonly servers: readonly string[];
  /** Lines of the details that do not fit, and can be scrolled to. */
  readonly hiddenLines: number;
}

export const FIRST_VIEW: ViewState = {
  page: { kind: 'tables' },
  filter: '',
  sort: 'state',
  order: 'usual',
  selected: undefined,
};

const TABLES: Page = { kind: 'tables' };
/** Limit of the filter, in characters; no line shows more. */
const MAX_FILTER = 60;
/** Servers or lines by which PageUp and PageDown move. */
const PAGE = 10;

/** Returns the selected server: the first one, if none is selected or the selected one is not listed. */
export function selectedIn({ selected }: ViewState, servers: readonly string[]): string | undefined {
  return selected !== undefined && servers.includes(selected) ? selected : servers[0];
}

/** Returns the state after a key. */
export function press(state: ViewState, key: Key, seen: Seen): ViewState | 'quit' {
  if (key.kind === 'interrupt') return 'quit';
  const { page } = state;
  if (page.kind === 'typing') return type(state, key, seen);
  if (key.kind === 'text' && (key.text === 'q' || key.text === 'Q')) return 'quit';
  if (page.kind === 'keys') return { ...state, page: page.back };
  if (key.kind === 'text' && (key.text === '?' || key.text === 'h')) {
    return { ...state, page: { kind: 'keys', back: page } };
  }
  const moved = move(state, key, seen);
  if (moved !== undefined) return moved;
  const leads = key.kind === 'enter' || key.kind === 'escape';
  if (page.kind === 'details') return leads ? { ...state, page: TABLES } : state;
  return choose(state, key, seen);
}

function type(state: ViewState, key: Key, seen: Seen): ViewState {
  switch (key.kind) {
    case 'text':
      return { ...state, filter: [...state.filter, key.text].slice(0, MAX_FILTER).join('') };
    case 'backspace':
      return { ...state, filter: [...state.filter].slice(0, -1).join('') };
    case 'enter':
      return { ...state, page: TABLES };
    case 'escape':
      return { ...state, page: TABLES, filter: '' };
    default:
      return move(state, key, seen) ?? state;
  }
}

/** A key in the tables that neither moves nor quits. */
function choose(state: ViewState, key: Key, { servers }: Seen): ViewState {
  if (key.kind === 'escape') return { ...state, filter: '' };
  if (key.kind === 'enter') {
    const server = selectedIn(state, servers);
    if (server === undefined) return state;
    return { ...state, selected: server, page: { kind: 'details', server, scrolled: 0 } };
  }
  if (key.kind !== 'text') return state;
  switch (key.text) {
    case 's':
      return { ...state, sort: SORTS[(SORTS.indexOf(state.sort) + 1) % SORTS.length] ?? 'state', order: 'usual' };
    case 'r':
      return { ...state, order: state.order === 'usual' ? 'reversed' : 'usual' };
    case '/':
      return { ...state, page: { kind: 'typing' } };
    default:
      return state;
  }
}

/** Moves the selection, or scrolls the details. Returns undefined if the key does not move. */
function move(state: ViewState, key: Key, { servers, hiddenLines }: Seen): ViewState | undefined {
  const by = distanceOf(key, state.page.kind);
  if (by === undefined) return undefined;
  if (state.page.kind === 'details') {
    const scrolled = Math.max(0, Math.min(hiddenLines, state.page.scrolled + by));
    return { ...state, page: { ...state.page, scrolled } };
  }
  const place = servers.indexOf(selectedIn(state, servers) ?? '');
  const selected = servers[Math.max(0, Math.min(servers.length - 1, place + by))];
  return { ...state, selected };
}

function distanceOf(key: Key, page: Page['kind']): number | undefined {
  switch (key.kind) {
    case 'up':
      return -1;
    case 'down':
      return 1;
    case 'page-up':
      return -PAGE;
    case 'page-down':
      return PAGE;
    case 'home':
      return Number.NEGATIVE_INFINITY;
    case 'end':
      return Number.POSITIVE_INFINITY;
    case 'text':
      if (page === 'typing') return undefined;
      return key.text === 'k' ? -1 : key.text === 'j' ? 1 : undefined;
    default:
      return undefined;
  }
}
