/** The names under which clients know the tools, prompts, resources and tasks of several servers. */
import { createHash } from 'node:crypto';
import type { Member } from './members.ts';

/** Longest name of a tool that all common models and hosts accept. */
export const MAX_NAME_LENGTH = 64;
/** Separates the prefix of a server from its own name of a tool or a prompt. */
export const SEPARATOR = '__';
/** Names that are offered in place of one that does not exist. */
export const MAX_NEAREST = 3;
/** Digits of the hash that ends a shortened name. */
const HASH_DIGITS = 10;

/**
 * Returns the name of a tool or prompt as clients see it. A name that is too long ends with a hash of the whole name: the
 * result depends on nothing else, so it is the same after each start, and two names never become alike.
 */
export function shownName({ prefix }: Pick<Member, 'prefix'>, own: string): string {
  if (prefix === '') return own;
  const whole = `${prefix}${SEPARATOR}${own}`;
  if (whole.length <= MAX_NAME_LENGTH) return whole;
  const hash = createHash('sha256').update(whole).digest('hex').slice(0, HASH_DIGITS);
  const kept = whole.slice(0, MAX_NAME_LENGTH - HASH_DIGITS - 1);
  return `${HIGH_SURROGATE.test(kept) ? kept.slice(0, -1) : kept}_${hash}`;
}

/** The first half of a character, which would be no text without the second. */
const HIGH_SURROGATE = /[\uD800-\uDBFF]$/;

/** The member that a shown name names, and the member's own name. */
export interface OwnName {
  readonly member: Member;
  readonly own: string;
  /** True if the name may have been shortened, so that only the member's list has the whole one. */
  readonly mayBeShortened: boolean;
}

/** Reads a shown name by its prefix, of which the longest counts. Undefined if it has the prefix of no member. */
export function readShownName(members: readonly Member[], shown: string): OwnName | undefined {
  let found: OwnName | undefined;
  for (const member of members) {
    const start = member.prefix + SEPARATOR;
    if (member.prefix === '' || !shown.startsWith(start)) continue;
    if (found !== undefined && found.member.prefix.length >= member.prefix.length) continue;
    const mayBeShortened = shown.length >= MAX_NAME_LENGTH - 1;
    found = { member, own: shown.slice(start.length), mayBeShortened };
  }
  return found;
}

/** Returns the name of a resource whose URI belongs to an earlier server. */
export function prefixedUri({ prefix, name }: Pick<Member, 'prefix' | 'name'>, uri: string): string {
  return `${prefix || encodeURIComponent(name)}+${uri}`;
}

/** Reads a URI that `prefixedUri` has written. */
export function readPrefixedUri(
  members: readonly Member[],
  uri: string,
): { readonly member: Member; readonly own: string } | undefined {
  for (const member of members) {
    const start = prefixedUri(member, '');
    if (uri.startsWith(start)) return { member, own: uri.slice(start.length) };
  }
  return undefined;
}

/** Returns the id of a task as clients see it. Several servers may count their tasks alike. */
export function shownTaskId(member: Member, own: string): string {
  return prefixedUri(member, own);
}
