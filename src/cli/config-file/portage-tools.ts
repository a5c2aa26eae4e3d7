/** Reads `portage.tools`: how clients see single tools of a server, by the names that the server gives them. */

import { suggest } from '../../suggest.ts';
import { parseToolName } from '../parse/servers/tool-value.ts';
import type { WrittenTool } from './config-file.ts';
import { type ConfigNode, KIND_NAMES, type Path } from './config-tree.ts';
import { type EntryContext, expandText, reportRepeated } from './entry-context.ts';
import { quoteKey } from './file-report.ts';

/** The key under `portage`. */
export const TOOLS = 'tools';

type Key = Exclude<keyof WrittenTool, 'place' | 'isHidden'> | 'hidden';
const KEYS: readonly Key[] = ['name', 'title', 'description', 'hidden', 'callers'];
/** A longer key is not a misspelled one, and comparing it would take long. */
const LONGEST_KEY = 24;

export function readPortageTools(
  node: ConfigNode | undefined,
  path: Path,
  context: EntryContext,
): ReadonlyMap<string, WrittenTool> {
  const tools = new Map<string, WrittenTool>();
  for (const [name, member] of membersOf(node, path, context)) {
    tools.set(name, readTool(member, [...path, name], context));
  }
  return tools;
}

function membersOf(node: ConfigNode | undefined, path: Path, context: EntryContext): ReadonlyMap<string, ConfigNode> {
  if (node?.kind === 'object') {
    reportRepeated(node, path, context);
    return node.members;
  }
  if (node !== undefined) context.report.mistake(node.at, path, `expected an object, got ${KIND_NAMES[node.kind]}.`);
  return new Map();
}

function readTool(node: ConfigNode, path: Path, context: EntryContext): WrittenTool {
  const members = membersOf(node, path, context);
  for (const [key, { at }] of members) {
    if (KEYS.some((known) => known === key)) continue;
    const [meant] = key.length > LONGEST_KEY ? [] : suggest(key, KEYS);
    const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
    context.report.mistake(at, [...path, key], `a tool has no setting ${quoteKey(key)}${hint === '' ? '.' : hint}`);
  }
  const textOf = (key: Key) => readText(members.get(key), [...path, key], context);
  return {
    place: context.report.placeOf(node.at, path),
    name: readName(members.get('name'), [...path, 'name'], context),
    title: textOf('title'),
    description: textOf('description'),
    isHidden: readHidden(members.get('hidden'), [...path, 'hidden'], context),
    callers: readCallers(members.get('callers'), [...path, 'callers'], context),
  };
}

function readText(node: ConfigNode | undefined, path: Path, context: EntryContext): string | undefined {
  if (node === undefined) return undefined;
  if (node.kind === 'text') return expandText(node, path, context);
  context.report.mistake(node.at, path, `expected a string, got ${KIND_NAMES[node.kind]}.`);
  return undefined;
}

function readName(node: ConfigNode | undefined, path: Path, context: EntryContext): string | undefined {
  const text = readText(node, path, context);
  const parsed = text === undefined ? undefined : parseToolName(text);
  if (parsed === undefined || node === undefined) return undefined;
  if (parsed.ok) return parsed.value;
  context.report.mistake(node.at, path, `expected ${parsed.expected}, got something else.`);
  return undefined;
}

function readHidden(node: ConfigNode | undefined, path: Path, { report }: EntryContext): boolean {
  if (node === undefined) return false;
  if (node.kind === 'boolean') return node.value;
  report.mistake(node.at, path, `expected true or false, got ${KIND_NAMES[node.kind]}.`);
  return false;
}

/** Reads the names of the callers for whom alone a server or a tool exists; undefined: for all. */
export function readCallers(
  node: ConfigNode | undefined,
  path: Path,
  context: EntryContext,
): readonly string[] | undefined {
  if (node === undefined) return undefined;
  if (node.kind !== 'list') {
    context.report.mistake(node.at, path, `expected an array of names of callers, got ${KIND_NAMES[node.kind]}.`);
    return undefined;
  }
  return node.items.flatMap((item, index) => {
    const place = [...path, index];
    const name = item.kind === 'text' ? expandText(item, place, context) : undefined;
    if (name !== undefined && name !== '') return [name];
    if (item.kind !== 'text' || name === '') {
      const got = item.kind === 'text' ? 'an empty text' : KIND_NAMES[item.kind];
      context.report.mistake(item.at, place, `expected the name of a caller, got ${got}.`);
    }
    return [];
  });
}
