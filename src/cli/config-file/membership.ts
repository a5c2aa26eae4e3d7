/** Reads the keys under `portage` in an entry that say what part a server has in the aggregate. */

import type { WrittenMembership } from './config-file.ts';
import { type ConfigNode, KIND_NAMES, type Path, type Position } from './config-tree.ts';
import { type EntryContext, expandText } from './entry-context.ts';

export const MEMBERSHIP_KEYS = ['aggregate', 'prefix', 'alwaysShow'] as const;

/**
 * Limit of a prefix. Many hosts accept 64 characters for the name of a tool, and most of them should be left for the
 * tool's own name.
 */
const MAX_PREFIX_LENGTH = 40;
const PREFIX = new RegExp(`^[A-Za-z0-9_-]{0,${MAX_PREFIX_LENGTH}}$`);
/** The prefix of a server whose name has no character that the name of a tool may have. */
const NAMELESS = 'server';
/** More favorites would not be read, and clients would search for none of them. */
const MAX_ALWAYS_SHOWN = 1000;

interface MembershipContext extends EntryContext {
  /** The name of the server, and the position of its entry. */
  readonly server: { readonly name: string; readonly at: Position };
}

/**
 * Returns undefined for a server that is left out of the aggregate.
 * @param path the path of the key `portage`
 */
export function readMembership(
  members: ReadonlyMap<string, ConfigNode>,
  path: Path,
  context: MembershipContext,
): WrittenMembership | undefined {
  const { report, server } = context;
  const aggregate = members.get('aggregate');
  if (aggregate !== undefined && aggregate.kind !== 'boolean') {
    const problem = `expected true or false, got ${KIND_NAMES[aggregate.kind]}.`;
    report.mistake(aggregate.at, [...path, 'aggregate'], problem);
  }
  const prefix = members.get('prefix');
  const membership: WrittenMembership = {
    prefix: prefix === undefined ? toPrefix(server.name) : readPrefix(prefix, [...path, 'prefix'], context),
    alwaysShow: readAlwaysShow(members, path, context),
    place:
      prefix === undefined
        ? report.placeOf(server.at, path.slice(0, -1))
        : report.placeOf(prefix.at, [...path, 'prefix']),
  };
  return aggregate?.kind === 'boolean' && !aggregate.value ? undefined : membership;
}

function toPrefix(name: string): string {
  const prefix = name
    .replaceAll(/[^A-Za-z0-9_-]+/g, '-')
    .slice(0, MAX_PREFIX_LENGTH)
    .replaceAll(/^-+|-+$/g, '');
  return prefix === '' ? NAMELESS : prefix;
}

function readPrefix(node: ConfigNode, place: Path, context: EntryContext): string {
  const { report } = context;
  if (node.kind !== 'text') {
    report.mistake(node.at, place, `expected a string, got ${KIND_NAMES[node.kind]}.`);
    return '';
  }
  const prefix = expandText(node, place, context) ?? '';
  if (PREFIX.test(prefix)) return prefix;
  const expected = `at most ${MAX_PREFIX_LENGTH} letters, digits, "_" and "-", or "" for no prefix`;
  report.mistake(node.at, place, `expected ${expected}; got something else.`);
  return '';
}

function readAlwaysShow(
  members: ReadonlyMap<string, ConfigNode>,
  path: Path,
  context: EntryContext,
): readonly string[] {
  const { report } = context;
  const [key, node] = [...members].find(([name]) => name === 'alwaysShow' || name === 'always-show') ?? [];
  if (key === undefined || node === undefined) return [];
  const place = [...path, key];
  if (node.kind !== 'list') {
    report.mistake(node.at, place, `expected an array of names of tools, got ${KIND_NAMES[node.kind]}.`);
    return [];
  }
  if (node.items.length > MAX_ALWAYS_SHOWN) {
    report.mistake(node.at, place, `expected at most ${MAX_ALWAYS_SHOWN} names of tools.`);
    return [];
  }
  return node.items.flatMap((item, index) => {
    const name = item.kind === 'text' ? expandText(item, [...place, index], context) : undefined;
    if (item.kind !== 'text' || name === '') {
      const got = item.kind === 'text' ? 'an empty text' : KIND_NAMES[item.kind];
      report.mistake(item.at, [...place, index], `expected the name of a tool, got ${got}.`);
    }
    return name === undefined || name === '' ? [] : [name];
  });
}
