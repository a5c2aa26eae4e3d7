/** Finds the file of a command before a process is started, so that the error message can name a typo. */
import { accessSync, constants, statSync } from 'node:fs';
import { posix, win32 } from 'node:path';
import { BridgeError } from '../errors.ts';
import { scriptRunner } from './command-name.ts';

export interface CommandLookup {
  readonly command: string;
  /** The child's working folder; undefined for the bridge's own. */
  readonly cwd: string | undefined;
  /** The child's environment, whose PATH is searched. */
  readonly env: Readonly<Record<string, string>>;
}

export type FileKind = 'missing' | 'folder' | 'not-executable' | 'executable';

/** The part of the system that is inspected. Tests replace it. */
export interface FileSystemView {
  readonly platform: NodeJS.Platform;
  readonly currentFolder: string;
  readonly kindOf: (path: string) => FileKind;
}

/** The folders that execvp searches if there is no PATH. */
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin';
const DEFAULT_PATHEXT = '.EXE;.CMD;.BAT;.COM';

/**
 * Returns the file's absolute path.
 *
 * @throws BridgeError ERR_UPSTREAM_SPAWN, with advice, if no file can be started
 */
export function resolveCommand(lookup: CommandLookup, view: FileSystemView = systemView()): string {
  const { command, cwd } = lookup;
  const path = view.platform === 'win32' ? win32 : posix;
  const folder = path.resolve(view.currentFolder, cwd ?? '');
  if (cwd !== undefined && view.kindOf(folder) !== 'folder') {
    throw spawnError(`its working folder ${folder} does not exist or is not a folder; correct --cwd`);
  }
  if (command === '') throw spawnError('the command is empty; write it after --');

  let found: { file: string; kind: FileKind } | undefined;
  for (const file of candidates(lookup, view, folder)) {
    const kind = view.kindOf(file);
    if (kind === 'executable') return file;
    if (kind !== 'missing') found ??= { file, kind };
  }
  if (found?.kind === 'folder') throw spawnError(`${found.file} is a folder; name the program in it`);
  const runner = scriptRunner(command);
  if (found !== undefined) {
    const way = runner === undefined ? '' : `name what runs it, as in -- ${runner} ${command}, or `;
    throw spawnError(`${found.file} is not executable; ${way}make it so with chmod +x`);
  }
  // A shell would read this as an assignment. The value is not shown, because it may be a credential.
  const [variable] = /^\w+(?==)/.exec(command) ?? [];
  if (variable !== undefined) {
    throw spawnError(
      `"${variable}=..." is not a program; variables of the server are set before --, as --env ${variable}=...`,
    );
  }
  // Other bridges take a whole command in one argument. The rest is not shown, because arguments may be credentials.
  const [program] = /^[^\s/\\]+(?=\s)/.exec(command) ?? [];
  if (program !== undefined) {
    throw spawnError(
      `"${program} ..." in quotes is one word, not a program and its arguments; leave out the quotes: -- ${program} ...`,
    );
  }
  if (hasFolder(command, view)) {
    throw spawnError(`${path.resolve(folder, command)} does not exist; correct the path after --`);
  }
  if (runner !== undefined) {
    throw spawnError(
      `"${command}" is a script and no program in PATH; name what runs it, as in -- ${runner} ${command}`,
    );
  }
  throw spawnError(
    `"${command}" is in none of the ${searchPath(lookup, view).length} folders of its PATH; ` +
      'check the spelling, install it, give its full path, or set another PATH with --env PATH=…',
  );
}

function spawnError(reason: string): BridgeError {
  return new BridgeError('ERR_UPSTREAM_SPAWN', `Cannot start the server: ${reason}.`);
}

/** The files that the command may mean, best first. */
function candidates(lookup: CommandLookup, view: FileSystemView, folder: string): string[] {
  const { command } = lookup;
  if (view.platform !== 'win32') {
    const folders = hasFolder(command, view) ? [''] : searchPath(lookup, view);
    return folders.map((place) => posix.resolve(folder, place, command));
  }
  const folders = hasFolder(command, view) ? [''] : ['', ...searchPath(lookup, view)];
  const extensions = (variableOf(lookup.env, 'PATHEXT') ?? DEFAULT_PATHEXT).split(';').filter((ext) => ext !== '');
  const names = [...(win32.extname(command) === '' ? [] : ['']), ...extensions].map((ext) => command + ext);
  return folders.flatMap((place) => names.map((name) => win32.resolve(folder, place, name)));
}

function hasFolder(command: string, { platform }: FileSystemView): boolean {
  return command.includes('/') || (platform === 'win32' && command.includes('\\'));
}

/** The entries of PATH; on POSIX an empty one stands for the working folder. */
function searchPath({ env }: CommandLookup, { platform }: FileSystemView): string[] {
  if (platform !== 'win32') return (env.PATH ?? DEFAULT_PATH).split(':');
  return (variableOf(env, 'PATH') ?? '').split(';').filter((entry) => entry !== '');
}

/** Variable names are case-insensitive on Windows. */
function variableOf(env: Readonly<Record<string, string>>, name: string): string | undefined {
  const key = Object.keys(env).find((candidate) => candidate.toUpperCase() === name);
  return key === undefined ? undefined : env[key];
}

function systemView(): FileSystemView {
  return { platform: process.platform, currentFolder: process.cwd(), kindOf };
}

function kindOf(path: string): FileKind {
  try {
    if (statSync(path).isDirectory()) return 'folder';
  } catch {
    return 'missing';
  }
  try {
    accessSync(path, constants.X_OK);
    return 'executable';
  } catch {
    return 'not-executable';
  }
}
