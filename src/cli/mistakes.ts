/** What people type when they come from another bridge or forget the `--`, and the way out of it. */
import { isOptionName, OPTIONS } from './options.ts';
import { suggest } from './suggest.ts';

export const SIMPLEST_COMMAND = 'mcp-portage -- npx -y @modelcontextprotocol/server-everything';

const COMMANDS_ONLY =
  'This version serves commands only (mcp-portage -- <command> [args...]); it cannot reach a server by URL.';

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
  'oauth2-bearer': 'this version has no authentication yet.',
  'api-key': 'this version has no authentication yet: listen on loopback, or put an authenticating proxy in front.',
  'streamable-http': COMMANDS_ONLY,
  sse: COMMANDS_ONLY,
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

/** A word before `--` that is no verb: a URL, a verb to come or misspelt, or a command whose `--` was forgotten. */
export function explainStrayWord({ head, at, word }: StrayWord): string {
  if (/^https?:\/\//i.test(word)) return COMMANDS_ONLY;
  if (word === 'connect') return `There is no \`connect\` yet. ${COMMANDS_ONLY}`;
  const [verb] = suggest(word, ['serve', 'completion']);
  if (verb !== undefined) return `Unknown command ${JSON.stringify(word)}; did you mean ${verb}?`;
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
