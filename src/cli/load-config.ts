/** Loads the Config from the command line and its configuration file, at the start and whenever that file changes. */
import { homedir } from 'node:os';
import { PIPE_PATIENCE_MS, readFileOnDisk } from '../io/bounded-file.ts';
import { checkFiles, readTextFile } from './check-files.ts';
import { type BridgeCommand, configFileOf } from './command-line.ts';
import type { ConfigFile } from './config-file/config-file.ts';
import { type ParsedConfig, parseConfig, type Surroundings } from './parse/config.ts';
import { parseSnippet, type SnippetRequest } from './parse/servers/snippet.ts';

export interface LoadedConfig extends ParsedConfig {
  /** Absolute paths of the files that were read; empty if there is no configuration file. */
  readonly files: readonly string[];
}

export type LoadSurroundings = Omit<Surroundings, 'readFile'>;

/**
 * Rejects with a BridgeError that names the mistake and its source.
 * @param pipePatienceMs the time to wait for files that are pipes, which blocks the process; 0 while clients are served
 */
export async function loadConfig(
  command: BridgeCommand,
  around: LoadSurroundings,
  pipePatienceMs = PIPE_PATIENCE_MS,
): Promise<LoadedConfig> {
  const file = await readFileOf(command, around, pipePatienceMs);
  const readFile = (path: string) => readTextFile(path, pipePatienceMs);
  const parsed = parseConfig(command, { ...around, readFile }, file);
  const found = await checkFiles(parsed.config, parsed.given);
  return {
    ...parsed,
    warnings: [...parsed.warnings, ...found],
    files: file === undefined ? [] : [file.path, ...file.included],
  };
}

/** Loads the servers for `snippet`. Rejects like `loadConfig`. */
export async function loadSnippet(command: BridgeCommand, around: LoadSurroundings): Promise<SnippetRequest> {
  const file = await readFileOf(command, around, PIPE_PATIENCE_MS);
  const readFile = (path: string) => readTextFile(path, PIPE_PATIENCE_MS);
  return parseSnippet(command, { ...around, readFile }, file);
}

async function readFileOf(
  command: BridgeCommand,
  around: LoadSurroundings,
  pipePatienceMs: number,
): Promise<ConfigFile | undefined> {
  const path = configFileOf(command, around.env);
  if (path === undefined) return undefined;
  // The module is loaded only if there is a configuration file.
  const { readConfigFile } = await import('./config-file/read-config-file.ts');
  return readConfigFile(path, {
    ...around,
    homeFolder: (around.homeFolder ?? homedir)(),
    uid: process.getuid?.(),
    readFile: (name, maxBytes) => readFileOnDisk(name, maxBytes, pipePatienceMs),
    mayBeWritable: mayBeWritable(command, around),
  });
}

function mayBeWritable({ options }: BridgeCommand, { env }: LoadSurroundings): boolean {
  const said = options.get('allowWritableConfig')?.at(-1) ?? env.MCP_PORTAGE_ALLOW_WRITABLE_CONFIG ?? '';
  return /^(true|1|yes|on)$/i.test(said);
}
