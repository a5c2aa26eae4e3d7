/**
 * Creates a folder and its missing parents. Node's own `recursive` option loops forever if a folder exists in which
 * none can be created, as in `/proc`, and a process with such a thread never ends.
 */
import { mkdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Rejects with the system's error. */
export async function makeFolder(path: string, mode: number): Promise<void> {
  for (const folder of [...foldersAbove(path), path]) {
    await mkdir(folder, { mode }).catch((thrown: unknown) => throwUnlessPassed(thrown, folder === path));
  }
}

/** Throws the system's error. */
export function makeFolderSync(path: string, mode: number): void {
  for (const folder of [...foldersAbove(path), path]) {
    try {
      mkdirSync(folder, { mode });
    } catch (thrown) {
      throwUnlessPassed(thrown, folder === path);
    }
  }
}

/** Returns the parents of this folder, the highest first. */
function foldersAbove(path: string): readonly string[] {
  const above = dirname(path);
  return above === path ? [] : [...foldersAbove(above), above];
}

/** Errors for parents are ignored: they may exist, and creating an existing one may be forbidden or impossible. */
function throwUnlessPassed(thrown: unknown, isWanted: boolean): void {
  if (isWanted && codeOf(thrown) !== 'EEXIST') throw thrown;
}

function codeOf(thrown: unknown): unknown {
  return thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
}
