/** What people type when they come from another bridge or forget the `--`, and the way out of it. */
import { BRIDGE_VERBS, type OptionSpec } from './option-spec.ts';
import { OPTIONS } from './option-table.ts';
import { BEARER_TOKEN_VARIABLE, isOptionName } from './options.ts';
import { isUrlLike } from './parse-target.ts';
import { suggest } from './suggest.ts';

const BY_URL =
  'a server is named by its URL alone: mcp-portage connect <url> for a stdio client, serve <url> for HTTP.';
const TOKEN = `credentials are no options, since other users can read command lines: set ${BEARER_TOKEN_VARIABLE}, or use --bearer-token-file.`;
const SECRET =
  'a secret is no option, since other users can read command lines: set MCP_PORTAGE_OAUTH_CLIENT_SECRET, or use --oauth-secret-file.';
const TOKEN_ENDPOINT = 'leave it out: the server says where; --oauth-issuer names the only issuer to trust.';
const ONE_SERVER = 'a bridge leads to one server: start one for each, on ports of their own.';
const BEHIND = 'the command goes after `--`, with its arguments: mcp-portage -- <command> [args...]';
const TUNNEL = 'leave it out, and have the tunnel of your choice lead to the port; see --base-url and --auth-token.';
const TRUST = 'certificates are always checked; name the authority to trust with --ca.';

/** Flags of supergateway, of the two programs called mcp-proxy and of mcp-remote that have another name or no need here. */
const PEER_FLAGS: Readonly<Record<string, string>> = {
  'output-transport': 'leave it out: Streamable HTTP and HTTP+SSE are both served, on one port.',
  server: 'leave it out: Streamable HTTP and HTTP+SSE are both served, on one port.',
  stateful: 'leave it out: sessions are kept as the protocol asks.',
  stateless: 'leave it out: sessions are kept as the protocol asks.',
  'health-endpoint': 'leave it out: /healthz and /readyz are always there.',
  cors: 'name the origins that may call: --allow-origin https://app.example.com',
  shell:
    'leave it out: the command is started without a shell, `.cmd` files on Windows included. For shell syntax: mcp-portage -- sh -c "..."',
  'streamable-http-path': 'use --path.',
  'stream-endpoint': 'use --path.',
  endpoint: 'use --path.',
  'sse-endpoint': 'use --sse-path.',
  'sse-port': 'use --port.',
  'sse-host': 'use --host.',
  'pass-environment': 'use --inherit-env.',
  'ssl-cert': 'use --tls-cert.',
  'ssl-key': 'use --tls-key.',
  'max-body-size': 'use --max-message-bytes.',
  'session-idle-timeout': 'use --session-timeout, with a unit: 30m.',
  'graceful-shutdown-timeout': 'use --shutdown-grace, with a unit: 5s.',
  'ping-interval': 'use --keep-alive, with a unit: 30s.',
  'event-store': 'leave it out: what clients may have missed is kept; --max-replay-bytes says how much.',
  'event-store-max-events': 'use --max-replay-bytes.',
  'upstream-protocol': 'leave it out: what the server speaks is found out; to pin it, use --protocol.',
  'protocol-version': 'leave it out: client and server agree on theirs.',
  modern: 'leave it out: clients of every revision are served.',
  'named-server': ONE_SERVER,
  'named-server-config': ONE_SERVER,
  debug: 'use --log-level debug.',
  silent: 'use --log-level silent.',
  'api-key':
    'use --auth-token env:NAME, with the variable that holds the key; clients send it as Authorization: Bearer.',
  'streamable-http': BY_URL,
  sse: BY_URL,
  'oauth2-bearer': TOKEN,
  'bearer-token': TOKEN,
  token: TOKEN,
  headers: "use --header, once for each: --header 'Name: value'",
  'allow-http': 'leave it out: http URLs are taken as they are.',
  'enable-proxy': 'leave it out: HTTP_PROXY, HTTPS_PROXY and NO_PROXY are followed.',
  'ignore-tool': 'this version cannot hide tools.',
  'auth-timeout': 'leave it out: there are four minutes for a login.',
  'callback-path': 'use --oauth-callback http://localhost:3334/callback, with the port and path you want.',
  'client-id': 'use --oauth-client-id; for a login without a user, with --oauth-grant client-credentials.',
  'client-secret': SECRET,
  'client-credentials': 'use --oauth-grant client-credentials.',
  'client-metadata-url': 'use --oauth-client-document.',
  'token-url': TOKEN_ENDPOINT,
  'token-endpoint': TOKEN_ENDPOINT,
  'static-oauth-client-info': `use --oauth-client-id; ${SECRET}`,
  'static-oauth-client-metadata': 'use --oauth-client-document, or --oauth-scope for its scopes.',
  'no-verify-ssl': TRUST,
  'verify-ssl': TRUST,
  insecure: TRUST,
  tunnel: TUNNEL,
  'tunnel-subdomain': TUNNEL,
  'cors-add-allowed-header': 'leave it out: pages of an --allow-origin may send what they ask for.',
  'headers-timeout': 'use --first-byte-timeout.',
  'body-timeout': 'use --idle-timeout.',
  'device-code': 'where there is no browser, open the address that the log names elsewhere.',
};

/** What is no flag of theirs, but typed out of habit. */
const HABITS: Readonly<Record<string, string>> = {
  url: BY_URL,
  command: BEHIND,
  cmd: BEHIND,
  args: BEHIND,
  verbose: 'use --log-level debug.',
  quiet: 'use --log-level error.',
};

/** One letter, of the Python mcp-proxy, curl and others. */
const LETTERS: Readonly<Record<string, string>> = {
  H: "use --header 'Name: value'.",
  e: 'use --env NAME=value.',
  p: 'use --port.',
  k: TRUST,
};

const ANSWERS: ReadonlyMap<string, string> = new Map(Object.entries({ ...PEER_FLAGS, ...HABITS }));

export interface UnknownOption {
  readonly name: string;
  /** The word as it stands on the command line. */
  readonly written: string;
  readonly value: unknown;
}

export function explainUnknownOption({ name, written, value }: UnknownOption): string {
  const kebab = toKebabCase(name);
  const shown = written.split('=', 1)[0] ?? written;
  if (kebab === 'stdio') {
    const command = typeof value === 'string' ? value : '<command> [args...]';
    return `Unknown option ${shown}: the command goes after \`--\`, unquoted: mcp-portage -- ${command}`;
  }
  const equivalent = ANSWERS.get(kebab) ?? (Object.hasOwn(LETTERS, name) ? LETTERS[name] : undefined);
  if (equivalent !== undefined) return `Unknown option ${shown}: ${equivalent}`;
  const meant = isOptionName(kebab)
    ? [kebab]
    : suggest(
        kebab,
        OPTIONS.map((option) => option.name),
      );
  if (meant.length > 0) {
    const unit = meant.every(isDuration) ? explainUnit(value) : '';
    return `Unknown option ${shown}; did you mean ${meant.map((found) => `--${found}`).join(' or ')}?${unit}`;
  }
  return `Unknown option ${shown}; mcp-portage --help lists them all. Options of the server go after \`--\`, with its command.`;
}

function isDuration(name: string): boolean {
  return OPTIONS.some((option: OptionSpec) => option.name === name && option.placeholder === 'duration');
}

/** Other bridges count in milliseconds: taken over as it is, such a number would be a thousand times too long. */
function explainUnit(value: unknown): string {
  if (typeof value !== 'string' || !/^\d+$/.test(value)) return '';
  return ` A bare number is seconds there; milliseconds are written ${value}ms.`;
}

export interface StrayWord {
  /** The command line up to `--`. */
  readonly head: readonly string[];
  readonly at: number;
  readonly word: string;
  /** A command stands behind `--`. */
  readonly hasCommand: boolean;
  readonly platform: NodeJS.Platform | undefined;
}

/** A word before `--` that is neither verb nor URL: a verb misspelt, a URL cut short, a command whose `--` was forgotten. */
export function explainStrayWord({ head, at, word, hasCommand, platform }: StrayWord): string {
  const [verb] = suggest(word, [...BRIDGE_VERBS, 'completion']);
  if (verb !== undefined) return `Unknown command ${JSON.stringify(word)}; did you mean ${verb}?`;
  if (/^(localhost|\d+\.\d+\.\d+\.\d+|[\w.-]+:\d+)(:\d+)?(\/|$)|^[\w-]+(\.[\w-]+)+\//i.test(word)) {
    return `Unexpected ${JSON.stringify(word)}: a URL begins with http:// or https://.`;
  }
  const pair = explainPair(head.slice(at - 2, at), hasCommand);
  if (pair !== undefined) return pair;
  if (head.some(isUrlLike)) {
    const port = /^\d{2,5}$/.test(word)
      ? ` For the port of a login: --oauth-callback http://localhost:${word}/callback`
      : '';
    return `Unexpected ${JSON.stringify(word)}: beside the URL there are only options.${port}`;
  }
  const rest = head.slice(at);
  // A program and its arguments, quoted as other bridges want it; not the path of a program with a space in it.
  const isQuoted = rest.length === 1 && /^[^\s/\\]+\s/.test(word);
  const target = isQuoted ? word : rest.map(quoteForShell).join(' ');
  // npx is a script there, and PowerShell hands a bare `--` on to no script. https://github.com/npm/cli/issues/4903
  const [separator, hint] = platform === 'win32' ? ['"--"', ' (in PowerShell with its quotes)'] : ['--', ''];
  const command = [...['mcp-portage', ...head.slice(0, at)].map(quoteForShell), separator, target].join(' ');
  return `Unexpected ${JSON.stringify(word)}: the server's command goes after \`--\`${hint}, as in\n  ${command}`;
}

/**
 * `--env NAME value` and `--header Name value`, as the Python mcp-proxy has them. The value may be a secret. Without a
 * command behind `--`, what follows `--env NAME` is more likely the command.
 */
function explainPair([option, name = '']: readonly string[], hasCommand: boolean): string | undefined {
  if (option === '--env' && hasCommand && /^\w+$/.test(name)) {
    return `--env takes one word: --env ${name}=<value>, or --env ${name} alone to copy it from here.`;
  }
  if (option === '--header' && /^[\w-]+:?$/.test(name)) {
    return `--header takes one word, in quotes: --header '${name.replace(/:$/, '')}: <value>'`;
  }
  return undefined;
}

/** `outputTransport`, `output_transport` → `output-transport`. */
function toKebabCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replaceAll('_', '-')
    .toLowerCase();
}

function quoteForShell(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
