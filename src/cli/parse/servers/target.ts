/** Parses the server on the command line: the command after `--`, or one URL. */
import type { GrpcTarget, MqttTarget, ReplayTarget, StreamTarget, Target, UrlTarget } from '../../../config/server.ts';
import { BridgeError } from '../../../errors.ts';
import { SocketUrl } from '../../../http/socket-addresses.ts';
import { flagOf } from '../../options/option-names.ts';
import type { BridgeVerb } from '../../options/option-table.ts';
import type { ReadingContext } from '../../options/value-type.ts';
import { parseSocketUrlPath } from '../listener/socket-path.ts';
import { parseGrpcAddress, parseNetworkAddress } from '../listener/stream-address.ts';
import { parseMqttUrl } from '../mqtt-url.ts';

/** Returns true for `scheme://…` with any scheme, and for `replay:…`. */
export function isUrlLike(argument: string): boolean {
  return /^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(argument) || isReplay(argument);
}

const REPLAY = 'replay:';

/** Returns true for a recording as a server. */
export function isReplay(argument: string): boolean {
  return argument.slice(0, REPLAY.length).toLowerCase() === REPLAY;
}

/**
 * Throws ERR_CONFIG_OPTION. Messages never show a URL, which may hold credentials.
 * @param positionals the arguments before `--`, all of them URLs
 * @param command the arguments after `--`
 */
export function parseTarget(verb: BridgeVerb, positionals: readonly string[], command: readonly string[]): Target {
  const [url, ...more] = positionals;
  const [program, ...args] = command;
  if (url !== undefined) {
    if (more.length > 0)
      throw refuse(`Give one URL, or the servers in a file with --config; got ${positionals.length} URLs.`);
    if (program !== undefined) throw refuse('A URL and a command were given; leave out one of them.');
    return parseServerUrl(url);
  }
  if (program === undefined || program === '') throw refuse(explainMissingTarget(verb));
  return { kind: 'command', command: program, args };
}

/**
 * Parses the URL of a server by its scheme. Throws ERR_CONFIG_OPTION; the message shows nothing of the URL but its
 * scheme.
 */
export function parseServerUrl(
  argument: string,
  { platform = process.platform, nameOf = flagOf }: Partial<UrlReading> = {},
): RunningTarget {
  if (isReplay(argument)) return parseReplay(argument);
  const expected =
    'expected a URL that begins with https://, http://, wss://, ws://, unix://, pipe://, tcp://, tls://, grpc://, grpcs://, mqtt:// or mqtts://, or with replay: and the path of a recording';
  // `localhost:8000` has no scheme, although it has text before a colon.
  if (!isUrlLike(argument)) throw refuse(`An address without a scheme was given; ${expected}.`);
  const scheme = argument.slice(0, argument.indexOf(':')).toLowerCase();
  const parse = SCHEMES.get(scheme);
  if (parse !== undefined) return parse(argument, { platform, nameOf });
  throw refuse(`${scheme}:// is not supported; ${expected}.`);
}

/** A server that already runs and is connected to, or one that was recorded. */
export type RunningTarget = UrlTarget | StreamTarget | GrpcTarget | MqttTarget | ReplayTarget;

/** The platform decides between Unix sockets and named pipes. */
type UrlReading = Pick<ReadingContext, 'platform' | 'nameOf'>;
type ParseUrl = (argument: string, reading: UrlReading) => RunningTarget;

const SCHEMES: ReadonlyMap<string, ParseUrl> = new Map([
  ['http', parseWebUrl],
  ['https', parseWebUrl],
  ['unix', parseSocketUrl],
  ['pipe', parseSocketUrl],
  ['tcp', parseNetworkStream],
  ['tls', parseNetworkStream],
  ['grpc', parseGrpcTarget],
  ['grpcs', parseGrpcTarget],
  ['ws', parseWebUrl],
  ['wss', parseWebUrl],
  ['mqtt', parseBrokerUrl],
  ['mqtts', parseBrokerUrl],
]);

/** Returns true if the scheme is one that servers can have. */
export function isServerScheme(argument: string): boolean {
  if (isReplay(argument)) return true;
  return isUrlLike(argument) && SCHEMES.has(argument.slice(0, argument.indexOf(':')).toLowerCase());
}

/** Parses an HTTP or WebSocket URL. */
function parseWebUrl(argument: string, { nameOf }: UrlReading): UrlTarget {
  if (!URL.canParse(argument))
    throw refuse('The URL of the server cannot be read; expected one like https://example.com/mcp.');
  const url = new URL(argument);
  if (url.username !== '' || url.password !== '') {
    throw refuse(
      `The URL has a user name or password in it, where other users of this machine can read it. Leave it out, and send it in a header taken from the environment: ${nameOf('header')} 'Authorization: Basic \${CREDENTIAL}', where CREDENTIAL is the base64 form of user:password.`,
    );
  }
  // A fragment is never sent to the server.
  url.hash = '';
  return { kind: 'url', url, socketPath: undefined };
}

/** Parses the address of a server that takes JSON lines at a TCP port. */
function parseNetworkStream(argument: string): StreamTarget {
  const parsed = parseNetworkAddress(argument);
  if (parsed.ok) return { kind: 'stream', address: parsed.value };
  throw refuse(`The address of the server cannot be used: expected ${parsed.expected}.`);
}

/** Parses the address of a server that speaks gRPC. */
function parseGrpcTarget(argument: string): GrpcTarget {
  const parsed = parseGrpcAddress(argument);
  if (parsed.ok) return parsed.value;
  throw refuse(`The address of the server cannot be used: expected ${parsed.expected}.`);
}

/** Parses the URL of a server at a broker. */
function parseBrokerUrl(argument: string, { nameOf }: UrlReading): MqttTarget {
  const parsed = parseMqttUrl(argument);
  if (!parsed.ok) throw refuse(`The URL of the server ${parsed.problem}.`);
  const { address, serverName, serverId, user, password } = parsed.value;
  if (user !== undefined || password !== undefined) {
    throw refuse(
      `The URL has a user name or password in it, where other users of this machine can read it. Leave it out, and write ${nameOf('user')} with the name and ${nameOf('password')} env:NAME, where NAME is a variable with the password.`,
    );
  }
  return { kind: 'mqtt', address, serverName, serverId };
}

/**
 * Parses the URL of a Unix socket or a named pipe. With a path after `#`, the server speaks HTTP and that path is
 * requested. Without one, a Unix socket carries JSON lines, which need no path.
 */
function parseSocketUrl(argument: string, { platform }: UrlReading): RunningTarget {
  const [, scheme = '', place = '', path] = /^([^:]*):\/\/([^#]*)(?:#(.*))?$/s.exec(argument) ?? [];
  const isPipe = scheme.toLowerCase() === 'pipe';
  const example = isPipe ? 'pipe:///name#/mcp' : 'unix:///run/mcp.sock#/mcp';
  const parsed = parseSocketUrlPath(isPipe ? 'pipe' : 'unix', place, platform);
  if (!parsed.ok)
    throw refuse(
      `The URL of the server cannot be used: expected ${parsed.expected}, with the path of the endpoint after #, as in ${example}.`,
    );
  if (path === undefined && !isPipe) return { kind: 'stream', address: { kind: 'socket', path: parsed.value } };
  if (path === undefined) {
    throw refuse(`The URL of the server lacks the path of its endpoint, which stands after #, as in ${example}.`);
  }
  if (!/^\/(?!\/)/.test(path) || !URL.canParse(path, 'http://localhost')) {
    throw refuse(`The URL of the server cannot be used: expected a path after #, as in ${example}.`);
  }
  const url = new SocketUrl(path, parsed.value);
  url.hash = '';
  return { kind: 'url', url, socketPath: parsed.value };
}

/** Parses `replay:FILE` or `replay:FILE#server`. The path of the file is as written. */
function parseReplay(argument: string): ReplayTarget {
  const [, file = '', server] = /^(.*?)(?:#([^#]*))?$/s.exec(argument.slice(REPLAY.length)) ?? [];
  if (file === '' || server === '') {
    throw refuse(
      'The recording to replay is not named: expected replay: and the path of its file, and after a # the name of the server if it has several, as in replay:session.jsonl#github.',
    );
  }
  if (/^~[/\\]/.test(file)) {
    throw refuse(
      'The path after replay: begins with ~, which shells replace only at the start of a word; write the whole path.',
    );
  }
  return { kind: 'replay', file, server };
}

const SIMPLEST_COMMAND = '-- npx -y @modelcontextprotocol/server-everything';
const SIMPLEST_URL = 'https://example.com/mcp';

/** Phrases for verbs that need more than their name before "a server". */
const DEEDS: Readonly<Partial<Record<BridgeVerb, string>>> = {
  connect: 'connect to',
  login: 'log in to',
  logout: 'log out from',
};

function explainMissingTarget(verb: BridgeVerb): string {
  const before = verb === 'serve' ? 'mcp-portage' : `mcp-portage ${verb}`;
  const isForUrls = verb === 'login' || verb === 'logout';
  const targets = isForUrls ? [SIMPLEST_URL] : [SIMPLEST_COMMAND, SIMPLEST_URL];
  const examples = targets.map((target) => `  ${before} ${target}`);
  // Users of `connect` mostly have a server on another machine, so the URL comes first.
  if (verb === 'connect') examples.reverse();
  const wayOut = isForUrls ? 'give its URL' : 'give its command after `--`, or its URL';
  return `No server to ${DEEDS[verb] ?? verb}: ${wayOut}, as in\n${examples.join('\n')}`;
}

/** @param place the place of the option, as messages call it */
export function aggregateWithoutFile(place: string): BridgeError {
  return new BridgeError(
    'ERR_CONFIG_COMBINATION',
    `${place} makes one server of those in a file, and no file is given; name one, as in\n  mcp-portage --config mcp.json --aggregate`,
  );
}

function refuse(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_OPTION', message);
}
