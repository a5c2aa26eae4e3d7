/** Installs a package from the registry into a folder of its own, outside of the repository. */
import { mkdir, readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { neverEnough, runProgram } from './run-program.ts';

export type Installation =
  | { readonly kind: 'installed'; readonly folder: string; readonly version: string }
  | { readonly kind: 'unavailable'; readonly reason: string };

const LIMIT_MS = 10 * 60_000;
/** What the most demanding of the hosts needs. */
const NODE_FOR_HOSTS = [22, 19] as const;

/**
 * The newest version, or the one that is there from another run where the registry cannot be reached.
 * @param path folders of programs that come before all others
 */
export async function installPackage(
  name: string,
  range: string,
  folder: string,
  path: readonly string[],
): Promise<Installation> {
  await mkdir(folder, { recursive: true });
  const quiet = ['--no-audit', '--no-fund', '--no-progress', '--loglevel=error', '--fetch-retries=1'];
  const { stderr, end } = await runProgram('npm', {
    args: ['install', '--prefix', folder, ...quiet, '--fetch-retry-mintimeout=1000', `${name}@${range}`],
    cwd: folder,
    env: { ...process.env, PATH: [...path, process.env.PATH].join(delimiter) },
    limitMs: LIMIT_MS,
    input: '',
    isEnough: neverEnough,
  });
  const version = await versionIn(join(folder, 'node_modules', name));
  if (version !== undefined) return { kind: 'installed', folder, version };
  const words =
    end.kind === 'timed-out'
      ? `no end after ${LIMIT_MS / 60_000} minutes`
      : stderr.split('\n').find((line) => line.startsWith('npm error '));
  return { kind: 'unavailable', reason: `npm could not install ${name}: ${words ?? 'it does not say why'}` };
}

/** Folders that come first in the PATH of hosts: one with a newer Node where this one is too old for them. */
export async function installNode(cache: string): Promise<readonly string[]> {
  const [major, minor] = NODE_FOR_HOSTS;
  const [ownMajor = 0, ownMinor = 0] = process.versions.node.split('.').map(Number);
  if (ownMajor > major || (ownMajor === major && ownMinor >= minor)) return [];
  const name = `node-linux-${process.arch}`;
  const installation = await installPackage(name, String(major), join(cache, 'node'), []);
  // With an older Node, npm chooses older versions of some hosts, and the report names them.
  return installation.kind === 'installed' ? [join(installation.folder, 'node_modules', name, 'bin')] : [];
}

async function versionIn(folder: string): Promise<string | undefined> {
  try {
    const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version?: unknown };
    return typeof version === 'string' ? version : undefined;
  } catch {
    return undefined;
  }
}
