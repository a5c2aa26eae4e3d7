/**
 * The folder of the usage files. Each process has a file, whose name tells its owner: `<id>.<host>.<pid>.json`. A
 * process may claim the file of one that has ended, by renaming it to its own name.
 */
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { OPEN_TO_READ } from '../../io/bounded-file.ts';
import { hasEnded, type OwningProcess, type ThisProcess } from '../../io/owning-process.ts';
import { parseUsage, type Usage, UsageFault } from './usage.ts';
import { UsageRows } from './usage-rows.ts';

/** Limit of a usage file; the bridge writes none that is larger. */
export const MAX_FILE_BYTES = 16 * 1024 * 1024;
/**
 * Owners write their files every few minutes. An owner that has not for this long counts as gone, if that cannot be
 * seen otherwise: on another machine, in another container, or when its process id was reused.
 */
export const STALE_MS = 60 * 60_000;

export function usageFolderIn(stateDirectory: string): string {
  return join(stateDirectory, 'usage');
}

export interface FileName extends OwningProcess {
  readonly id: string;
}

export function fileNameOf({ id, host, pid }: FileName, ending: 'json' | 'tmp'): string {
  return `${id}.${host}.${pid}.${ending}`;
}

/** Parses a file name; undefined: it is not a usage file. */
export function parseFileName(name: string): (FileName & { readonly ending: string }) | undefined {
  const [, id, host, pid, ending] = /^([\w-]{1,64})\.([0-9a-f]{8})\.(\d{1,10})\.(json|tmp)$/.exec(name) ?? [];
  if (id === undefined || host === undefined || pid === undefined || ending === undefined) return undefined;
  return { id, host, pid: Number(pid), ending };
}

/** Returns true if the owner of the file is gone. */
export function isGone(keeper: OwningProcess, writtenAtMs: number, self: ThisProcess): boolean {
  return hasEnded(keeper, writtenAtMs, self) || writtenAtMs < Date.now() - STALE_MS;
}

export function codeOf(thrown: unknown): unknown {
  return thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
}

/**
 * - `read`: `includes` lists files whose counts are part of this one, and which are about to be deleted.
 * - `missing`: it was claimed or deleted meanwhile.
 * - `unusable`: it cannot be read, for the reason in `problem`.
 */
export type FileContent =
  | { readonly kind: 'read'; readonly includes: readonly string[]; readonly usage: Usage }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unusable'; readonly problem: string };

/** Limit of the ids in `includes`. */
const MAX_INCLUDES = 10_000;

/** `usage`: the text of a Usage. */
export function composeFile(usage: string, includes: readonly string[]): string {
  return `{"includes":${JSON.stringify(includes.slice(0, MAX_INCLUDES))},"usage":${usage}}\n`;
}

export async function readUsageFile(path: string): Promise<FileContent> {
  try {
    const text = await readText(path);
    if (text === undefined) return { kind: 'unusable', problem: 'it is too large, or no file' };
    const { includes, usage } = JSON.parse(text) ?? {};
    const isListOfIds = Array.isArray(includes) && includes.every((id) => typeof id === 'string');
    if (!isListOfIds) return { kind: 'unusable', problem: 'includes is not a list of ids' };
    return { kind: 'read', includes, usage: parseUsage(usage) };
  } catch (thrown) {
    if (codeOf(thrown) === 'ENOENT') return { kind: 'missing' };
    if (thrown instanceof UsageFault) return { kind: 'unusable', problem: thrown.message };
    // The parser's message is left out, since it quotes the text.
    if (thrown instanceof SyntaxError) return { kind: 'unusable', problem: 'it is not JSON' };
    return { kind: 'unusable', problem: `it cannot be read (${String(codeOf(thrown))})` };
  }
}

/** Reads a file; undefined: it is too large or not a regular file. */
async function readText(path: string): Promise<string | undefined> {
  const handle = await open(path, OPEN_TO_READ);
  try {
    const stats = await handle.stat();
    return stats.isFile() && stats.size <= MAX_FILE_BYTES ? await handle.readFile('utf8') : undefined;
  } finally {
    await handle.close();
  }
}

/** Returns the names in the folder; empty if the folder does not exist. */
export async function listFolder(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (thrown) {
    if (codeOf(thrown) === 'ENOENT') return [];
    throw thrown;
  }
}

export interface FoundUsage {
  readonly usage: Usage;
  /** A line for each file that could not be read. */
  readonly problems: readonly string[];
}

/** Attempts to read all files without one vanishing meanwhile. */
const MAX_ATTEMPTS = 5;

/**
 * Returns the counts of all processes. Changes nothing in the folder. Throws the system's error if the folder cannot be
 * read.
 */
export async function readUsage(stateDirectory: string, nowMs: number): Promise<FoundUsage> {
  const folder = usageFolderIn(stateDirectory);
  for (let attempt = 1; ; attempt += 1) {
    const files = await readAll(folder);
    if (attempt < MAX_ATTEMPTS && files.some(({ content }) => content.kind === 'missing')) continue;
    const found = mergeFiles(folder, files, nowMs);
    const asides = (await listFolder(folder)).filter((name) => name.endsWith(SET_ASIDE));
    const told = asides.map((name) => `${join(folder, name)} could not be used and was set aside; delete it to go on`);
    return { ...found, problems: [...found.problems, ...told] };
  }
}

interface NamedContent {
  readonly id: string;
  readonly name: string;
  readonly content: FileContent;
}

/** Ending of an unreadable file that was set aside. The report mentions it until a user deletes it. */
export const SET_ASIDE = '.corrupt';

async function readAll(folder: string): Promise<readonly NamedContent[]> {
  const found: NamedContent[] = [];
  for (const name of await listFolder(folder)) {
    const parsed = parseFileName(name);
    if (parsed?.ending !== 'json') continue;
    found.push({ id: parsed.id, name, content: await readUsageFile(join(folder, name)) });
  }
  return found;
}

function mergeFiles(folder: string, files: readonly NamedContent[], nowMs: number): FoundUsage {
  const included = new Set(files.flatMap(({ content }) => (content.kind === 'read' ? content.includes : [])));
  const rows = new UsageRows();
  const problems: string[] = [];
  for (const { id, name, content } of files) {
    if (content.kind === 'unusable') problems.push(`${join(folder, name)} is left out: ${content.problem}`);
    if (content.kind === 'read' && !included.has(id)) rows.add(content.usage, nowMs);
  }
  return { usage: rows.toUsage(), problems };
}

/** Returns the ids of files whose counts are also in another file of the folder. */
export async function includedIds(folder: string): Promise<ReadonlySet<string>> {
  const files = await readAll(folder);
  return new Set(files.flatMap(({ content }) => (content.kind === 'read' ? content.includes : [])));
}
