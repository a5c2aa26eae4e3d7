/** A home and a project with nothing in them but what a host is told about our server, and a bridge that serves it. */
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { commandsOffered } from './read-output.ts';
import { neverEnough, type Printed, type ProgramOptions, runProgram } from './run-program.ts';
import { BRIDGE, type ServedBridge, serveEverything } from './served-bridge.ts';

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url));
const LIMIT_MS = 120_000;
/** The variable that snippets name. */
const TOKEN_VARIABLE = 'MCP_TOKEN';

/** Who may call the bridge: anybody here, or whoever has the token, which is in the host's environment. */
export type Access = 'anybody' | 'token';

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
  access: Access,
): Promise<Surroundings> {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-hosts-'));
  const [home, project] = [join(folder, 'home'), join(folder, 'project')];
  await mkdir(project, { recursive: true });
  await installGlobally(folder, home);
  // Nothing else of the user's own environment: it may have credentials.
  const env = {
    PATH: [...path, dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin'].join(delimiter),
    ...{ HOME: home, LANG: 'C.UTF-8', TERM: 'dumb', NO_COLOR: '1', DO_NOT_TRACK: '1' },
    ...(access === 'token' && { [TOKEN_VARIABLE]: randomBytes(32).toString('hex') }),
    ...variables,
  };
  const options = access === 'token' ? ['--auth-token', `env:${TOKEN_VARIABLE}`] : [];
  const bridge = await serveEverything(env, options).catch(async (error: unknown) => {
    await rm(folder, { recursive: true, force: true });
    throw error;
  });
  const run: Surroundings['run'] = (program, args, given = {}) =>
    runProgram(program, { cwd: project, env, limitMs: LIMIT_MS, input: '', isEnough: neverEnough, args, ...given });
  return {
    home,
    project,
    bridge,
    async write(path, text) {
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, text);
    },
    async snippet(host, url) {
      const { stdout, stderr } = await run(process.execPath, [BRIDGE, 'snippet', '--for', host, ...options, url]);
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
