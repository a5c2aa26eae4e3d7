import type { ConfigFile, WrittenServer } from '../../../src/cli/config-file/config-file.ts';
import { type FileSurroundings, readConfigFile } from '../../../src/cli/config-file/read-config-file.ts';
import type { ReadValue } from '../../../src/cli/options/given-options.ts';
import type { OptionName } from '../../../src/cli/options/option-table.ts';
import type { EnvAssignment } from '../../../src/cli/parse/servers/child-environment.ts';
import type { Target } from '../../../src/config/server.ts';
import { BridgeError } from '../../../src/errors.ts';
import { showGrpcAddress } from '../../../src/http/socket-addresses.ts';
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
  readonly options: Readonly<Record<string, readonly unknown[]>>;
}

/** What is left of a server when places in the file are not looked at. */
export function plain({ target, options }: WrittenServer): Plain {
  return {
    target: wordsOf(target),
    options: Object.fromEntries(
      [...options].map(([name, { values }]) => [name, values.map((read) => show(name, read))]),
    ),
  };
}

/** Variables and headers as they are written, URLs as texts, and other values as they are. */
function show(option: OptionName, read: ReadValue): unknown {
  if (!read.ok) return read.problem;
  const { value } = read;
  if (value instanceof URL) return value.href;
  if (option !== 'env' && option !== 'header') return value;
  const { name, value: given } = value as EnvAssignment;
  return given === undefined ? name : `${name}${option === 'env' ? '=' : ': '}${given}`;
}

function wordsOf(target: Target): unknown {
  if (target.kind === 'command') return [target.command, ...target.args];
  if (target.kind === 'replay') return target;
  if (target.kind === 'grpc') return showGrpcAddress(target);
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
