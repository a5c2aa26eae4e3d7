/** From the command line to the Config, with the configuration file that it names; once at the start, and again when that changes. */
import { homedir } from 'node:os';
import { PIPE_PATIENCE_MS, readFileOnDisk } from '../io/bounded-file.ts';
import { checkFiles, readTextFile } from './check-files.ts';
import { type BridgeCommand, configFileOf } from './command-line.ts';
import type { ConfigFile } from './config-file/config-file.ts';
import { type ParsedConfig, parseConfig, type Surroundings } from './parse/config.ts';
import { parseSnippet, type SnippetRequest } from './parse/servers/snippet.ts';

export interface LoadedConfig extends ParsedConfig {
  /** Files that it comes from, absolute; none: it comes from the command line and the environment alone. */
  readonly files: readonly string[];
}

export type LoadSurroundings = Omit<Surroundings, 'readFile'>;

/**
 * Rejects with a BridgeError that says what is wrong, and where.
 * @param pipePatienceMs how long everything waits for files that are pipes; 0: clients are served meanwhile
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

/** What a host has to be told. Rejects as `loadConfig` does. */
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
  // Loaded where there is such a file.
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
  const said = options.get('allow-writable-config')?.at(-1) ?? env.MCP_PORTAGE_ALLOW_WRITABLE_CONFIG ?? '';
  return /^(true|1|yes|on)$/i.test(said);
}
