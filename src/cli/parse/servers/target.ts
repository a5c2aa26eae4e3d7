/** Which server is meant: the command behind `--`, or one URL. */
import type { StreamTarget, Target, UrlTarget } from '../../../config/server.ts';
import { BridgeError } from '../../../errors.ts';
import { SocketUrl } from '../../../http/socket-addresses.ts';
import type { BridgeVerb } from '../../options/option-spec.ts';
import { parseSocketUrlPath } from '../listener/socket-path.ts';
import { parseNetworkAddress } from '../listener/stream-address.ts';

/** `scheme://…`, of whatever scheme. */
export function isUrlLike(argument: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(argument);
}

/**
 * `positionals`: what stands before `--`, URLs all of them. `command`: what stands behind it. Throws ERR_CONFIG_OPTION; URLs
 * are never repeated in messages, since they can hold credentials.
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
 * The server that a URL leads to, by its scheme. Throws ERR_CONFIG_OPTION, and shows nothing of the URL but that.
 * @param platform whose sockets and pipes are meant
 */
export function parseServerUrl(argument: string, platform: NodeJS.Platform = process.platform): RunningTarget {
  const expected =
    'expected a URL that begins with https://, http://, wss://, ws://, unix://, pipe://, tcp:// or tls://';
  // `localhost:8000` has no scheme, although something stands before a colon.
  if (!isUrlLike(argument)) throw refuse(`An address without a scheme was given; ${expected}.`);
  const scheme = argument.slice(0, argument.indexOf(':')).toLowerCase();
  const parse = SCHEMES.get(scheme);
  if (parse !== undefined) return parse(argument, platform);
  throw refuse(`${scheme}:// is not supported; ${expected}.`);
}

/** A server that runs already. */
export type RunningTarget = UrlTarget | StreamTarget;

type ParseUrl = (argument: string, platform: NodeJS.Platform) => RunningTarget;

const SCHEMES: ReadonlyMap<string, ParseUrl> = new Map([
  ['http', parseWebUrl],
  ['https', parseWebUrl],
  ['unix', parseSocketUrl],
  ['pipe', parseSocketUrl],
  ['tcp', parseNetworkStream],
  ['tls', parseNetworkStream],
  ['ws', parseWebUrl],
  ['wss', parseWebUrl],
]);

/** Is it a scheme that leads to a server, or one of which something can be said? */
export function isServerScheme(argument: string): boolean {
  return isUrlLike(argument) && SCHEMES.has(argument.slice(0, argument.indexOf(':')).toLowerCase());
}

/** Over the network. */
function parseWebUrl(argument: string): UrlTarget {
  if (!URL.canParse(argument))
    throw refuse('The URL of the server cannot be read; expected one like https://example.com/mcp.');
  const url = new URL(argument);
  if (url.username !== '' || url.password !== '') {
    throw refuse(
      `The URL has a user name or password in it, where other users of this machine can read it. Leave it out, and send it in a header taken from the environment: --header 'Authorization: Basic \${CREDENTIAL}', where CREDENTIAL is the base64 form of user:password.`,
    );
  }
  // A fragment is for whoever reads the answer, never sent.
  url.hash = '';
  return { kind: 'url', url, socketPath: undefined };
}

/** A server that takes lines at a port. */
function parseNetworkStream(argument: string): StreamTarget {
  const parsed = parseNetworkAddress(argument);
  if (parsed.ok) return { kind: 'stream', address: parsed.value };
  throw refuse(`The address of the server cannot be used: expected ${parsed.expected}.`);
}

/**
 * At a Unix socket or a named pipe: HTTP where after `#` stands the path that is asked for there, and else lines, which
 * need none.
 */
function parseSocketUrl(argument: string, platform: NodeJS.Platform): RunningTarget {
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

const SIMPLEST_COMMAND = '-- npx -y @modelcontextprotocol/server-everything';
const SIMPLEST_URL = 'https://example.com/mcp';

/** Verbs that say more than themselves in front of a server. */
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
  // A stdio client mostly needs help with a server somewhere else.
  if (verb === 'connect') examples.reverse();
  const wayOut = isForUrls ? 'give its URL' : 'give its command after `--`, or its URL';
  return `No server to ${DEEDS[verb] ?? verb}: ${wayOut}, as in\n${examples.join('\n')}`;
}

function refuse(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_OPTION', message);
}
