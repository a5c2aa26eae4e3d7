/** Finds the server that a name or a URI belongs to, from what is known of all servers' lists. */
import type { ListItem, ListKind } from './lists.ts';
import { RESOURCES, readWhole, TEMPLATES, TOOLS } from './lists.ts';
import type { MemberLists } from './member-lists.ts';
import type { Member } from './members.ts';
import { readPrefixedUri, readShownName, shownName } from './names.ts';
import { fitOf } from './templates.ts';

/**
 * - `found`: a server, and its own name for what is wanted.
 * - `unlisted`: these servers may have it, but their lists were never read, or are out of date.
 * - `unknown`: no server has it, as far as their lists tell.
 */
export type Owner =
  | { readonly kind: 'found'; readonly member: Member; readonly own: string }
  | { readonly kind: 'unlisted'; readonly members: readonly Member[]; readonly kinds: readonly ListKind[] }
  | { readonly kind: 'unknown' };

const UNKNOWN: Owner = { kind: 'unknown' };

/** Returns the server with this tool or prompt. */
export function ownerOfName(lists: MemberLists, members: readonly Member[], kind: ListKind, shown: string): Owner {
  for (const member of members) {
    const item = lists.find(member, kind, shown);
    if (item !== undefined) return { kind: 'found', member, own: item.key };
  }
  const read = readShownName(members, shown);
  if (read !== undefined) return ownerByPrefix(lists, read, kind);
  const unprefixed = members.filter(({ prefix }) => prefix === '');
  const [only, ...others] = unprefixed;
  if (only === undefined) return UNKNOWN;
  // A list that is out of date proves nothing.
  const unproven = unprefixed.filter((member) => !lists.isFresh(member, kind));
  if (unproven.length === 0) return UNKNOWN;
  const isOnly = others.length === 0 && lists.itemsOf(only, kind) === undefined;
  return isOnly ? { kind: 'found', member: only, own: shown } : { kind: 'unlisted', members: unproven, kinds: [kind] };
}

/** A server whose list was never read may have it. One whose list is out of date may have it by now. */
function ownerByPrefix(
  lists: MemberLists,
  { member, own, mayBeShortened }: NonNullable<ReturnType<typeof readShownName>>,
  kind: ListKind,
): Owner {
  if (lists.isFresh(member, kind)) return UNKNOWN;
  const isListed = lists.itemsOf(member, kind) !== undefined;
  if (mayBeShortened || isListed) return { kind: 'unlisted', members: [member], kinds: [kind] };
  return { kind: 'found', member, own };
}

/** Returns the server with this resource: the one that lists it, or the one whose template fits best. */
export function ownerOfUri(lists: MemberLists, members: readonly Member[], uri: string): Owner {
  const prefixed = readPrefixedUri(members, uri);
  if (prefixed !== undefined) return { kind: 'found', ...prefixed };
  for (const member of members) {
    if (lists.find(member, RESOURCES, uri) !== undefined) return { kind: 'found', member, own: uri };
  }
  for (const member of members) if (uiUrisOf(lists, member).has(uri)) return { kind: 'found', member, own: uri };
  const never = members.filter(
    (member) => lists.itemsOf(member, RESOURCES) === undefined || lists.itemsOf(member, TEMPLATES) === undefined,
  );
  if (never.length > 0) return { kind: 'unlisted', members: never, kinds: [RESOURCES, TEMPLATES] };
  const fitting = bestTemplate(lists, members, uri);
  return fitting === undefined ? UNKNOWN : { kind: 'found', member: fitting, own: uri };
}

/** Returns the server of this template, as a completion names it. */
export function ownerOfTemplate(lists: MemberLists, members: readonly Member[], template: string): Owner {
  const prefixed = readPrefixedUri(members, template);
  if (prefixed !== undefined) return { kind: 'found', ...prefixed };
  for (const member of members) {
    if (lists.find(member, TEMPLATES, template) !== undefined) return { kind: 'found', member, own: template };
  }
  return ownerOfUri(lists, members, template);
}

function bestTemplate(lists: MemberLists, members: readonly Member[], uri: string): Member | undefined {
  let best: Member | undefined;
  let bestFit = -1;
  for (const member of members) {
    for (const { key } of lists.itemsOf(member, TEMPLATES) ?? []) {
      const fit = fitOf(key, uri);
      if (fit === undefined || fit <= bestFit) continue;
      best = member;
      bestFit = fit;
    }
  }
  return best;
}

/** Pages of tools by their server's list, which is replaced as a whole when it changes. */
const uiUris = new WeakMap<readonly ListItem[], ReadonlySet<string>>();
const NONE: ReadonlySet<string> = new Set();

/** Returns the URIs of the pages that a server's tools are shown with (MCP Apps), which need not be in its list of resources. */
export function uiUrisOf(lists: MemberLists, member: Member): ReadonlySet<string> {
  const tools = lists.itemsOf(member, TOOLS);
  if (tools === undefined) return NONE;
  let uris = uiUris.get(tools);
  if (uris === undefined) {
    uris = new Set(tools.flatMap((tool) => uiUriOf(tool) ?? []));
    uiUris.set(tools, uris);
  }
  return uris;
}

const UI_MARK = Buffer.from('esourceUri');

/** Most tools have no page, which a search over the bytes shows without parsing. */
function uiUriOf(tool: ListItem): string | undefined {
  if (!tool.bytes.includes(UI_MARK)) return undefined;
  const meta = readWhole(tool)?._meta as Record<string, unknown> | undefined;
  const uri = (meta?.ui as Record<string, unknown> | undefined)?.resourceUri ?? meta?.['ui/resourceUri'];
  return typeof uri === 'string' ? uri : undefined;
}

/** Returns the pages of a server that an earlier server has under the same URI. */
export function laterUiUris(lists: MemberLists, members: readonly Member[], member: Member): ReadonlySet<string> {
  const own = uiUrisOf(lists, member);
  if (own.size === 0) return NONE;
  const earlier = members.slice(0, members.indexOf(member));
  return new Set([...own].filter((uri) => earlier.some((other) => uiUrisOf(lists, other).has(uri))));
}

/** Returns the names that clients see, for an error that has to name the nearest ones. */
export function shownNames(lists: MemberLists, members: readonly Member[], kind: ListKind): readonly string[] {
  return members.flatMap((member) => (lists.itemsOf(member, kind) ?? []).map(({ key }) => shownName(member, key)));
}
