/** What every part of the reading of one file has at hand, and how texts of the file come to their meaning. */
import { isAbsolute, join, resolve } from 'node:path';
import type { ConfigNode, Path } from './config-tree.ts';
import type { FileReport } from './file-report.ts';
import type { Readers } from './found-file.ts';
import type { ExpandedText } from './variables.ts';

export interface EntryContext {
  readonly report: FileReport;
  readonly variables: { readonly expand: (text: string, own?: ReadonlySet<string>) => ExpandedText };
  readonly readers: Readers;
  readonly homeFolder: string;
  /** What relative paths are relative to. */
  readonly workspaceFolder: string;
  /** Remembers that this file was read, too. */
  readonly include: (path: string) => void;
}

/** The text with its variables; undefined: a mistake, which has been reported. */
export function expandText(
  node: Extract<ConfigNode, { kind: 'text' }>,
  path: Path,
  { report, variables }: EntryContext,
): string | undefined {
  const expanded = variables.expand(node.value);
  if (!expanded.ok) {
    report.mistake(node.at, path, expanded.problem);
    return undefined;
  }
  if (expanded.hasUnknown === true) report.warn('kept', path);
  if (expanded.text.includes('\0')) {
    report.mistake(node.at, path, 'has a character with the code 0, which no program and no server can be given.');
    return undefined;
  }
  return expanded.text;
}

/** Plain values with all variables expanded, objects without prototypes. A text that cannot be expanded is left empty. */
export function toPlain(node: ConfigNode, path: Path, context: EntryContext): unknown {
  switch (node.kind) {
    case 'text':
      return expandText(node, path, context) ?? '';
    case 'list':
      return node.items.map((item, index) => toPlain(item, [...path, index], context));
    case 'object': {
      reportRepeated(node, path, context);
      const plain: Record<string, unknown> = Object.create(null);
      for (const [key, member] of node.members) plain[key] = toPlain(member, [...path, key], context);
      return plain;
    }
    case 'null':
      return null;
    case 'date':
      return new Date(0);
    default:
      return node.value;
  }
}

/** Hosts take the last of them, people read the first. */
export function reportRepeated(
  node: Extract<ConfigNode, { kind: 'object' }>,
  path: Path,
  { report }: Pick<EntryContext, 'report'>,
): void {
  for (const { key, at } of node.repeated) {
    report.mistake(at, [...path, key], 'stands here a second time; leave one of them out.');
  }
}

/** Relative to the workspace, or to the home folder after `~/`. */
export function resolvePath(
  path: string,
  { homeFolder, workspaceFolder }: Pick<EntryContext, 'homeFolder' | 'workspaceFolder'>,
): string {
  if (path === '~' || /^~[/\\]/.test(path)) return join(homeFolder, path.slice(1));
  return isAbsolute(path) ? path : resolve(workspaceFolder, path);
}
