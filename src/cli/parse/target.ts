/** Which server is meant: the command behind `--`, or one URL. */
import type { Target } from '../../config.ts';
import { BridgeError } from '../../errors.ts';
import type { BridgeVerb } from '../options/option-spec.ts';

const SCHEMES: readonly string[] = ['http', 'https', 'ws', 'wss'];

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
    return { kind: 'url', url: parseServerUrl(url) };
  }
  if (program === undefined || program === '') throw refuse(explainMissingTarget(verb));
  return { kind: 'command', command: program, args };
}

/** Throws ERR_CONFIG_OPTION, and shows nothing of the URL but its scheme. */
export function parseServerUrl(argument: string): URL {
  const scheme = argument.slice(0, argument.indexOf(':')).toLowerCase();
  if (!SCHEMES.includes(scheme)) {
    throw refuse(`${scheme}:// is not supported; expected a URL that begins with https://, http://, wss:// or ws://.`);
  }
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
  return url;
}

const SIMPLEST_COMMAND = '-- npx -y @modelcontextprotocol/server-everything';
const SIMPLEST_URL = 'https://example.com/mcp';

function explainMissingTarget(verb: BridgeVerb): string {
  const before = verb === 'serve' ? 'mcp-portage' : `mcp-portage ${verb}`;
  const examples = [SIMPLEST_COMMAND, SIMPLEST_URL].map((target) => `  ${before} ${target}`);
  // A stdio client mostly needs help with a server somewhere else.
  if (verb === 'connect') examples.reverse();
  return `No server to ${verb}${verb === 'connect' ? ' to' : ''}: give its command after \`--\`, or its URL, as in\n${examples.join('\n')}`;
}

function refuse(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_OPTION', message);
}
