/** A home and a project with nothing in them but what a host is told about our server, and a bridge that serves it. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { commandsOffered } from './read-output.ts';
import { neverEnough, type Printed, type ProgramOptions, runProgram } from './run-program.ts';
import { BRIDGE, type ServedBridge, serveEverything } from './served-bridge.ts';

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url));
const LIMIT_MS = 120_000;

export interface Surroundings {
  readonly home: string;
  readonly project: string;
  readonly bridge: ServedBridge;
  /** Makes the folders that the file is in, too. */
  write(path: string, text: string): Promise<void>;
  /** What `mcp-portage snippet` prints. */
  snippet(host: string, url: string): Promise<{ readonly text: string; readonly commands: readonly string[] }>;
  /** A program of the host, by its name. */
  run(program: string, args: readonly string[], options?: Partial<ProgramOptions>): Promise<Printed>;
  close(): Promise<void>;
}

/**
 * @param path the folders of the host's programs, and of a Node for them
 * @param variables what the host takes from its environment, beside its home
 */
export async function createSurroundings(
  path: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<Surroundings> {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-hosts-'));
  const [home, project] = [join(folder, 'home'), join(folder, 'project')];
  await mkdir(project, { recursive: true });
  await installGlobally(folder, home);
  // Nothing else of the user's own environment: it may have credentials.
  const env = {
    PATH: [...path, dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin'].join(delimiter),
    ...{ HOME: home, LANG: 'C.UTF-8', TERM: 'dumb', NO_COLOR: '1', DO_NOT_TRACK: '1' },
    ...variables,
  };
  const bridge = await serveEverything(env).catch(async (error: unknown) => {
    await rm(folder, { recursive: true, force: true });
    throw error;
  });
  const run: Surroundings['run'] = (program, args, options = {}) =>
    runProgram(program, { cwd: project, env, limitMs: LIMIT_MS, input: '', isEnough: neverEnough, args, ...options });
  return {
    home,
    project,
    bridge,
    async write(path, text) {
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, text);
    },
    async snippet(host, url) {
      const { stdout, stderr } = await run(process.execPath, [BRIDGE, 'snippet', '--for', host, url]);
      return { text: stdout, commands: commandsOffered(stderr) };
    },
    run,
    async close() {
      await bridge.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** So that `npx -y mcp-portage` starts the built program of this repository, as it does where it is installed globally. */
async function installGlobally(folder: string, home: string): Promise<void> {
  const prefix = join(folder, 'global');
  const bin = join(prefix, 'bin');
  const modules = join(prefix, 'lib', 'node_modules');
  await Promise.all([home, bin, modules].map((path) => mkdir(path, { recursive: true })));
  await symlink(REPOSITORY, join(modules, 'mcp-portage'));
  await symlink(join(modules, 'mcp-portage', 'bin', 'mcp-portage.js'), join(bin, 'mcp-portage'));
  await writeFile(join(home, '.npmrc'), `prefix=${prefix}\nupdate-notifier=false\n`);
}
