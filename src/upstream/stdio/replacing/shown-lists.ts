/**
 * Compares the lists of a server before and after its process was replaced, so that clients are told of changes and of
 * nothing else.
 */
import { createHash } from 'node:crypto';
import type { ListenFilter } from '../../../mcp/translate/listen-filter.ts';
import {
  LIST_PROMPTS,
  LIST_RESOURCE_TEMPLATES,
  LIST_RESOURCES,
  LIST_TOOLS,
  PROMPTS_CHANGED,
  RESOURCES_CHANGED,
  TOOLS_CHANGED,
} from '../../../mcp/vocabulary/methods.ts';
import { type Fields, readField } from '../../../mcp/vocabulary/payload.ts';
import type { Frame } from '../../../wire/frame.ts';

interface ServerList {
  readonly method: string;
  /** The member of the result that has the items. */
  readonly items: string;
  /** The capability of servers that have this list. */
  readonly capability: 'tools' | 'prompts' | 'resources';
}

const LISTS: readonly ServerList[] = [
  { method: LIST_TOOLS, items: 'tools', capability: 'tools' },
  { method: LIST_PROMPTS, items: 'prompts', capability: 'prompts' },
  { method: LIST_RESOURCES, items: 'resources', capability: 'resources' },
  { method: LIST_RESOURCE_TEMPLATES, items: 'resourceTemplates', capability: 'resources' },
];

/** A notification that a list has changed, and the flag of a subscription that asks for it. */
export interface ListChange {
  readonly method: string;
  readonly flag: Exclude<keyof ListenFilter, 'resourceSubscriptions'>;
}

const CHANGES: Readonly<Record<ServerList['capability'], ListChange>> = {
  tools: { method: TOOLS_CHANGED, flag: 'toolsListChanged' },
  prompts: { method: PROMPTS_CHANGED, flag: 'promptsListChanged' },
  resources: { method: RESOURCES_CHANGED, flag: 'resourcesListChanged' },
};

/** Pages of one list that are compared. A server whose cursors lead in a circle would be asked for ever. */
const MAX_PAGES = 100;
/** The digest of a list that the server does not have. */
const NO_LIST = 'none';

/** The lists of a server: a digest of each list by its method. A list that could not be read is missing. */
export type ListDigests = ReadonlyMap<string, string>;

/** Asks the server. Nothing is called after the process has ended. */
export type AskForList = (method: string, params: Fields, answered: (answer: Frame) => void) => void;

/**
 * Reads all lists of a server with these capabilities; undefined: they are not known. Calls `done` once, unless the
 * server leaves a request unanswered. The digests fill up as answers come.
 */
export function readLists(capabilities: Fields | undefined, ask: AskForList, done: () => void): ListDigests {
  const digests = new Map<string, string>();
  const lists = LISTS.filter(({ capability }) => capabilities === undefined || capabilities[capability] !== undefined);
  for (const { method } of LISTS) if (!lists.some((list) => list.method === method)) digests.set(method, NO_LIST);
  let left = lists.length;
  if (left === 0) queueMicrotask(done);
  for (const list of lists) {
    readList(list, ask, (digest) => {
      digests.set(list.method, digest);
      left -= 1;
      if (left === 0) done();
    });
  }
  return digests;
}

function readList({ method, items }: ServerList, ask: AskForList, done: (digest: string) => void): void {
  const hash = createHash('sha256');
  let pages = 0;
  const take = (answer: Frame): void => {
    if (answer.kind !== 'result') return done(pages === 0 ? NO_LIST : hash.digest('hex'));
    pages += 1;
    const listed = readField(answer, items);
    // A list that is too large to be parsed is compared as it is written.
    hash.update(listed === undefined ? answer.bytes.subarray(answer.payloadStart) : JSON.stringify(listed));
    const cursor = readField(answer, 'nextCursor');
    if (typeof cursor !== 'string' || pages === MAX_PAGES) return done(hash.digest('hex'));
    ask(method, { cursor }, take);
  };
  ask(method, {}, take);
}

/** Returns the notifications for the lists that differ. A list that could not be read before may have changed. */
export function changesBetween(before: ListDigests, after: ListDigests): readonly ListChange[] {
  const changed = LISTS.filter(({ method }) => before.get(method) !== after.get(method));
  return [...new Set(changed.map(({ capability }) => CHANGES[capability]))];
}
