import { lstatSync, realpathSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import picomatch from 'picomatch';
import type { WatchedPath } from '../config/server.ts';

/** Folders that hold other people's code or the history of a project. Their thousands of files change with every install. */
const IGNORED = new Set(['node_modules', '.git']);
/** Files that editors write beside the one that is edited: Vim, Emacs, GNOME and JetBrains. */
const OF_EDITORS = /~$|\.sw[a-z]$|^4913$|^\.#|^#.*#$|^\.goutputstream-|___jb_(?:tmp|old)___$/;

/** The part of a file's status that decides if it is watched. */
interface FileKind {
  isFile(): boolean;
}

/** A file, a folder with all below it, or the files that a pattern matches. All paths are absolute. */
export interface WatchTarget {
  /** The file or folder, or the folder that the pattern begins in. */
  readonly base: string;
  /**
   * The folder to watch. It exists, and contains the base where that is possible, so that a base which is removed and
   * created again is noticed.
   */
  readonly root: string;
  /** True if the base exists. */
  readonly exists: boolean;
  /** Returns true for a path whose changes count. */
  counts(path: string): boolean;
  /**
   * Returns true for a path that has to be looked at.
   * @param kind undefined if it is not known yet
   */
  isNeeded(path: string, kind: FileKind | undefined): boolean;
}

/** Returns what to watch for a path or a pattern as the user has written it. */
export function findTargets({ folder, path }: WatchedPath): readonly WatchTarget[] {
  const whole = resolve(folder, path);
  // A file may be named like a pattern: `[id].ts`.
  const scanned = exists(whole) ? undefined : picomatch.scan(toSlashes(path));
  if (scanned?.isGlob !== true) return targetsAt(whole, EVERYTHING);
  const matches = picomatch(scanned.glob, { dot: true });
  const depth = scanned.glob.includes('**') ? Number.POSITIVE_INFINITY : scanned.glob.split('/').length;
  return targetsAt(resolve(folder, scanned.base), { matches, depth });
}

interface Selection {
  /** Takes the path of a file below the base, with slashes. */
  readonly matches: (path: string) => boolean;
  /** Number of names in the longest path that can match. */
  readonly depth: number;
}

const EVERYTHING: Selection = { matches: () => true, depth: Number.POSITIVE_INFINITY };

/** A link as the base stands for what it leads to. Other links are watched themselves and not followed. */
function targetsAt(path: string, selection: Selection): readonly WatchTarget[] {
  const ancestor = existingAncestor(path);
  const base = join(realpathSync(ancestor), relative(ancestor, path));
  const target = createTarget(base, selection);
  if (!exists(base) || !lstatSync(base).isSymbolicLink()) return [target];
  try {
    return [target, createTarget(realpathSync(base), selection)];
  } catch {
    // The link leads nowhere yet.
    return [target];
  }
}

function createTarget(base: string, { matches, depth }: Selection): WatchTarget {
  const isAll = matches === EVERYTHING.matches;
  const namesBelow = (path: string): readonly string[] | undefined => {
    const below = relative(base, path);
    if (below === '') return [];
    const names = below.split(sep);
    return names[0] === '..' ||
      names.some((name) => IGNORED.has(name) || OF_EDITORS.test(name)) ||
      resolve(base, below) !== path
      ? undefined
      : names;
  };
  return {
    base,
    // The working directory is not removed while the bridge runs in it, and the folder above may be large.
    root: base === process.cwd() ? base : existingAncestor(base),
    exists: exists(base),
    counts(path) {
      const names = namesBelow(path);
      if (names === undefined) return false;
      return names.length === 0 ? isAll : matches(names.join('/'));
    },
    isNeeded(path, kind) {
      if (path === base || base.startsWith(path.endsWith(sep) ? path : `${path}${sep}`)) return true;
      const names = namesBelow(path);
      if (names === undefined || names.length > depth) return false;
      return isAll || kind?.isFile() !== true || matches(names.join('/'));
    },
  };
}

/** Returns the nearest folder above the path that exists. */
function existingAncestor(path: string): string {
  const parent = dirname(path);
  return parent === path || exists(parent) ? parent : existingAncestor(parent);
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function toSlashes(path: string): string {
  return sep === '\\' ? path.replaceAll('\\', '/') : path;
}
