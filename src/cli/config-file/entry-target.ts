/** Reads the target of an entry: the program to start, or the server's address and transport. */
import type { GrpcTarget, StreamTarget, Target } from '../../config/server.ts';
import { BridgeError } from '../../errors.ts';
import { isWebSocketUrl } from '../../http/websocket/url.ts';
import type { ReadingContext } from '../options/value-type.ts';
import { isReplay, isServerScheme, parseServerUrl, type RunningTarget } from '../parse/servers/target.ts';
import type { Path } from './config-tree.ts';
import type { Dialect } from './dialects.ts';
import type { Entry } from './entry-schema.ts';

export type EntryTarget =
  | { readonly ok: true; readonly target: Target; readonly transport: WrittenTransport | undefined }
  /** The problem ends with a period. */
  | { readonly ok: false; readonly path: Path; readonly problem: string };

/** A value of the option `transport`, and the key of the entry that sets it. */
export interface WrittenTransport {
  readonly key: string;
  readonly name: 'auto' | 'streamable-http' | 'sse';
}

type Kind =
  | 'command'
  | 'auto'
  | 'http'
  | 'streamable-http'
  | 'sse'
  | 'stream'
  | 'websocket'
  | 'mqtt'
  | 'grpc'
  | 'replay';

/** Types by name, in lower case and without hyphens and underscores. */
const KINDS: ReadonlyMap<string, Kind> = new Map([
  ['stdio', 'command'],
  ['local', 'command'],
  ['remote', 'auto'],
  ['http', 'http'],
  ['streamablehttp', 'streamable-http'],
  ['sse', 'sse'],
  ['stream', 'stream'],
  ['tcp', 'stream'],
  ['ws', 'websocket'],
  ['websocket', 'websocket'],
  ['replay', 'replay'],
  ['grpc', 'grpc'],
  ['mqtt', 'mqtt'],
]);

const TYPE_KEYS = ['type', 'transport', 'transportType'] as const;
const URL_KEYS = ['url', 'serverUrl', 'httpUrl', 'uri', 'baseUrl'] as const;
const COMMAND_KEYS = ['command', 'cmd'] as const;

/** The keys that say together what the target is. */
export const TARGET_KEYS: readonly string[] = [...TYPE_KEYS, ...URL_KEYS, ...COMMAND_KEYS, 'args', 'socket'];

export interface TargetReading {
  /** Makes a path in the file absolute. */
  readonly resolvePath: (path: string) => string;
  readonly dialect: Pick<Dialect, 'http'>;
  /** Spells the names of options in messages. */
  readonly nameOf: ReadingContext['nameOf'];
}

export function readTarget(entry: Entry, { resolvePath, dialect, nameOf }: TargetReading): EntryTarget {
  const typeKey = TYPE_KEYS.find((key) => entry[key] !== undefined);
  const type = typeKey === undefined ? undefined : entry[typeKey];
  const kind = type === undefined ? undefined : KINDS.get(type.toLowerCase().replaceAll(/[-_]/g, ''));
  if (typeKey !== undefined && kind === undefined) return refuse([typeKey], UNKNOWN_TYPE);
  const [urlKey, otherUrlKey] = URL_KEYS.filter((key) => entry[key] !== undefined);
  const commandKey = COMMAND_KEYS.find((key) => entry[key] !== undefined);
  if (otherUrlKey !== undefined)
    return refuse([otherUrlKey], `says again where ${urlKey} says it is; leave one of them out.`);
  if (commandKey !== undefined && urlKey !== undefined) {
    return refuse([urlKey], 'a server is either started by its command or reached by its URL; leave one of them out.');
  }
  if (commandKey !== undefined && entry.socket !== undefined) {
    return refuse(['socket'], 'is where a server listens that runs already; this one is started as a command.');
  }
  const read =
    urlKey !== undefined || entry.socket !== undefined
      ? readUrl(entry, { key: urlKey ?? 'url', typeKey, kind, dialect, nameOf, resolvePath })
      : undefined;
  if (read?.ok === true && entry.socket !== undefined) return readSocket(read, entry.socket, resolvePath);
  if (read !== undefined) return read;
  if (commandKey === undefined) return refuse([], 'expected a command or a url, got neither.');
  if (kind !== undefined && kind !== 'command') {
    return refuse(
      [typeKey ?? 'type'],
      'says that the server is reached by its URL, but it has a command; correct one of them.',
    );
  }
  return readCommand(entry, commandKey);
}

function readCommand(entry: Entry, key: (typeof COMMAND_KEYS)[number]): EntryTarget {
  const [program = '', ...args] = wordsOf(entry[key] ?? '');
  const more = entry.args ?? [];
  if (program.trim() === '') return refuse([key], 'expected the program to start, got nothing.');
  return { ok: true, target: { kind: 'command', command: program, args: [...args, ...more] }, transport: undefined };
}

function wordsOf(command: NonNullable<Entry['command']>): readonly string[] {
  if (typeof command === 'string') return [command];
  return Array.isArray(command) ? command : [command.path, ...(command.args ?? [])];
}

interface UrlReading extends TargetReading {
  readonly key: (typeof URL_KEYS)[number];
  readonly typeKey: string | undefined;
  readonly kind: Kind | undefined;
}

function readUrl(entry: Entry, { key, typeKey, kind, dialect, nameOf, resolvePath }: UrlReading): EntryTarget {
  if (kind === 'command') {
    return refuse(
      [typeKey ?? 'type'],
      'says that the server is started as a command, but it has a URL; correct one of them.',
    );
  }
  if (key === 'httpUrl' && kind === 'sse') {
    return refuse(
      [typeKey ?? 'type'],
      'says HTTP+SSE, but httpUrl is where Streamable HTTP is spoken; correct one of them.',
    );
  }
  const text = entry[key] ?? (entry.socket === undefined ? '' : AT_SOCKET);
  const target = parseUrl(atHome(withPath(text, kind), resolvePath), { nameOf });
  if (typeof target === 'string') return refuse([key], target);
  if (target.kind === 'replay') {
    if (kind === undefined || kind === 'auto' || kind === 'replay') {
      return { ok: true, target: { ...target, file: resolvePath(target.file) }, transport: undefined };
    }
    return refuse(
      [typeKey ?? 'type'],
      'says how a running server is reached, but the URL is a recording; correct one of them.',
    );
  }
  if (kind === 'replay') return refuse([key], NO_RECORDING);
  if (target.kind === 'grpc') return readGrpc(target, key, typeKey, kind);
  if (kind === 'grpc') return refuse([key], NO_GRPC);
  if (target.kind === 'stream') return readStream(target, key, typeKey, kind);
  if (kind === 'stream') return refuse([key], NO_STREAM);
  if (target.kind === 'mqtt') {
    if (key !== 'httpUrl' && (kind === undefined || kind === 'mqtt' || kind === 'auto')) {
      return { ok: true, target, transport: undefined };
    }
    return refuse(
      [typeKey ?? key],
      'says that the server is reached otherwise than through a broker, whose URL is given; correct one of them.',
    );
  }
  if (kind === 'mqtt') return refuse([key], NO_BROKER);
  // A WebSocket needs no option `transport`. Some entries have the http URL of the handshake.
  if (kind === 'websocket' && target.socketPath !== undefined) return refuse([key], NO_WEB_SOCKET);
  if (kind === 'websocket')
    return { ok: true, target: { ...target, url: toWebSocket(target.url) }, transport: undefined };
  if (isWebSocketUrl(target.url)) {
    if (kind === undefined || kind === 'auto') return { ok: true, target, transport: undefined };
    return refuse([typeKey ?? 'type'], 'says how HTTP is spoken, but the URL is of a WebSocket; correct one of them.');
  }
  if (key === 'httpUrl') return { ok: true, target, transport: { key, name: 'streamable-http' } };
  if (typeKey === undefined || kind === undefined) return { ok: true, target, transport: undefined };
  const transport = { key: typeKey, name: kind === 'http' ? dialect.http : kind };
  return { ok: true, target, transport };
}

/** Combines the path of the URL with the address of the socket, like curl's option for Unix sockets. */
function readSocket(
  read: Extract<EntryTarget, { ok: true }>,
  socket: string,
  resolvePath: (path: string) => string,
): EntryTarget {
  const { target } = read;
  if (target.kind !== 'url' || target.socketPath !== undefined || target.url.protocol !== 'http:') {
    return refuse(
      ['socket'],
      'needs a URL that begins with http:// beside it, or none: it says where that is asked for.',
    );
  }
  const isSocket = isServerScheme(socket);
  const written = isSocket ? socket : `unix://${encodeURI(resolvePath(socket)).replaceAll('#', '%23')}`;
  const { pathname, search } = target.url;
  const parsed = parseUrl(`${written}#${pathname}${search}`);
  return typeof parsed === 'string' ? refuse(['socket'], parsed) : { ...read, target: parsed };
}

/** The URL of an entry that has a socket and no URL. */
const AT_SOCKET = 'http://localhost/mcp';

function toWebSocket(url: URL): URL {
  const webSocket = new URL(url);
  if (url.protocol === 'http:') webSocket.protocol = 'ws:';
  if (url.protocol === 'https:') webSocket.protocol = 'wss:';
  return webSocket;
}

/** A byte stream has no HTTP transport, so a type that names one is a mistake. */
function readStream(
  target: StreamTarget,
  key: (typeof URL_KEYS)[number],
  typeKey: string | undefined,
  kind: Kind | undefined,
): EntryTarget {
  if (key === 'httpUrl') return refuse([key], 'is where HTTP is spoken, but this is the address of a byte stream.');
  if (kind === undefined || kind === 'stream' || kind === 'auto') return { ok: true, target, transport: undefined };
  if (kind === 'websocket') return refuse([key], NO_WEB_SOCKET);
  if (kind === 'mqtt') return refuse([key], NO_BROKER);
  return refuse(
    [typeKey ?? 'type'],
    'says that HTTP is spoken, but the address is that of a byte stream; correct one of them.',
  );
}

/** gRPC has no other transport, so a type that names one is a mistake. */
function readGrpc(
  target: GrpcTarget,
  key: (typeof URL_KEYS)[number],
  typeKey: string | undefined,
  kind: Kind | undefined,
): EntryTarget {
  if (key === 'httpUrl') return refuse([key], 'is where HTTP is spoken, but this is an address of gRPC.');
  if (kind === undefined || kind === 'grpc' || kind === 'auto') return { ok: true, target, transport: undefined };
  return refuse([typeKey ?? 'type'], 'says otherwise, but the URL is an address of gRPC; correct one of them.');
}

/** VS Code requests `/` if the URL of a socket has no fragment. */
function withPath(text: string, kind: Kind | undefined): string {
  const isHttp = kind === 'http' || kind === 'streamable-http' || kind === 'sse';
  return isHttp && /^(?:unix|pipe):\/\/[^#]*$/i.test(text) ? `${text}#/` : text;
}

/** In a file, ~ is the home folder, as in all paths there. */
function atHome(text: string, resolvePath: TargetReading['resolvePath']): string {
  return isReplay(text)
    ? text.replace(/^(replay:)(~[/\\][^#]*)/i, (_, scheme, path) => `${scheme}${resolvePath(path)}`)
    : text;
}

/** Returns the server, or the problem with the URL as a sentence. */
function parseUrl(text: string, spelling: Partial<Pick<TargetReading, 'nameOf'>> = {}): RunningTarget | string {
  // The message of `parseServerUrl` quotes the scheme, which a text that is not a URL does not have.
  if (!isServerScheme(text)) return NO_URL;
  try {
    return parseServerUrl(text, spelling);
  } catch (error) {
    if (error instanceof BridgeError) return error.message;
    throw error;
  }
}

const NO_URL =
  'expected a URL that begins with https://, http://, wss://, ws://, unix://, pipe://, tcp://, tls://, grpc://, grpcs://, mqtt:// or mqtts://, or with replay: for a recording.';
const NO_STREAM = 'expected the address of a byte stream, like tcp://127.0.0.1:9000 or unix:///run/mcp.sock.';
const NO_GRPC = 'expected an address of gRPC, like grpc://127.0.0.1:50051 or grpcs://example.com:443.';
const NO_BROKER = 'expected the URL of a server at a broker, like mqtt://192.168.1.10/site/kind/name.';
const NO_WEB_SOCKET = 'expected the URL of a WebSocket, which begins with wss:// or ws://.';
const NO_RECORDING = 'expected a recording, like replay:session.jsonl.';
const UNKNOWN_TYPE =
  'expected stdio, local, http, streamable-http, sse, ws, stream, grpc, mqtt, replay or remote, got another string.';

function refuse(path: Path, problem: string): EntryTarget {
  return { ok: false, path, problem };
}
