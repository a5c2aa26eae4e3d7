/** The lists of servers, page by page: their items are kept as bytes, of which only the name may change. */
import {
  LIST_PROMPTS,
  LIST_RESOURCE_TEMPLATES,
  LIST_RESOURCES,
  LIST_TOOLS,
  PROMPTS_CHANGED,
  RESOURCES_CHANGED,
  TOOLS_CHANGED,
} from '../mcp/vocabulary/methods.ts';
import { encodeJson, type Fields, parseSpan, readFields } from '../mcp/vocabulary/payload.ts';
import { type Frame, replaceSpans } from '../wire/frame.ts';
import { itemSpans } from '../wire/json/object-editor.ts';
import { findUnmistakable } from '../wire/json/outline.ts';
import type { Span } from '../wire/json/scan-json.ts';

/** A kind of list that servers have. */
export interface ListKind {
  readonly method: string;
  /** The member of the result that holds the items. */
  readonly items: 'tools' | 'prompts' | 'resources' | 'resourceTemplates' | 'tasks';
  /** The member by which an item is known. */
  readonly key: 'name' | 'uri' | 'uriTemplate' | 'taskId';
  /** The notification that the list has changed; undefined if there is none. */
  readonly changed: string | undefined;
  /** The capability of a server that has such a list. */
  readonly capability: 'tools' | 'prompts' | 'resources' | 'tasks';
}

/** A list that servers offer to everybody. */
interface OfferedList extends ListKind {
  readonly changed: string;
}

export const TOOLS: OfferedList = {
  method: LIST_TOOLS,
  items: 'tools',
  key: 'name',
  changed: TOOLS_CHANGED,
  capability: 'tools',
};
export const PROMPTS: OfferedList = {
  method: LIST_PROMPTS,
  items: 'prompts',
  key: 'name',
  changed: PROMPTS_CHANGED,
  capability: 'prompts',
};
export const RESOURCES: OfferedList = {
  method: LIST_RESOURCES,
  items: 'resources',
  key: 'uri',
  changed: RESOURCES_CHANGED,
  capability: 'resources',
};
export const TEMPLATES: OfferedList = {
  method: LIST_RESOURCE_TEMPLATES,
  items: 'resourceTemplates',
  key: 'uriTemplate',
  changed: RESOURCES_CHANGED,
  capability: 'resources',
};

/** The tasks of one session, of which only its own servers know. [spec 2025-11-25 basic/utilities/tasks] */
export const TASKS: ListKind = {
  method: 'tasks/list',
  items: 'tasks',
  key: 'taskId',
  changed: undefined,
  capability: 'tasks',
};

export const LIST_KINDS: readonly OfferedList[] = [TOOLS, PROMPTS, RESOURCES, TEMPLATES];

const byMethod = new Map<string, ListKind>([...LIST_KINDS, TASKS].map((kind) => [kind.method, kind]));

export function listKindOf(method: string): ListKind | undefined {
  return byMethod.get(method);
}

/** An item of a list, as its server wrote it. */
export interface ListItem {
  /** The server's own name or URI of the item. */
  readonly key: string;
  readonly bytes: Buffer;
  /** The key's token within the bytes. */
  readonly keyAt: Span;
}

export interface ListPage {
  readonly items: readonly ListItem[];
  readonly nextCursor: string | undefined;
  /** Time for which the server says that the page stays valid; undefined in the legacy era, which has no such time. */
  readonly ttlMs: number | undefined;
}

/**
 * Reads a page of a list. Undefined if the answer is none. Items whose name is missing, or can be read in several ways, are
 * left out, because nobody could ask for them.
 */
export function readListPage(answer: Frame, { items: member, key }: ListKind): ListPage | undefined {
  if (answer.kind !== 'result') return undefined;
  const { bytes } = answer;
  const list = findUnmistakable(answer, answer.payloadStart, member);
  const spans = typeof list === 'object' ? itemSpans(bytes, list.start) : undefined;
  if (spans === undefined) return undefined;
  // The page must not stay in memory for the sake of a single item.
  const items = spans.flatMap((span) => readItem(Buffer.from(bytes.subarray(span.start, span.end)), key) ?? []);
  const { nextCursor, ttlMs } = readFields(answer, ['nextCursor', 'ttlMs']);
  return {
    items,
    nextCursor: typeof nextCursor === 'string' ? nextCursor : undefined,
    ttlMs: typeof ttlMs === 'number' && ttlMs >= 0 ? ttlMs : undefined,
  };
}

function readItem(bytes: Buffer, key: string): ListItem | undefined {
  const keyAt = findUnmistakable({ bytes }, 0, key);
  const value = typeof keyAt === 'object' ? parseSpan(bytes, keyAt) : undefined;
  if (typeof keyAt !== 'object' || typeof value !== 'string' || value === '') return undefined;
  return { key: value, bytes, keyAt };
}

/** Returns the item under another name; all its other bytes stay. */
export function renamed({ key, bytes, keyAt }: ListItem, shown: string): Buffer {
  return shown === key ? bytes : replaceSpans(bytes, [{ ...keyAt, replacement: encodeJson(shown) }]);
}

/** Parses an item as a whole. Undefined if it is no object, or has too many values to be read. */
export function readWhole({ bytes }: ListItem): Fields | undefined {
  const value = parseSpan(bytes, { start: 0, end: bytes.length });
  return typeof value === 'object' && value !== null ? (value as Fields) : undefined;
}
