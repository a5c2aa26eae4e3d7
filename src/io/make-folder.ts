/**
 * Makes a folder, and those above it that are missing. Node's own `recursive` goes on for ever where a folder is there and
 * nothing can be made in it, as in `/proc`, and a process whose thread does that never ends.
 */
import { mkdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Rejects with what the system says. */
export async function makeFolder(path: string, mode: number): Promise<void> {
  for (const folder of [...foldersAbove(path), path]) {
    await mkdir(folder, { mode }).catch((thrown: unknown) => throwUnlessPassed(thrown, folder === path));
  }
}

/** Throws what the system says. */
export function makeFolderSync(path: string, mode: number): void {
  for (const folder of [...foldersAbove(path), path]) {
    try {
      mkdirSync(folder, { mode });
    } catch (thrown) {
      throwUnlessPassed(thrown, folder === path);
    }
  }
}

/** The folders above this one, the highest first. */
function foldersAbove(path: string): readonly string[] {
  const above = dirname(path);
  return above === path ? [] : [...foldersAbove(above), above];
}

/** Folders above may be there, and forbid or be unable to make what is there already. */
function throwUnlessPassed(thrown: unknown, isWanted: boolean): void {
  if (isWanted && codeOf(thrown) !== 'EEXIST') throw thrown;
}

function codeOf(thrown: unknown): unknown {
  return thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
}
