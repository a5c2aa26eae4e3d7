import { lstatSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { watch } from 'chokidar';
import type { WatchedPath } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import { toPrintable } from '../printable.ts';
import { SettledChanges } from './settled-changes.ts';
import { findTargets } from './watched-path.ts';

/**
 * Time after which a new folder is looked at again. The watcher reads a folder before it watches it, and a file that is
 * created in between is noticed only when the folder changes again.
 */
const LOOK_AGAIN_MS = 1000;
/** Longest path in the log. */
const MAX_SHOWN_PATH = 200;

/** Files that have changed together. */
export interface ChangedFiles {
  /** One of the files, relative to the working directory. */
  readonly example: string;
  readonly files: number;
}

export interface WatchFilesOptions {
  readonly paths: readonly WatchedPath[];
  readonly deps: Pick<Deps, 'clock' | 'log'>;
  readonly changed: (change: ChangedFiles) => void;
}

export interface FileWatch {
  close(): Promise<void>;
}

/**
 * Watches files until it is closed. Files that are written to another name and renamed, removed or created again count
 * as changed, and so do folders.
 */
export function watchFiles({ paths, deps, changed }: WatchFilesOptions): FileWatch {
  const { clock, log } = deps;
  const targets = paths.flatMap(findTargets);
  for (const { base, exists } of targets) {
    if (!exists) log.warn(`${showPath(base)} of --watch does not exist; it is watched as soon as it is created`);
  }
  const changes = new SettledChanges(clock, (settled) =>
    changed({ example: showPath(latestOf(settled)), files: settled.size }),
  );
  const counts = (path: string): boolean => targets.some((target) => target.counts(path));
  const watcher = watch(
    targets.map(({ root }) => root),
    {
      ignoreInitial: true,
      // Links could lead in circles. What a link leads to is watched if it is named itself.
      followSymlinks: false,
      // Otherwise the end of a temporary file is told too late to be part of the same save.
      atomic: false,
      ignored: (path, kind) => !targets.some((target) => target.isNeeded(path, kind)),
    },
  );
  watcher.on('all', (event, path) => {
    if (event === 'addDir') lookAgain(path);
    if (counts(path)) changes.add(path);
  });
  /** Cancel the second looks at new folders. */
  const looks = new Set<() => void>();
  const lookAgain = (folder: string): void => {
    const cancel = clock.after(LOOK_AGAIN_MS, () => {
      looks.delete(cancel);
      const known = new Set(watcher.getWatched()[folder]);
      const missed = namesIn(folder).filter((name) => !known.has(name));
      for (const path of missed.map((name) => join(folder, name)).filter(counts)) changes.add(path);
    });
    looks.add(cancel);
  };
  watcher.on('ready', () => log.debug('the files of --watch are watched'));
  watcher.on('error', (error) => log.warn(explain(error)));
  return {
    close() {
      for (const cancel of looks) cancel();
      changes.close();
      return watcher.close();
    },
  };
}

/** Returns the names in a folder, none if it is gone already. */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Returns the path that was changed last. Folders and temporary files of editors say less than the file that was saved. */
function latestOf(paths: ReadonlySet<string>): string {
  let latest = { path: '', changedMs: Number.NEGATIVE_INFINITY };
  for (const path of paths) {
    const changedMs = lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (changedMs >= latest.changedMs) latest = { path, changedMs };
  }
  return latest.path;
}

function showPath(path: string): string {
  return toPrintable(relative('', path) || '.', MAX_SHOWN_PATH);
}

function explain(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ENOSPC':
      return 'The system watches no more files, so some changes below --watch are not noticed. Watch fewer folders, or raise the limit: sysctl fs.inotify.max_user_watches=524288';
    case 'EMFILE':
      return 'No more files can be opened to watch them, so some changes below --watch are not noticed. Watch fewer folders, or raise the limit: ulimit -n, or on Linux sysctl fs.inotify.max_user_instances=1024';
    default:
      return `Some changes below --watch may not be noticed: ${error instanceof Error ? error.message : 'unknown error'}`;
  }
}
