/** Composes the lists of several servers to one. */
import { encodeJson } from '../mcp/vocabulary/payload.ts';
import { replaceSpans } from '../wire/frame.ts';
import { findUnmistakable } from '../wire/json/outline.ts';
import type { Edit } from '../wire/json/scan-json.ts';
import { decodeCursor, encodeCursor, type ListPosition } from './cursor.ts';
import { type ListItem, type ListKind, renamed, TOOLS } from './lists.ts';
import { type MemberLists, shownKey } from './member-lists.ts';
import type { Member } from './members.ts';
import { prefixedUri } from './names.ts';
import { laterUiUris } from './routing.ts';

/** Bytes of the items of one page. Few clients ask for a second page, so one is as large as most of them take. */
export const MAX_PAGE_BYTES = 4 * 1024 * 1024;

/** An item as clients see it. */
export interface ShownItem {
  readonly member: Member;
  readonly item: ListItem;
  /** The name or URI that clients see. */
  readonly shown: string;
  /** The item with that name. */
  readonly bytes: Buffer;
}

export interface ComposedPage {
  readonly items: readonly ShownItem[];
  readonly nextCursor: string | undefined;
}

export interface ComposeOptions {
  readonly lists: MemberLists;
  /** The servers in the order of the file. */
  readonly members: readonly Member[];
  readonly kind: ListKind;
  /** Called for an item that is left out, because an earlier server has the same name. */
  readonly conflict: (shown: string, first: Member, second: Member) => void;
  /** Returns true for items that are listed. Default: all. */
  readonly isListed?: ((item: ShownItem) => boolean) | undefined;
}

/** Returns all items of all servers, in the order of the file and of the servers' own lists. */
export function* composeList({ lists, members, kind, conflict }: ComposeOptions): Generator<ShownItem, undefined> {
  const owners = new Map<string, Member>();
  for (const member of members) {
    const movedPages = kind === TOOLS ? laterUiUris(lists, members, member) : undefined;
    for (const item of lists.itemsOf(member, kind) ?? []) {
      let shown = shownKey(member, kind, item);
      const owner = owners.get(shown);
      if (owner !== undefined && (kind.key === 'name' || owner === member)) {
        if (owner !== member) conflict(shown, owner, member);
        continue;
      }
      if (owner !== undefined) shown = prefixedUri(member, item.key);
      owners.set(shown, member);
      const named = renamed(item, shown);
      const bytes = movedPages === undefined || movedPages.size === 0 ? named : withPage(named, member, movedPages);
      yield { member, item, shown, bytes };
    }
  }
}

/** Returns the page at a cursor. Undefined if the cursor is not of this list, or its server is not there anymore. */
export function composePage(
  options: ComposeOptions,
  cursor: string | undefined,
  maxBytes = MAX_PAGE_BYTES,
): ComposedPage | undefined {
  const { kind, members } = options;
  const position = cursor === undefined ? undefined : decodeCursor(kind.method, cursor);
  const first = members.findIndex(({ name }) => name === position?.server);
  if (cursor !== undefined && (position === undefined || first === -1)) return undefined;
  const items: ShownItem[] = [];
  let bytes = 0;
  let current: Member | undefined;
  let shown = 0;
  for (const item of composeList(options)) {
    if (options.isListed?.(item) === false) continue;
    if (item.member !== current) {
      current = item.member;
      shown = 0;
    }
    shown += 1;
    if (position !== undefined && isBefore(position, first, { index: members.indexOf(current), shown })) continue;
    bytes += item.bytes.length + 1;
    if (bytes > maxBytes && items.length > 0) {
      const next: ListPosition = { server: current.name, shown: shown - 1 };
      return { items, nextCursor: encodeCursor(kind.method, next) };
    }
    items.push(item);
  }
  return { items, nextCursor: undefined };
}

function isBefore(
  position: ListPosition,
  first: number,
  item: { readonly index: number; readonly shown: number },
): boolean {
  return item.index < first || (item.index === first && item.shown <= position.shown);
}

/** Names a page of the tool's (MCP Apps) as clients have to ask for it. */
function withPage(tool: Buffer, member: Member, moved: ReadonlySet<string>): Buffer {
  const meta = findUnmistakable({ bytes: tool }, 0, '_meta');
  if (typeof meta !== 'object') return tool;
  const ui = findUnmistakable({ bytes: tool }, meta.start, 'ui');
  const places = [
    typeof ui === 'object' ? findUnmistakable({ bytes: tool }, ui.start, 'resourceUri') : undefined,
    findUnmistakable({ bytes: tool }, meta.start, 'ui/resourceUri'),
  ];
  const edits: Edit[] = places
    .filter((place) => typeof place === 'object')
    .flatMap((place) => {
      const uri: unknown = JSON.parse(tool.toString('utf8', place.start, place.end));
      return typeof uri === 'string' && moved.has(uri)
        ? [{ ...place, replacement: encodeJson(prefixedUri(member, uri)) }]
        : [];
    })
    .sort((a, b) => a.start - b.start);
  return edits.length === 0 ? tool : replaceSpans(tool, edits);
}

const OPEN = Buffer.from('[');
const BETWEEN = Buffer.from(',');
const CLOSE = Buffer.from(']');

/** Writes items as the result of a request for a page. `more` are further members of the result. */
export function pageResult(
  { items: member }: ListKind,
  { items, nextCursor }: { readonly items: readonly Buffer[]; readonly nextCursor: string | undefined },
  more: object = {},
): Buffer {
  const list = items.flatMap((bytes, index) => [index === 0 ? OPEN : BETWEEN, bytes]);
  const rest = JSON.stringify({ ...more, ...(nextCursor !== undefined && { nextCursor }) });
  const tail = rest === '{}' ? '}' : `,${rest.slice(1)}`;
  return Buffer.concat([
    Buffer.from(`{"${member}":`),
    ...(list.length === 0 ? [OPEN] : list),
    CLOSE,
    Buffer.from(tail),
  ]);
}
