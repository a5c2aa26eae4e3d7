import { existsSync } from 'node:fs';
import { arch, homedir, release } from 'node:os';
import { relative, sep } from 'node:path';
import { BridgeError } from '../../errors.ts';
import { readFileOnDisk } from '../../io/bounded-file.ts';
import { VERSION } from '../../version.ts';
import { countServers } from '../config-file/count-servers.ts';
import type { GivenOptions } from '../options/given-options.ts';
import { ENV_PREFIX } from '../options/option-names.ts';
import { findStateDirectory } from '../parse/servers/state-directory.ts';
import { type HostFile, hostFiles } from './host-files.ts';

/** The report of `mcp-portage info`, also as JSON: members are added over time, never renamed. It has no secrets. */
export interface Info {
  /** Increased if the meaning of a member changes. */
  readonly format: 1;
  readonly version: string;
  readonly node: string;
  readonly v8: string;
  readonly system: {
    readonly platform: string;
    readonly release: string;
    readonly arch: string;
    /** The kind of container that the process runs in; null: none was detected. */
    readonly container: 'docker' | 'podman' | 'kubernetes' | 'other' | null;
  };
  /** The configuration files of hosts that exist. */
  readonly hosts: readonly FoundHostFile[];
  /** The folders in which mcp-portage keeps what outlives it. */
  readonly state: readonly StateFolder[];
  /** Names of the variables that are settings of mcp-portage. */
  readonly variables: readonly string[];
}

export interface FoundHostFile {
  readonly host: string;
  /** `~` is the home folder. Relative to the current folder if the file is in it. */
  readonly file: string;
  /** Number of servers that the host would start; null if the file cannot be read. */
  readonly servers: number | null;
  /** Number of servers that the file disables; null if it cannot be read. */
  readonly disabled: number | null;
  /** The reason why the file cannot be read as a whole sentence; null if it can be. */
  readonly problem: string | null;
}

export interface StateFolder {
  readonly what: 'logins' | 'usage' | 'compiled-code';
  /** Null for a user without a home folder. */
  readonly folder: string | null;
  readonly exists: boolean;
}

export interface InfoSurroundings {
  readonly platform: NodeJS.Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly homeFolder?: (() => string) | undefined;
}

/** Collects the report. Starts and writes nothing, makes no connection, and never rejects for what a file holds. */
export async function collectInfo(given: GivenOptions, around: InfoSurroundings): Promise<Info> {
  const { platform, env, cwd } = around;
  const home = homeOf(around);
  const hosts: FoundHostFile[] = [];
  for (const file of hostFiles({ platform, env, home, cwd })) {
    if (existsSync(file.path)) hosts.push(await readHostFile(file, { ...around, home }));
  }
  const state = findStateDirectory(given, around);
  return {
    format: 1,
    version: VERSION,
    node: process.version,
    v8: process.versions.v8,
    system: { platform, release: release(), arch: arch(), container: findContainer(env) },
    hosts,
    state: [
      describeFolder('logins', state && `${state}${sep}logins`, home),
      describeFolder('usage', state && `${state}${sep}usage`, home),
      describeFolder('compiled-code', codeFolder(around, home), home),
    ],
    variables: Object.keys(env)
      .filter((name) => name.startsWith(ENV_PREFIX) && env[name] !== '')
      .sort(),
  };
}

function homeOf({ env, homeFolder = homedir }: InfoSurroundings): string | undefined {
  try {
    return env.HOME || env.USERPROFILE || homeFolder();
  } catch {
    return undefined;
  }
}

async function readHostFile(
  { host, path, scope }: HostFile,
  around: InfoSurroundings & { readonly home: string | undefined },
): Promise<FoundHostFile> {
  const { cwd, home } = around;
  const file = scope === 'folder' ? relative(cwd, path) : shorten(path, home);
  const found = { host, file };
  try {
    const { servers, disabled } = await countServers(path, { ...around, readFile: readFileOnDisk });
    return { ...found, servers, disabled, problem: null };
  } catch (thrown) {
    // Messages about files quote nothing from them, but name them by their paths.
    const problem = thrown instanceof BridgeError ? thrown.message : 'it cannot be read.';
    return { ...found, servers: null, disabled: null, problem: problem.replaceAll(path, () => file) };
  }
}

function describeFolder(what: StateFolder['what'], folder: string | undefined, home: string | undefined): StateFolder {
  if (folder === undefined) return { what, folder: null, exists: false };
  return { what, folder: shorten(folder, home), exists: existsSync(folder) };
}

/** Shows the home folder as `~`, since its name is mostly that of the user. */
function shorten(path: string, home: string | undefined): string {
  if (home === undefined || home === '' || home === sep) return path;
  const folder = home.endsWith(sep) ? home.slice(0, -1) : home;
  if (path === folder) return '~';
  return path.startsWith(`${folder}${sep}`) ? `~${path.slice(folder.length)}` : path;
}

/** The folder of `start/code-file.ts`. */
function codeFolder({ platform, env }: InfoSurroundings, home: string | undefined): string | undefined {
  const base = platform === 'win32' ? env.LOCALAPPDATA : env.XDG_CACHE_HOME || (home && `${home}${sep}.cache`);
  return base ? `${base}${sep}mcp-portage` : undefined;
}

function findContainer(env: InfoSurroundings['env']): Info['system']['container'] {
  if (env.KUBERNETES_SERVICE_HOST) return 'kubernetes';
  if (existsSync('/.dockerenv')) return 'docker';
  if (existsSync('/run/.containerenv') || env.container === 'podman') return 'podman';
  return env.container ? 'other' : null;
}
