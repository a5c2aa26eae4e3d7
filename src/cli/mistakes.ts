/** What people type when they come from another bridge or forget the `--`, and the way out of it. */
import { BRIDGE_VERBS } from './option-spec.ts';
import { OPTIONS } from './option-table.ts';
import { BEARER_TOKEN_VARIABLE, isOptionName } from './options.ts';
import { isUrlLike } from './parse-target.ts';
import { suggest } from './suggest.ts';

const BY_URL =
  'a server is named by its URL alone: mcp-portage connect <url> for a stdio client, serve <url> for HTTP.';
const NO_OAUTH = 'this version cannot log in by itself yet: give it a token with --bearer-token-file.';
const NO_LISTENER_AUTH =
  'this version has no authentication yet: listen on loopback, or put an authenticating proxy in front.';
const TOKEN = `credentials are no options, since other users can read command lines: set ${BEARER_TOKEN_VARIABLE}, or use --bearer-token-file.`;
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
  debug: 'use --log-level debug.',
  'api-key': NO_LISTENER_AUTH,
  'streamable-http': BY_URL,
  sse: BY_URL,
  'oauth2-bearer': TOKEN,
  'bearer-token': TOKEN,
  token: TOKEN,
  headers: "use --header, once for each: --header 'Name: value'",
  'allow-http': 'leave it out: http URLs are taken as they are.',
  'enable-proxy': 'leave it out: HTTP_PROXY, HTTPS_PROXY and NO_PROXY are followed.',
  'ignore-tool': 'this version cannot hide tools.',
  'auth-timeout': NO_OAUTH,
  'client-id': NO_OAUTH,
  'client-secret': NO_OAUTH,
  'token-url': NO_OAUTH,
  'static-oauth-client-info': NO_OAUTH,
  'static-oauth-client-metadata': NO_OAUTH,
  'no-verify-ssl': TRUST,
  'verify-ssl': TRUST,
  insecure: TRUST,
};

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
  const equivalent = Object.hasOwn(PEER_FLAGS, kebab) ? PEER_FLAGS[kebab] : undefined;
  if (equivalent !== undefined) return `Unknown option ${shown}: ${equivalent}`;
  const meant = isOptionName(kebab)
    ? [kebab]
    : suggest(
        kebab,
        OPTIONS.map((option) => option.name),
      );
  if (meant.length > 0)
    return `Unknown option ${shown}; did you mean ${meant.map((found) => `--${found}`).join(' or ')}?`;
  return `Unknown option ${shown}; mcp-portage --help lists them all. Options of the server go after \`--\`, with its command.`;
}

export interface StrayWord {
  /** The command line up to `--`. */
  readonly head: readonly string[];
  readonly at: number;
  readonly word: string;
}

/** A word before `--` that is neither verb nor URL: a verb misspelt, a URL cut short, a command whose `--` was forgotten. */
export function explainStrayWord({ head, at, word }: StrayWord): string {
  const [verb] = suggest(word, [...BRIDGE_VERBS, 'completion']);
  if (verb !== undefined) return `Unknown command ${JSON.stringify(word)}; did you mean ${verb}?`;
  if (/^(localhost|\d+\.\d+\.\d+\.\d+|[\w.-]+:\d+)(:\d+)?(\/|$)/i.test(word)) {
    return `Unexpected ${JSON.stringify(word)}: a URL begins with http:// or https://.`;
  }
  if (head.some(isUrlLike)) return `Unexpected ${JSON.stringify(word)}: beside the URL there are only options.`;
  const command = ['mcp-portage', ...head.slice(0, at), '--', ...head.slice(at)].map(quoteForShell).join(' ');
  return `Unexpected ${JSON.stringify(word)}: the server's command goes after \`--\`, as in\n  ${command}`;
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
