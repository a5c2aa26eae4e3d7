/** Containers of the image that is built from the Dockerfile, run by whichever engine is on this machine. */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ExecutionContext } from 'ava';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const run = promisify(execFile);

/** Building takes minutes where nothing is there yet. */
const BUILD_TIMEOUT_MS = 20 * 60_000;
/** Some machines allow no higher limits than their own, which engines ask for. */
const LIMITS = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1024:1024'];

export interface Engine {
  readonly program: string;
  /** Options before the verb. */
  readonly options: readonly string[];
}

/** Docker, or else Podman; undefined: neither works here. Buildah alone builds images, and runs none. */
export function findEngine(): Engine | undefined {
  const program = [process.env.ENGINE ?? 'docker', 'podman'].find((candidate) => works(candidate, ['info']));
  if (program === undefined) return undefined;
  const isRunc = program === 'podman' && works('runc', ['--version']);
  return { program, options: isRunc ? ['--runtime', 'runc'] : [] };
}

function works(program: string, args: readonly string[]): boolean {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

/** Builds a variant of the image, and returns its name. */
export async function buildImage(
  { program }: Engine,
  variant: 'slim' | 'uv',
  env: Readonly<Record<string, string>> = {},
) {
  const name = `localhost/mcp-portage-test:${variant}`;
  await run('bash', ['scripts/image/build.sh', variant, name], {
    cwd: ROOT,
    env: { ...process.env, ENGINE: program, ...env },
    timeout: BUILD_TIMEOUT_MS,
    maxBuffer: 64 * 1024 * 1024,
  });
  return name;
}

/** Runs a command of the engine. Rejects with what it wrote to stderr. */
export async function engine({ program, options }: Engine, ...args: readonly string[]): Promise<string> {
  const { stdout } = await run(program, [...options, ...args]);
  return stdout.trim();
}

/** The words of `engine run`, for whoever starts the program itself. */
export function runWords({ options }: Engine, ...args: readonly string[]): readonly string[] {
  return [...options, 'run', '--rm', ...LIMITS, ...args];
}

/** Published servers of this folder, where containers find them. */
export const SERVERS = ['--volume', `${ROOT}node_modules:/srv/node_modules:ro`];
export const EVERYTHING = '/srv/node_modules/@modelcontextprotocol/server-everything/dist/index.js';

export interface Container {
  readonly id: string;
  readonly url: URL;
}

/** A container in the background whose port 8000 is published on loopback. It is removed with the test. */
export async function startContainer(
  t: ExecutionContext,
  used: Engine,
  {
    options,
    image,
    args,
  }: { readonly options: readonly string[]; readonly image: string; readonly args: readonly string[] },
): Promise<Container> {
  const words = runWords(used, '--detach', '--publish', '127.0.0.1::8000', ...SERVERS, ...options, image, ...args);
  const { stdout } = await run(used.program, words);
  const id = stdout.trim();
  t.teardown(() => spawnSync(used.program, ['rm', '--force', id], { stdio: 'ignore' }));
  const published = await engine(used, 'port', id, '8000');
  return { id, url: new URL(`http://${published.split('\n')[0]}`) };
}

/** The processes of a container, as the kernel of this machine shows them: their user ids. */
export function usersOf({ program, options }: Engine, id: string): readonly string[] {
  const script = 'for p in /proc/[0-9]*; do grep -h ^Uid: $p/status; done';
  const said = execFileSync(program, [...options, 'exec', id, 'sh', '-c', script], { encoding: 'utf8' });
  return [
    ...new Set(
      said
        .trim()
        .split('\n')
        .map((line) => line.split(/\s+/)[1] ?? ''),
    ),
  ];
}

export function hasProgram(name: string): boolean {
  return (process.env.PATH ?? '').split(':').some((folder) => existsSync(`${folder}/${name}`));
}
