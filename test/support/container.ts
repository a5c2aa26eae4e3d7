/** Containers of the image that is built from the Dockerfile, run by whichever engine is on this machine. */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ExecutionContext } from 'ava';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const run = promisify(execFile);

const PODMAN_SETTINGS = fileURLToPath(new URL('../fixtures/containers.conf', import.meta.url));
/** Building takes minutes where nothing is there yet. */
const BUILD_TIMEOUT_MS = 20 * 60_000;
export interface Engine {
  readonly program: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Docker, or else Podman; undefined: neither works here. Buildah alone builds images, and runs none. */
export function findEngine(): Engine | undefined {
  const program = [process.env.ENGINE ?? 'docker', 'podman'].find((candidate) => works(candidate, ['info']));
  if (program === undefined) return undefined;
  const isRunc = program === 'podman' && works('runc', ['--version']);
  return { program, env: { ...process.env, ...(isRunc && { CONTAINERS_CONF: PODMAN_SETTINGS }) } };
}

function works(program: string, args: readonly string[]): boolean {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

/** Builds a variant of the image, and returns its name. */
export async function buildImage(
  { program, env: engineEnv }: Engine,
  variant: 'slim' | 'uv',
  env: Readonly<Record<string, string>> = {},
) {
  const name = `localhost/mcp-portage-test:${variant}`;
  await run('bash', ['scripts/image/build.sh', variant, name], {
    cwd: ROOT,
    env: { ...engineEnv, ENGINE: program, ...env },
    timeout: BUILD_TIMEOUT_MS,
    maxBuffer: 64 * 1024 * 1024,
  });
  return name;
}

/** Runs a command of the engine. Rejects with what it wrote to stderr. */
export async function engine({ program, env }: Engine, ...args: readonly string[]): Promise<string> {
  const { stdout } = await run(program, args, { env });
  return stdout.trim();
}

/** Runs a program beside the engine, such as the one for compositions. */
export async function runProgram(
  { env }: Engine,
  program: string,
  args: readonly string[],
  cwd: string,
): Promise<string> {
  const { stdout } = await run(program, args, { env, cwd });
  return stdout.trim();
}

/** The words of `engine run`, for whoever starts the program itself. */
export function runWords(...args: readonly string[]): readonly string[] {
  return ['run', '--rm', ...args];
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
  const words = runWords('--detach', '--publish', '127.0.0.1::8000', ...SERVERS, ...options, image, ...args);
  const { stdout } = await run(used.program, words, { env: used.env });
  const id = stdout.trim();
  t.teardown(() => spawnSync(used.program, ['rm', '--force', id], { stdio: 'ignore', env: used.env }));
  const published = await engine(used, 'port', id, '8000');
  return { id, url: new URL(`http://${published.split('\n')[0]}`) };
}

/** The processes of a container, as the kernel of this machine shows them: their user ids. */
export function usersOf({ program, env }: Engine, id: string): readonly string[] {
  const script = 'for p in /proc/[0-9]*; do grep -h ^Uid: $p/status; done';
  const said = execFileSync(program, ['exec', id, 'sh', '-c', script], { encoding: 'utf8', env });
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
