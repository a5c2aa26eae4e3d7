/** Sets of changes a client wants to hear of: the filter of one `subscriptions/listen`. */
import type { ListenFilter } from '../../mcp/translate/listen-filter.ts';
import { asFields, type Fields } from '../../mcp/vocabulary/payload.ts';

const FLAGS = ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged'] as const;

export type ListFlags = Omit<ListenFilter, 'resourceSubscriptions'>;

/** The lists of which a server with these capabilities announces changes. */
export function announcedLists(capabilities: Fields): ListFlags {
  return {
    toolsListChanged: isSet(capabilities.tools, 'listChanged'),
    promptsListChanged: isSet(capabilities.prompts, 'listChanged'),
    resourcesListChanged: isSet(capabilities.resources, 'listChanged'),
  };
}

export function takesSubscriptions(capabilities: Fields): boolean {
  return isSet(capabilities.resources, 'subscribe');
}

function isSet(capability: unknown, flag: string): boolean {
  return asFields(capability)?.[flag] === true;
}

/** `params.notifications`: what is not asked for is left out. */
export function filterParams(filter: ListenFilter): Fields {
  const flags = FLAGS.filter((flag) => filter[flag]).map((flag) => [flag, true] as const);
  const { resourceSubscriptions } = filter;
  return { ...Object.fromEntries(flags), ...(resourceSubscriptions.length > 0 && { resourceSubscriptions }) };
}

export function isEmptyFilter(filter: ListenFilter): boolean {
  return filter.resourceSubscriptions.length === 0 && !FLAGS.some((flag) => filter[flag]);
}

/** Do both ask for the same, in whatever order? Neither names a resource twice. */
export function isSameFilter(a: ListenFilter, b: ListenFilter): boolean {
  if (FLAGS.some((flag) => a[flag] !== b[flag])) return false;
  if (a.resourceSubscriptions.length !== b.resourceSubscriptions.length) return false;
  const uris = new Set(a.resourceSubscriptions);
  return b.resourceSubscriptions.every((uri) => uris.has(uri));
}

/** What is in both. */
export function commonFilter(a: ListenFilter, b: ListenFilter): ListenFilter {
  const uris = new Set(b.resourceSubscriptions);
  return {
    ...commonFlags(a, b),
    resourceSubscriptions: a.resourceSubscriptions.filter((uri) => uris.has(uri)),
  };
}

export function commonFlags(a: ListFlags, b: ListFlags): ListFlags {
  return {
    toolsListChanged: a.toolsListChanged && b.toolsListChanged,
    promptsListChanged: a.promptsListChanged && b.promptsListChanged,
    resourcesListChanged: a.resourcesListChanged && b.resourcesListChanged,
  };
}
