/**
 * The folder with the files of the usage. Each process has a file of its own, whose name says who keeps it:
 * `<id>.<host>.<pid>.json`. Whoever finds a file whose keeper is gone may claim it, by renaming it to be its own.
 */
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { OPEN_TO_READ } from '../../io/bounded-file.ts';
import { hasEnded, type OwningProcess, type ThisProcess } from '../../io/owning-process.ts';
import { parseUsage, type Usage, UsageFault } from './usage.ts';
import { UsageRows } from './usage-rows.ts';

/** A file that is larger was not written here. */
export const MAX_FILE_BYTES = 16 * 1024 * 1024;
/**
 * A keeper writes its file every few minutes. One that has not for so long is gone where that cannot be seen otherwise: on
 * another machine or in another container, or because its number has been given to another process.
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

/** Undefined: no file of the usage. */
export function parseFileName(name: string): (FileName & { readonly ending: string }) | undefined {
  const [, id, host, pid, ending] = /^([\w-]{1,64})\.([0-9a-f]{8})\.(\d{1,10})\.(json|tmp)$/.exec(name) ?? [];
  if (id === undefined || host === undefined || pid === undefined || ending === undefined) return undefined;
  return { id, host, pid: Number(pid), ending };
}

/** Does nobody write this file any more? */
export function isGone(keeper: OwningProcess, writtenAtMs: number, self: ThisProcess): boolean {
  return hasEnded(keeper, writtenAtMs, self) || writtenAtMs < Date.now() - STALE_MS;
}

export function codeOf(thrown: unknown): unknown {
  return thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
}

/**
 * - `read`: `includes` are the ids of files whose counts are in this one, and which are about to be deleted.
 * - `missing`: it was claimed or deleted meanwhile.
 * - `unusable`: for the reason told.
 */
export type FileContent =
  | { readonly kind: 'read'; readonly includes: readonly string[]; readonly usage: Usage }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unusable'; readonly problem: string };

/** Most ids that a file may include. */
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
    // What the parser says quotes the text.
    if (thrown instanceof SyntaxError) return { kind: 'unusable', problem: 'it is not JSON' };
    return { kind: 'unusable', problem: `it cannot be read (${String(codeOf(thrown))})` };
  }
}

/** Undefined: it is too large, or something else than a file. */
async function readText(path: string): Promise<string | undefined> {
  const handle = await open(path, OPEN_TO_READ);
  try {
    const stats = await handle.stat();
    return stats.isFile() && stats.size <= MAX_FILE_BYTES ? await handle.readFile('utf8') : undefined;
  } finally {
    await handle.close();
  }
}

/** The names in the folder; none where there is no folder. */
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

/** Files come and go while they are read; so often it is tried to see all of them. */
const MAX_ATTEMPTS = 5;

/** What all processes have counted. Changes nothing in the folder. Throws what the system says of the folder. */
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

/** The ending of a file that was set aside; nobody knows what it had until somebody deletes it. */
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

/** The ids of files whose counts are in another file of the folder, too. */
export async function includedIds(folder: string): Promise<ReadonlySet<string>> {
  const files = await readAll(folder);
  return new Set(files.flatMap(({ content }) => (content.kind === 'read' ? content.includes : [])));
}
