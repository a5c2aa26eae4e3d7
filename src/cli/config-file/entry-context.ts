/** The context shared by all code that reads one file, and the expansion of variables in its texts. */
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
  /** The base folder of relative paths. */
  readonly workspaceFolder: string;
  /** Records that another file was read. */
  readonly include: (path: string) => void;
}

/** Returns the text with its variables expanded, or undefined after reporting a mistake. */
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

/**
 * Returns a plain value with all variables expanded. Objects have no prototype. A text that cannot be expanded is
 * empty.
 */
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

/** Reports repeated keys. Hosts use the last value, but a person is likely to read the first. */
export function reportRepeated(
  node: Extract<ConfigNode, { kind: 'object' }>,
  path: Path,
  { report }: Pick<EntryContext, 'report'>,
): void {
  for (const { key, at } of node.repeated) {
    report.mistake(at, [...path, key], 'stands here a second time; leave one of them out.');
  }
}

/** Resolves a path relative to the workspace folder, or to the home folder after `~/`. */
export function resolvePath(
  path: string,
  { homeFolder, workspaceFolder }: Pick<EntryContext, 'homeFolder' | 'workspaceFolder'>,
): string {
  if (path === '~' || /^~[/\\]/.test(path)) return join(homeFolder, path.slice(1));
  return isAbsolute(path) ? path : resolve(workspaceFolder, path);
}
