/**
 * How the files of hosts differ: where servers stand in them, and which keys have a meaning for the host alone. Hosts are
 * told apart by their keys: every one has called its file several names.
 */
import type { ConfigNode, ObjectNode, Path } from './config-tree.ts';

export interface FoundServers {
  readonly path: Path;
  readonly servers: ConfigNode;
  /** What VS Code asks its user for. */
  readonly inputs: ConfigNode | undefined;
  readonly dialect: Dialect;
  /** Keys that other hosts have their servers under, which this file has besides. */
  readonly shadowed: readonly string[];
}

/** What texts and numbers mean where hosts differ. */
export interface Dialect {
  readonly variables: 'common' | 'opencode';
  /** What a bare number says as `timeout`: the time for a call, or for something that has no option here. */
  readonly timeout: 'call' | 'other';
}

const COMMON: Dialect = { variables: 'common', timeout: 'call' };
const OPENCODE: Dialect = { variables: 'opencode', timeout: 'other' };

export const EXPECTED_KEYS = 'mcpServers, servers, mcp_servers or mcp';

/** Undefined: no host has such a file. */
export function findServers(root: ObjectNode): FoundServers | undefined {
  const keys = ['mcpServers', 'servers', 'mcp_servers'].filter((key) => root.members.has(key));
  const [key, ...shadowed] = keys;
  const servers = key === undefined ? undefined : root.members.get(key);
  // Gemini CLI has its servers under mcpServers, and under mcp something else.
  if (key === undefined || servers === undefined) return findBelowMcp(root.members.get('mcp'));
  const inputs = key === 'servers' ? root.members.get('inputs') : undefined;
  return { path: [key], servers, inputs, dialect: COMMON, shadowed };
}

function findBelowMcp(mcp: ConfigNode | undefined): FoundServers | undefined {
  if (mcp?.kind !== 'object') return undefined;
  const found = { shadowed: [], inputs: mcp.members.get('inputs') };
  const servers = mcp.members.get('servers');
  if (servers?.kind === 'object' && !isEntry(servers)) {
    // The settings of VS Code and opencode 2 have the same keys here; inputs and ${…} are of the one, {…} of the other.
    return { ...found, path: ['mcp', 'servers'], servers, dialect: { variables: 'opencode', timeout: 'call' } };
  }
  const hasEntries = mcp.members.size === 0 || [...mcp.members.values()].some(isEntry);
  return hasEntries ? { ...found, path: ['mcp'], servers: mcp, dialect: OPENCODE } : undefined;
}

/** Rather a server called `servers` than a list of them. */
function isEntry(node: ConfigNode): boolean {
  if (node.kind !== 'object') return false;
  return ['type', 'command', 'url', 'enabled'].some((key) => {
    const member = node.members.get(key);
    return member !== undefined && member.kind !== 'object';
  });
}

/** Keys of hosts that say nothing to us. Whatever stands under them is taken without a look. */
const MEANINGLESS: readonly string[] = [
  // Editors and their pages.
  ...[
    '$schema',
    'name',
    'title',
    'displayName',
    'description',
    'icon',
    'iconUrl',
    'version',
    'gallery',
    'metadata',
    'note',
  ],
  // Which calls a user is asked about.
  ...['trust', 'autoApprove', 'alwaysAllow', 'default_tools_approval_mode', 'supports_parallel_tool_calls', 'tools'],
  // When and where the host starts the server, and what it shows of it.
  ...[
    'dev',
    'watchPaths',
    'sandbox',
    'sandboxEnabled',
    'alwaysLoad',
    'codemode',
    'extension',
    'extensionName',
    'source',
  ],
  ...['startup_timeout_sec', 'startup_timeout_ms', 'networkTimeout', 'experimental_environment', 'environment_id'],
  ...['remoteConfigured', 'roots', 'withCredentials', 'disabledReason', 'tcp_keepalive'],
];

/** The login of the host: without another the server would refuse us. */
const LOGIN: readonly string[] = [
  ...['oauth', 'auth', 'authProviderType', 'targetAudience', 'targetServiceAccount'],
  ...['scopes', 'oauth_resource', 'oauth_client_id'],
];

/** A program that makes headers. */
const HELPER: readonly string[] = ['headersHelper'];

export type KeyMeaning = 'meaningless' | 'login' | 'helper' | 'unknown';

export function meaningOf(key: string): KeyMeaning {
  if (MEANINGLESS.includes(key)) return 'meaningless';
  if (LOGIN.includes(key)) return 'login';
  return HELPER.includes(key) ? 'helper' : 'unknown';
}
