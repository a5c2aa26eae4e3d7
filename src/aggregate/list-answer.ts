/** Answers requests for lists, in either era. */
import { encodeJson } from '../mcp/vocabulary/payload.ts';
import type { RpcError } from '../mcp/vocabulary/rpc-errors.ts';
import type { Frame } from '../wire/frame.ts';
import type { Aggregate } from './aggregate.ts';
import { INVALID_CURSOR } from './answers.ts';
import { composePage, pageResult } from './compose-list.ts';
import { findText } from './edit-request.ts';
import { type ListKind, TOOLS } from './lists.ts';
import type { MemberLists } from './member-lists.ts';
import type { Member } from './members.ts';
import { SEARCH_TOOL_DEFINITIONS } from './search/search-tools.ts';

export interface ListRequest {
  readonly aggregate: Aggregate;
  readonly lists: MemberLists;
  readonly members: readonly Member[];
  readonly kind: ListKind;
  readonly request: Frame;
}

/** Returns the JSON text of the result. The servers whose lists are not remembered are asked first. */
export async function answerList(
  { aggregate, lists, members, kind, request }: ListRequest,
  more: object = {},
): Promise<Buffer | RpcError> {
  const cursor = findText(request, 'cursor')?.value;
  const isSearched = aggregate.search !== undefined && kind === TOOLS;
  const asked = isSearched ? members.filter(({ alwaysShow }) => alwaysShow.length > 0) : members;
  // The pages after the first continue a list that was read before, if this process has read it.
  const isRead = asked.every((member) => lists.itemsOf(member, kind) !== undefined);
  if (cursor === undefined || !isRead) await lists.load(asked, [kind]);
  const page = composePage(
    {
      lists,
      members: asked,
      kind,
      conflict: (shown, first, second) => aggregate.conflict(shown, first, second),
      isListed: isSearched ? ({ member, item }) => member.alwaysShow.includes(item.key) : undefined,
    },
    cursor,
  );
  if (page === undefined) return INVALID_CURSOR;
  const items = page.items.map(({ bytes }) => bytes);
  const first = isSearched && cursor === undefined ? SEARCH_TOOL_DEFINITIONS.map(encodeJson) : [];
  return pageResult(kind, { items: [...first, ...items], nextCursor: page.nextCursor }, more);
}
