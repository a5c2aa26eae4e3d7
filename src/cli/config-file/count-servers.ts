import { basename } from 'node:path';
import { BridgeError } from '../../errors.ts';
import { findServers, isBuiltIn, isSwitchedOff } from './dialects.ts';
import { FileReport } from './file-report.ts';
import { type Readers, readText } from './found-file.ts';
import { entriesOf, languageOf, MAX_FILE_BYTES, parseTree } from './read-config-file.ts';

export interface ServerCount {
  readonly servers: number;
  /** Number of servers that the file disables. */
  readonly disabled: number;
}

/** Takes a directory as the current one, since servers of its project have precedence. */
export interface CountSurroundings extends Pick<Readers, 'platform' | 'readFile'> {
  readonly cwd: string;
}

/**
 * Counts the servers of a host's configuration file by their names, whether their entries are right or not. Nothing but
 * this file is read. Rejects with ERR_CONFIG_FILE if the file cannot be read, or if others could have written it.
 */
export async function countServers(path: string, { platform, readFile, cwd }: CountSurroundings): Promise<ServerCount> {
  const report = new FileReport({ kind: 'file', name: basename(path) });
  const readers = { platform, readFile, uid: process.getuid?.(), mayBeWritable: false };
  const read = readText(path, MAX_FILE_BYTES, readers, path);
  if (!read.ok) throw new BridgeError('ERR_CONFIG_FILE', read.problem);
  const { text } = read;
  const language = languageOf(path, text);
  const root = await parseTree(language, text, report);
  const found = findServers(root, { path, language, cwd });
  const enabled = new Set<string>();
  const disabled = new Set<string>();
  for (const { path: place, servers, isOff } of found?.lists ?? []) {
    for (const { name, node } of entriesOf(servers, place, report)) {
      if (node.kind === 'object' && isBuiltIn(node)) continue;
      const isDisabled = (node.kind === 'object' && isSwitchedOff(node)) || isOff(name);
      (isDisabled ? disabled : enabled).add(name);
    }
  }
  report.throwMistakesOfFile();
  for (const name of enabled) disabled.delete(name);
  return { servers: enabled.size, disabled: disabled.size };
}
