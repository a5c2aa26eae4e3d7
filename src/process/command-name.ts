import { posix, win32 } from 'node:path';

/** Programs whose first argument names the program to run. */
const LAUNCHERS = new Set(
  [
    ['node', 'npx', 'tsx', 'bun', 'bunx', 'pnpx', 'ts-node', 'deno'],
    ['python', 'python3', 'uvx', 'pipx', 'ruby', 'php', 'perl'],
  ].flat(),
);
const PROGRAM = /\.[cm]?[jt]s$|\.py$|\.rb$|\.php$|\.pl$|^(@[\w.-]+\/)?[\w.-]+(@[\w.^~-]+)?$/;

/**
 * Returns the name of a command in logs and messages: `node server.js`, `npx @scope/server`. Other arguments are left
 * out, because they may be credentials.
 */
export function nameCommand(command: string, args: readonly string[]): string {
  const program = baseName(command).replace(/\.(exe|cmd|bat)$/i, '');
  if (!LAUNCHERS.has(program)) return program;
  const what = args.find((arg) => !arg.startsWith('-'));
  if (what === undefined || !PROGRAM.test(what)) return program;
  return `${program} ${what.startsWith('@') ? what : baseName(what)}`;
}

/** Shortens such a name to one word: `server` for `node server.js` and for `npx @scope/server@1.2.0`. */
export function shortCommandName(name: string): string {
  const program = baseName(name.split(' ').at(-1) ?? name);
  return program.replace(/@[\w.^~-]+$/, '').replace(/\.([cm]?[jt]s|py|rb|php|pl)$/, '') || name;
}

/** Programs that download what they run if it is not installed. */
const FETCHING = /^(npx|npm|pnpx|pnpm|yarn|bunx|bun|uvx|uv|pipx|deno|docker|podman)\b/;

/** Returns true if a command with this name may have to download something before it can start. */
export function mayDownload(name: string): boolean {
  return FETCHING.test(name);
}

/** A command may be written with either kind of path separator, whatever the system. */
function baseName(path: string): string {
  return win32.basename(posix.basename(path));
}

/** Returns the program that runs a script with this file name, or undefined if the name is not a script's. */
export function scriptRunner(file: string): 'node' | 'python3' | undefined {
  if (/\.[cm]?js$/.test(file)) return 'node';
  return /\.py$/.test(file) ? 'python3' : undefined;
}
