import type { ConfigFile, WrittenServer } from '../../../src/cli/config-file/config-file.ts';
import { type FileSurroundings, readConfigFile } from '../../../src/cli/config-file/read-config-file.ts';
import type { Target } from '../../../src/config/server.ts';
import { BridgeError } from '../../../src/errors.ts';
import type { FoundFile } from '../../../src/io/bounded-file.ts';

export interface World {
  /** Where the file is. */
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
  /** Other files, by path. */
  readonly files: Readonly<Record<string, string | Partial<FoundFile>>>;
  readonly around: Partial<FileSurroundings>;
}

export const ME = 1000;

/** Reads a file that exists in no folder but this one's imagination. */
export function read(content: string | object, world: Partial<World> = {}): Promise<ConfigFile> {
  const { path = '/home/me/project/mcp.json', env = {}, files = {}, around = {} } = world;
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  const all: Readonly<Record<string, string | Partial<FoundFile>>> = { [path]: text, ...files };
  return readConfigFile(path, {
    cwd: '/home/me',
    env,
    homeFolder: '/home/me',
    platform: 'linux',
    uid: ME,
    mayBeWritable: false,
    readFile: (name, maxBytes) => {
      const found = all[name];
      if (found === undefined) throw Object.assign(new Error('none'), { code: 'ENOENT' });
      const given = typeof found === 'string' ? { bytes: Buffer.from(found) } : found;
      const file: FoundFile = { kind: 'file', mode: 0o600, uid: ME, bytes: new Uint8Array(), ...given };
      return { ...file, bytes: file.bytes.subarray(0, maxBytes) };
    },
    ...around,
  });
}

/** The lines of the refusal, or of what is said of the servers that are left out. */
export async function mistakes(content: string | object, world: Partial<World> = {}): Promise<readonly string[]> {
  try {
    const { leftOut } = await read(content, world);
    return leftOut.flatMap(({ error }) => error.message.split('\n'));
  } catch (error) {
    if (error instanceof BridgeError && error.code === 'ERR_CONFIG_FILE') return error.message.split('\n');
    throw error;
  }
}

export interface Plain {
  readonly target: unknown;
  readonly options: Readonly<Record<string, readonly string[]>>;
}

/** What is left of a server when places in the file are not looked at. */
export function plain({ target, options }: WrittenServer): Plain {
  return {
    target: wordsOf(target),
    options: Object.fromEntries([...options].map(([name, { texts }]) => [name, texts])),
  };
}

function wordsOf(target: Target): unknown {
  if (target.kind === 'command') return [target.command, ...target.args];
  return target.kind === 'url' ? target.url.href : target.address;
}

/** Every server, by the segment of its URL. */
export async function readPlain(
  content: string | object,
  world: Partial<World> = {},
): Promise<Readonly<Record<string, Plain>>> {
  const { servers } = await read(content, world);
  return Object.fromEntries(servers.map((server) => [server.segment, plain(server)]));
}

/** The only server of a file of one entry. */
export async function readEntry(entry: object, world: Partial<World> = {}): Promise<Plain> {
  const found = await readPlain({ mcpServers: { one: entry } }, world);
  return found.one ?? { target: undefined, options: {} };
}
